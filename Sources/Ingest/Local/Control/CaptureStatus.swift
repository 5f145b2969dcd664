internal import Synchronization

/// Status of a capture, for the API and the web page.
package struct CaptureStatus: Sendable, Hashable {
  package enum State: Sendable, Hashable {
    case starting
    case running
    /// Bridged by a slate or silence, with the reason.
    case away(String)
  }

  /// What makes a requested key frame.
  package enum KeyFrames: Sendable, Hashable {
    /// weir's encoder, from the camera's frames or the slate.
    case encoder
    /// The camera, which encodes its video itself and has a control for it.
    case camera
    /// Nothing: the camera encodes its video itself, at its own cadence.
    case unasked
  }

  package struct Video: Sendable, Hashable {
    /// `/dev/video0`.
    package var device: String
    package var name = ""
    /// Size, format and frame rate of the camera: "1280×720 yuyv 30 fps".
    package var mode = ""
    package var state = State.starting
    package var controls: [CameraControl] = []
    /// Frames that came from the camera.
    package var taken: Int64 = 0
    /// Frames dropped by the driver, by its own counter.
    package var lostByDriver: Int64 = 0
    /// Incomplete frames.
    package var broken: Int64 = 0
    /// Frames dropped because the encoder was busy.
    package var leftOut: Int64 = 0
    package var coded: Int64 = 0
    /// Nil if the camera encodes its video itself.
    package var encoder: String?
    package var keyFrames = KeyFrames.encoder
    package var encoderRestarts = 0
    /// Encoding time per frame, smoothed over some seconds.
    package var encodeMicroseconds: Int64 = 0

    package init(device: String) { self.device = device }

    /// Counts a frame with its encoding time.
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
    /// Number of overruns of the device's buffer.
    package var overruns = 0
    /// Samples of silence that bridged gaps.
    package var bridgedSamples: Int64 = 0
    /// Delay of the audio against the clock, smoothed.
    package var skewMicroseconds: Int64 = 0

    package init(device: String) { self.device = device }
  }

  package var video: Video?
  package var audio: Audio?

  package init(video: Video? = nil, audio: Audio? = nil) {
    self.video = video
    self.audio = audio
  }
}

/// The status while it is collected. Each thread writes its part.
final class CaptureFigures: Sendable {
  private let state: Mutex<CaptureStatus>

  init(_ status: CaptureStatus = CaptureStatus()) { state = Mutex(status) }

  var status: CaptureStatus { state.withLock { $0 } }

  func update(_ change: (inout CaptureStatus) -> Void) { state.withLock { change(&$0) } }
}
