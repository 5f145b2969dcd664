/// What may be asked of a capture while it is live.
package enum CaptureChange: Sendable {
  /// Another camera, or the same one otherwise. Size and rate stay as they are in the stream unless given.
  case camera(CameraSettings)
  case microphone(MicrophoneSettings)
  case controls([CameraSettings.Control])
  /// The next picture is to be a key frame.
  case keyFrame
}

/// Why a capture does not do it. The text is one line that says what to do.
package enum CaptureRefusal: Error, Sendable, Hashable, CustomStringConvertible {
  /// The stream is none of a camera or microphone.
  case isNoCapture
  case hasNoCamera
  case hasNoMicrophone
  /// The name, and those that there are.
  case unknownControl(String, [String])
  case outOfRange(CameraControl, Int32)

  package var description: String {
    switch self {
    case .isNoCapture: "This stream does not come from a camera or microphone of this server."
    case .hasNoCamera: "This capture has no camera; start the source with v4l2:DEVICE."
    case .hasNoMicrophone: "This capture has no microphone; start the source with alsa:DEVICE."
    case .unknownControl(let name, let known):
      known.isEmpty
        ? "The camera is not there, or has no controls, \(name) among them."
        : "The camera has no control \(name), only \(known.joined(separator: ", "))."
    case .outOfRange(let control, let value):
      "\(control.name)=\(value) is outside \(control.minimum) to \(control.maximum)."
    }
  }
}
