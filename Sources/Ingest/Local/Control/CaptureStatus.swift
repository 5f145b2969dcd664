internal import Synchronization

/// A capture in figures, as the API and the page show it.
package struct CaptureStatus: Sendable, Hashable {
  package enum State: Sendable, Hashable {
    case starting
    case running
    /// Bridged by a slate or by silence, and why.
    case away(String)
  }

  /// Who makes a key frame that is asked for.
  package enum KeyFrames: Sendable, Hashable {
    /// Ours, of what the camera sends or of the slate.
    case encoder
    /// The camera, which codes by itself and has a control for it.
    case camera
    /// Nobody: the camera codes by itself, at its own pace.
    case unasked
  }

  package struct Picture: Sendable, Hashable {
    /// `/dev/video0`.
    package var device: String
    package var name = ""
    /// Pixels and pictures a second, as the camera sends them: "1280×720 yuyv 30 fps".
    package var mode = ""
    package var state = State.starting
    package var controls: [CameraControl] = []
    /// Pictures that came from the camera.
    package var taken: Int64 = 0
    /// Left out by the driver, by its own count.
    package var lostByDriver: Int64 = 0
    /// Pictures that were no whole ones.
    package var broken: Int64 = 0
    /// Left out before a busy encoder.
    package var leftOut: Int64 = 0
    package var coded: Int64 = 0
    /// Nil where the camera codes by itself.
    package var encoder: String?
    package var keyFrames = KeyFrames.encoder
    package var encoderRestarts = 0
    /// What coding a picture takes, smoothed over some seconds.
    package var encodeMicroseconds: Int64 = 0

    package init(device: String) { self.device = device }

    /// A picture was coded in so many nanoseconds.
    mutating func count(codedIn nanoseconds: Int64) {
      coded += 1
      let latest = nanoseconds / 1000
      encodeMicroseconds = coded == 1 ? latest : encodeMicroseconds + (latest - encodeMicroseconds) / 32
    }
  }

  package struct Audio: Sendable, Hashable {
    package var device: String
    package var state = State.starting
    /// Hz.
    package var rate = 0
    package var channels = 0
    /// Times at which the device had run over.
    package var overruns = 0
    /// Samples of silence that bridged gaps.
    package var bridgedSamples: Int64 = 0
    /// How far the audio is behind the clock, smoothed.
    package var skewMicroseconds: Int64 = 0

    package init(device: String) { self.device = device }
  }

  package var picture: Picture?
  package var audio: Audio?

  package init(picture: Picture? = nil, audio: Audio? = nil) {
    self.picture = picture
    self.audio = audio
  }
}

/// The status in the making: every lane writes its part.
final class CaptureFigures: Sendable {
  private let state: Mutex<CaptureStatus>

  init(_ status: CaptureStatus = CaptureStatus()) { state = Mutex(status) }

  var status: CaptureStatus { state.withLock { $0 } }

  func update(_ change: (inout CaptureStatus) -> Void) { state.withLock { change(&$0) } }
}
