internal import FMP4
internal import HTTP
internal import NIOCore
internal import Storage
internal import Streams
internal import Synchronization

/// A segment sent while it is being made (LL-DASH chunks, LL-HLS byte ranges): first the bytes that exist, then each fragment
/// when it is complete. The body ends with the segment.
final class GrowingSegmentBody: LiveBody {
  private let stream: LiveStream
  private let epoch: String
  private let rendition: Rendition
  private let sequenceNumber: Int
  private let track: TrackID?
  /// Bytes at the start of the segment that are not requested.
  private let offset: Int
  private let eventLoop = Mutex<(any EventLoop)?>(nil)

  init(stream: LiveStream, epoch: String, rendition: Rendition, sequenceNumber: Int, track: TrackID?, offset: Int) {
    self.stream = stream
    self.epoch = epoch
    self.rendition = rendition
    self.sequenceNumber = sequenceNumber
    self.track = track
    self.offset = offset
  }

  func start(_ writer: LiveBodyWriter) {
    eventLoop.withLock { $0 = writer.eventLoop }
    stream.follow(
      writer, key: ObjectIdentifier(self), epoch: epoch, rendition, sequenceNumber: sequenceNumber, track: track,
      offset: offset)
  }

  func stop() {
    guard let eventLoop = eventLoop.withLock({ $0 }) else { return }
    stream.unfollow(key: ObjectIdentifier(self), rendition, eventLoop: eventLoop)
  }
}
