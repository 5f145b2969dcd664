internal import Base
internal import FMP4
internal import LibAV
internal import Local

/// The devices and encoders of this machine, as text.
struct Devices {
  let cameras: [CameraListing]
  let microphones: [MicrophoneListing]
  let encoders: [EncoderListing]

  // MARK: Text

  var text: String {
    var lines = ["cameras"]
    if cameras.isEmpty { lines.append("  none") }
    for camera in cameras { lines += Self.lines(camera) }
    lines.append("microphones")
    if microphones.isEmpty { lines.append("  none") }
    for microphone in microphones {
      let what = microphone.problem?.description ?? LogText.escaped(microphone.name)
      lines.append("  alsa:\(microphone.device)  \(what)")
    }
    lines.append("encoders")
    for encoder in encoders {
      let kind = encoder.coding + (encoder.isHardware ? ", hardware" : "")
      lines.append("  \(encoder.name)  \(kind)  \(encoder.problem ?? "works")")
    }
    return lines.joined(separator: "\n")
  }

  private static func lines(_ camera: CameraListing) -> [String] {
    if let problem = camera.problem { return ["  v4l2:\(camera.path)  \(problem)"] }
    var lines = ["  v4l2:\(camera.path)  \(LogText.escaped(camera.name))"]
    for (format, size, rates) in grouped(camera.modes) {
      lines.append(
        "    format=\(format.rawValue)&size=\(size.width)x\(size.height)&fps=\(rates.joined(separator: "|"))")
    }
    for control in camera.controls {
      let range = "from \(control.minimum) to \(control.maximum), usually \(control.standard)"
      lines.append("    control.\(control.name)=\(control.value)  \(range)")
    }
    return lines
  }

  /// Rates of the same format and size in one line, in the camera's order.
  private static func grouped(
    _ modes: [CameraMode]
  ) -> [(format: CameraFormat, size: CameraSettings.Size, rates: [String])] {
    var groups: [(format: CameraFormat, size: CameraSettings.Size, rates: [String])] = []
    for mode in modes {
      let rate = Decimals.trimmed(thousandths: Int((mode.rate.framesPerSecond * 1000).rounded()))
      if let last = groups.last, last.format == mode.format, last.size == mode.size {
        groups[groups.count - 1].rates.append(rate)
      } else {
        groups.append((mode.format, mode.size, [rate]))
      }
    }
    return groups
  }
}
