internal import FMP4
internal import HTTP
internal import NIOCore
internal import Storage
internal import Streams
internal import Synchronization

/// The endless `stream.mp4`: the init segment, the fragments since the last key frame, then each new fragment. It ends with the
/// stream, at a change of parameters, and when its viewer seat is given to another viewer.
final class ProgressiveBody: LiveBody {
  private let stream: LiveStream
  /// The response counts as a viewer while it lasts. Nil for HEAD, which sends no body.
  private let seat: ViewerSeat?
  /// Nil for the first track of each kind.
  private let tracks: [TrackID]?
  private let eventLoop = Mutex<(any EventLoop)?>(nil)

  init(stream: LiveStream, seat: ViewerSeat?, tracks: [TrackID]? = nil) {
    self.tracks = tracks
    self.stream = stream
    self.seat = seat
  }

  func start(_ writer: LiveBodyWriter) {
    eventLoop.withLock { $0 = writer.eventLoop }
    stream.join(writer, key: ObjectIdentifier(self), tracks: tracks)
    seat?.whenRevoked { [weak self] in
      guard let self else { return }
      writer.eventLoop.execute {
        writer.finish()
        self.stop()
      }
    }
  }

  func stop() {
    guard let eventLoop = eventLoop.withLock({ $0 }) else { return }
    stream.leave(key: ObjectIdentifier(self), eventLoop: eventLoop)
  }
}
