internal import Answers
internal import Base
internal import FMP4
package import LibAV
package import Local
package import NIOCore

/// The devices and encoders of this machine, as text.
package struct Devices {
  package let cameras: [CameraListing]
  package let microphones: [MicrophoneListing]
  package let encoders: [EncoderListing]

  package init(cameras: [CameraListing], microphones: [MicrophoneListing], encoders: [EncoderListing]) {
    (self.cameras, self.microphones, self.encoders) = (cameras, microphones, encoders)
  }

  // MARK: Text

  package var text: String {
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

/// `/api/v1/devices`
package struct DevicesAnswer: APIObject {
  let cameras: [Camera]
  let microphones: [Microphone]

  struct Camera: APIObject {
    let device: String
    let name: String
    let problem: String?
    let modes: [Mode]
    let controls: [ControlAnswer]
  }

  struct Mode: APIObject {
    let format: String
    let width: Int
    let height: Int
    let framesPerSecond: Double
  }

  struct Microphone: APIObject {
    let device: String
    let name: String
    let problem: String?
  }

  package init(cameras: [CameraListing], microphones: [MicrophoneListing]) {
    self.cameras = cameras.map { camera in
      Camera(
        device: "v4l2:\(camera.path)", name: camera.name, problem: camera.problem?.description,
        modes: camera.modes.map {
          Mode(
            format: $0.format.rawValue, width: $0.size.width, height: $0.size.height,
            framesPerSecond: $0.rate.framesPerSecond)
        }, controls: camera.controls.map(ControlAnswer.init))
    }
    self.microphones = microphones.map {
      Microphone(device: "alsa:\($0.device)", name: $0.name, problem: $0.problem?.description)
    }
  }

  /// What `weir devices --json` prints: the encoders as well. Probing them takes seconds.
  package func json(with encoders: [EncoderListing]) -> ByteBuffer {
    let listed = encoders.map {
      ListedEncoder(
        name: $0.name, codec: $0.coding, hardware: $0.isHardware, works: $0.problem == nil, problem: $0.problem)
    }
    return JSONText.encode(inOrder: [("cameras", cameras), ("microphones", microphones), ("encoders", listed)])
  }

  private struct ListedEncoder: Encodable {
    let name: String
    let codec: String
    let hardware: Bool
    let works: Bool
    let problem: String?
  }
}
