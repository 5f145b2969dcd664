internal import Answers
internal import Base
internal import Delivery
internal import HTTP
internal import Local
package import LocalSources
internal import NIOCore
internal import Publishing

/// The state of local sources, and `POST /api/v1/streams/{stream}/capture/…`, which changes a camera or a microphone while it is
/// live. The body is written as in a source: `v4l2:/dev/video2?rotate=90`, `alsa:hw:1,0`, `brightness=128&contrast=3`.
package struct CaptureAPI {
  let sources: SourceRegistry

  package init(sources: SourceRegistry) {
    self.sources = sources
  }

  /// The last segment of the address: what is to be changed.
  private enum Subject: String {
    case camera, microphone, controls
    case keyFrame = "keyframe"
  }

  /// Nil off air: the stream of that name belongs to another publisher then, or has ended.
  func describe(_ name: StreamName) -> CaptureAnswer? {
    guard let source = sources[name], case .live = source.activity else { return nil }
    return source.status.map(CaptureAnswer.init)
  }

  func change(_ request: APIRequest) -> HTTPAnswer {
    guard let source = StreamName(request[0]).flatMap({ sources[$0] }), let subject = Subject(rawValue: request[1])
    else {
      return .now(Self.answer(.isNoCapture))
    }
    let wanted = String(buffer: request.http.body)
    do throws(ValueError) {
      if let refusal = source.change(try Self.change(subject, wanted, source.settings)) {
        return .now(Self.answer(refusal))
      }
    } catch {
      return .now(Problem(.malformedBody, "\(error.reason).", help: "\(error.advice).").response)
    }
    return .now(source.status.map { .json(CaptureAnswer($0)) } ?? Self.answer(.hasEnded))
  }

  private static func answer(_ refusal: CaptureRefusal) -> HTTPResponse {
    let kind: ProblemKind =
      switch refusal {
      case .isNoCapture: .noCapture
      case .hasNoCamera, .hasNoMicrophone: .noDevice
      case .unknownControl, .outOfRange: .badControl
      // These requests can never succeed.
      case .isFixed: .optionFixed
      case .codesByItself: .cameraEncodes
      case .hasNoKeyFrames: .noKeyFrames
      case .hasEnded: .sourceEnded
      }
    return Problem(kind, refusal.description).response
  }

  /// - Parameter present: the present settings of the devices, kept where the request names nothing else.
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
