internal import Basics
internal import FMP4
internal import Ingest

/// The lists, as text and as JSON.
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

  // MARK: JSON

  var json: JSON { .object(captureMembers + [("encoders", .array(encoders.map(Self.json)))]) }

  /// Cameras and microphones alone: trying encoders out takes seconds.
  var captureJSON: JSON { .object(captureMembers) }

  private var captureMembers: [(name: String, value: JSON)] {
    [("cameras", .array(cameras.map(Self.json))), ("microphones", .array(microphones.map(Self.json)))]
  }

  private static func json(_ microphone: MicrophoneListing) -> JSON {
    .object([
      ("device", .string("alsa:\(microphone.device)")), ("name", .string(microphone.name)),
      ("problem", microphone.problem.map { .string($0.description) } ?? .null),
    ])
  }

  private static func json(_ encoder: EncoderListing) -> JSON {
    .object([
      ("name", .string(encoder.name)), ("codec", .string(encoder.coding)), ("hardware", .bool(encoder.isHardware)),
      ("works", .bool(encoder.problem == nil)), ("problem", encoder.problem.map { .string($0) } ?? .null),
    ])
  }

  private static func json(_ camera: CameraListing) -> JSON {
    .object([
      ("device", .string("v4l2:\(camera.path)")), ("name", .string(camera.name)),
      ("problem", camera.problem.map { .string($0.description) } ?? .null),
      (
        "modes",
        .array(
          camera.modes.map { mode in
            .object([
              ("format", .string(mode.format.rawValue)), ("width", .integer(mode.size.width)),
              ("height", .integer(mode.size.height)), ("framesPerSecond", .number(mode.rate.framesPerSecond)),
            ])
          })
      ),
      ("controls", .array(camera.controls.map(\.json))),
    ])
  }
}
