internal import FMP4
internal import NIOCore
internal import Storage

/// Responses on one event loop that send a segment while it is made: a chunk for each fragment. A new fragment is
/// handed over once a loop.
final class SegmentFollowers: Sendable {
  let eventLoop: any EventLoop
  private let followers: NIOLoopBoundBox<[ObjectIdentifier: Follower]>

  private struct Follower {
    let writer: LiveBodyWriter
    let track: TrackID?
    let sequenceNumber: Int
    /// Fragments of the segment that it has been given.
    var fragments: Int
  }

  init(eventLoop: any EventLoop) {
    self.eventLoop = eventLoop
    followers = .makeBoxSendingValue([:], eventLoop: eventLoop)
  }

  /// On the loop. The writer has been given the segment as far as it goes here.
  func add(_ writer: LiveBodyWriter, key: ObjectIdentifier, _ segment: LiveSegment, track: TrackID?) {
    followers.value[key] = Follower(
      writer: writer, track: track, sequenceNumber: segment.sequenceNumber, fragments: segment.fragments.count)
  }

  /// On the loop.
  func remove(_ key: ObjectIdentifier) {
    followers.value[key] = nil
  }

  /// From any thread: the segments that may be followed, oldest first, as they are now. One that is no longer among
  /// them has left the window.
  func deliver(_ segments: [LiveSegment]) {
    eventLoop.execute { self.advance(segments) }
  }

  /// From any thread: nothing more comes of what is followed.
  func finish() {
    eventLoop.execute {
      let finished = self.followers.value
      self.followers.value = [:]
      for follower in finished.values { follower.writer.finish() }
    }
  }

  private func advance(_ segments: [LiveSegment]) {
    for (key, follower) in followers.value {
      // Later ones are told of by a later delivery.
      if let newest = segments.last, newest.sequenceNumber < follower.sequenceNumber { continue }
      let segment = segments.first { $0.sequenceNumber == follower.sequenceNumber }
      if let segment {
        // A delivery that was on its way when the follower joined may be older than what it was given.
        followers.value[key]?.fragments = max(follower.fragments, segment.fragments.count)
        let pieces = segment.pieces(of: follower.track, fromFragment: follower.fragments)
        if !pieces.isEmpty { follower.writer.write(pieces) }
        guard segment.isComplete else { continue }
      }
      followers.value[key] = nil
      follower.writer.finish()
    }
  }
}
