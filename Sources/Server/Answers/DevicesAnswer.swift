internal import FMP4
package import LibAV
package import Local
package import NIOCore

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
