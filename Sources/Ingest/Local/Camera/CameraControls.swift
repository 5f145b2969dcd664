internal import CV4L2
internal import LibAV

/// A control of a camera: brightness, contrast, exposure …
package struct CameraControl: Sendable, Hashable {
  /// Name in a source's options: lower case, words joined by underscores.
  package var name: String
  package var minimum: Int32
  package var maximum: Int32
  package var step: Int32
  package var standard: Int32
  package var value: Int32

  /// V4L2's identifier.
  var identifier: UInt32
}

extension CameraHandle {
  /// Lists numbers, switches and choices. Buttons and texts have no value to set.
  func controls() -> [CameraControl] {
    var found: [CameraControl] = []
    var query = v4l2_queryctrl()
    query.id = weir_control_next
    while found.count < 256, ask(weir_queryctrl, &query) {
      var name = query.name
      let isSettable = [
        V4L2_CTRL_TYPE_INTEGER.rawValue, V4L2_CTRL_TYPE_BOOLEAN.rawValue, V4L2_CTRL_TYPE_MENU.rawValue,
      ].contains(query.type)
      var current = v4l2_control()
      current.id = query.id
      if isSettable, query.flags & weir_control_disabled == 0, ask(weir_g_ctrl, &current) {
        found.append(
          CameraControl(
            name: Self.optionName(VideoDevices.text(&name)), minimum: query.minimum, maximum: query.maximum,
            step: query.step, standard: query.default_value, value: current.value, identifier: query.id))
      }
      query.id |= weir_control_next
    }
    return found
  }

  /// Sets the requested controls.
  func set(_ requests: [CameraSettings.Control]) throws(CaptureError) {
    guard !requests.isEmpty else { return }
    let known = controls()
    for requested in requests {
      guard let control = known.first(where: { $0.name == requested.name }) else {
        let names = known.map(\.name).joined(separator: ", ")
        throw CaptureError(.camera(path), .unusable("it has no control \(requested.name), only \(names)"))
      }
      guard (control.minimum...max(control.minimum, control.maximum)).contains(requested.value) else {
        throw CaptureError(
          .camera(path),
          .unusable("\(requested.name)=\(requested.value) is outside \(control.minimum) to \(control.maximum)"))
      }
      var setting = v4l2_control(id: control.identifier, value: requested.value)
      try call(weir_s_ctrl, &setting, "set \(requested.name) to \(requested.value)")
    }
  }

  /// Whether a camera that encodes its video itself can make a key frame on request.
  var canForceKeyFrames: Bool {
    var query = v4l2_queryctrl()
    query.id = weir_control_key_frame
    return ask(weir_queryctrl, &query) && query.flags & weir_control_disabled == 0
  }

  /// Requests a key frame. False if the camera does not support it.
  @discardableResult func forceKeyFrame() -> Bool {
    var setting = v4l2_control(id: weir_control_key_frame, value: 1)
    return ask(weir_s_ctrl, &setting)
  }

  /// "Exposure, Auto" becomes `exposure_auto`.
  static func optionName(_ title: String) -> String {
    title.lowercased().split { !($0.isASCII && ($0.isLetter || $0.isNumber)) }.joined(separator: "_")
  }
}
