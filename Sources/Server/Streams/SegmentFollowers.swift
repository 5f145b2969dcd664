internal import FMP4
internal import NIOCore
internal import Storage

/// Responses on one event loop that send a growing segment, one chunk for each fragment. A new fragment is passed once to each
/// loop.
final class SegmentFollowers: Sendable {
  let eventLoop: any EventLoop
  private let followers: NIOLoopBoundBox<[ObjectIdentifier: Follower]>

  private struct Follower {
    let writer: LiveBodyWriter
    let track: TrackID?
    let sequenceNumber: Int
    /// Fragments of the segment that were sent.
    var fragments: Int
  }

  init(eventLoop: any EventLoop) {
    self.eventLoop = eventLoop
    followers = .makeBoxSendingValue([:], eventLoop: eventLoop)
  }

  /// Call on the loop. The writer already has all fragments of `segment`.
  func add(_ writer: LiveBodyWriter, key: ObjectIdentifier, _ segment: LiveSegment, track: TrackID?) {
    followers.value[key] = Follower(
      writer: writer, track: track, sequenceNumber: segment.sequenceNumber, fragments: segment.fragments.count)
  }

  /// Call on the loop.
  func remove(_ key: ObjectIdentifier) {
    followers.value[key] = nil
  }

  /// Call from any thread. `segments` are the current state of those that may be followed, oldest first. A segment that is
  /// missing has left the window.
  func deliver(_ segments: [LiveSegment]) {
    eventLoop.execute { self.advance(segments) }
  }

  /// Call from any thread. Ends all responses, because the segments do not grow any more.
  func finish() {
    eventLoop.execute {
      let finished = self.followers.value
      self.followers.value = [:]
      for follower in finished.values { follower.writer.finish() }
    }
  }

  private func advance(_ segments: [LiveSegment]) {
    for (key, follower) in followers.value {
      // A later delivery has later segments.
      if let newest = segments.last, newest.sequenceNumber < follower.sequenceNumber { continue }
      let segment = segments.first { $0.sequenceNumber == follower.sequenceNumber }
      if let segment {
        // A delivery that was under way when the follower was added may be older than the follower's start.
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
