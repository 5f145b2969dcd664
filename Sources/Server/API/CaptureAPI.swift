internal import Basics
internal import HTTP
internal import Ingest
internal import NIOCore

/// What the server's own sources say of themselves, and `POST /api/v1/streams/{stream}/capture/…`: what may be asked of a
/// camera and a microphone while they are live. What is asked for is the request's body, written as a source has it:
/// `v4l2:/dev/video2?rotate=90`, `alsa:hw:1,0`, `brightness=128&contrast=3`.
struct CaptureAPI {
  let sources: LocalSources

  /// What may be changed, as the last segment of the address.
  private enum Subject: String {
    case camera, microphone, controls
    case keyFrame = "keyframe"
  }

  /// Nil off air: the stream of that name is another publisher's then, or over.
  func describe(_ name: StreamName) -> CaptureAnswer? {
    guard let source = sources[name], case .live = source.activity else { return nil }
    return source.status.map(CaptureAnswer.init)
  }

  func change(_ request: APIRequest) -> HTTPAnswer {
    guard let source = StreamName(request[0]).flatMap({ sources[$0] }), let subject = Subject(rawValue: request[1])
    else {
      return .now(Problem.notFound(CaptureRefusal.isNoCapture.description).response)
    }
    let wanted = String(buffer: request.http.body)
    do throws(ValueError) {
      if let refusal = source.change(try Self.change(subject, wanted, source.settings)) {
        return .now(Self.answer(refusal))
      }
    } catch {
      return .now(Problem.badRequest("\(error.reason).", help: "\(error.advice).").response)
    }
    return .now(.json(source.status.map(CaptureAnswer.init)))
  }

  private static func answer(_ refusal: CaptureRefusal) -> HTTPResponse {
    switch refusal {
    // These are asked for in vain, whenever that is.
    case .isFixed, .codesByItself: Problem.badRequest(refusal.description).response
    default: RecordingAPI.conflict(refusal.description)
    }
  }

  /// - Parameter present: what is asked of the devices now, and stays where nothing else is named.
  private static func change(
    _ subject: Subject, _ text: String, _ present: CaptureSettings?
  ) throws(ValueError) -> CaptureChange {
    switch subject {
    case .camera:
      let device = text.rest(after: "v4l2:") ?? ""
      let options = try DeviceOptions(device, device: "a camera", example: "v4l2:/dev/video0")
      guard let camera = present?.camera else { return .camera(try options.camera()) }
      return .camera(try options.camera(insteadOf: camera))
    case .microphone:
      let device = text.rest(after: "alsa:") ?? ""
      let options = try DeviceOptions(device, device: "a microphone", example: "alsa:default")
      guard let microphone = present?.microphone else { return .microphone(try options.microphone()) }
      return .microphone(try options.microphone(insteadOf: microphone))
    case .controls:
      var controls: [CameraSettings.Control] = []
      for pair in text.split(separator: "&") {
        guard let equals = pair.firstIndex(of: "=") else {
          throw ValueError("the control \"\(pair)\" has no value", advice: "write NAME=VALUE&NAME=VALUE")
        }
        controls.append(
          try DeviceOptions.control(String(pair[..<equals]), String(pair[pair.index(after: equals)...])))
      }
      guard !controls.isEmpty else {
        throw ValueError("no control is named", advice: "write NAME=VALUE&NAME=VALUE")
      }
      return .controls(controls)
    case .keyFrame: return .keyFrame
    }
  }
}
