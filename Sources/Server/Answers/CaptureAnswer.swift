package import Local

/// The state of a source's camera and microphone.
package struct CaptureAnswer: APIObject {
  let video: Video?
  let audio: Audio?

  struct Video: APIObject {
    let device: String
    let name: String
    let mode: String
    let state: String
    let problem: String?
    /// Frames received from the camera; frames lost by its own count; damaged frames.
    let captured: Int64
    let lost: Int64
    let corrupt: Int64
    /// Frames dropped before a busy encoder, and frames encoded.
    let dropped: Int64
    let encoded: Int64
    let encoder: String?
    let encoderRestarts: Int
    let encodeMicroseconds: Int64
    let controls: [ControlAnswer]
  }

  struct Audio: APIObject {
    let device: String
    let state: String
    let problem: String?
    let sampleRate: Int
    let channels: Int
    let overruns: Int
    let bridgedSamples: Int64
    let skewMicroseconds: Int64
  }

  package init(_ status: CaptureStatus) {
    video = status.video.map { camera in
      Video(
        device: camera.device, name: camera.name, mode: camera.mode, state: camera.state.word,
        problem: camera.state.problem, captured: camera.taken, lost: camera.lostByDriver, corrupt: camera.broken,
        dropped: camera.leftOut, encoded: camera.coded, encoder: camera.encoder,
        encoderRestarts: camera.encoderRestarts, encodeMicroseconds: camera.encodeMicroseconds,
        controls: camera.controls.map(ControlAnswer.init))
    }
    audio = status.audio.map { microphone in
      Audio(
        device: microphone.device, state: microphone.state.word, problem: microphone.state.problem,
        sampleRate: microphone.rate, channels: microphone.channels, overruns: microphone.overruns,
        bridgedSamples: microphone.bridgedSamples, skewMicroseconds: microphone.skewMicroseconds)
    }
  }
}

/// A control of a camera, as in `weir devices --json` and the API.
struct ControlAnswer: APIObject {
  let name: String
  let value: Int32
  let minimum: Int32
  let maximum: Int32
  let `default`: Int32

  init(_ control: CameraControl) {
    (name, value, `default`) = (control.name, control.value, control.standard)
    (minimum, maximum) = (control.minimum, control.maximum)
  }
}

extension CaptureStatus.State {
  fileprivate var word: String {
    switch self {
    case .starting: "starting"
    case .running: "running"
    case .away: "away"
    }
  }

  fileprivate var problem: String? {
    if case .away(let reason) = self { reason } else { nil }
  }
}
