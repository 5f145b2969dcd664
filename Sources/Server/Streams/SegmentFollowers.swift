internal import FMP4
internal import NIOCore
internal import Storage

/// The responses of one event loop that send a segment which is still being made: its fragments so far at once, each later one
/// when it is stored. `Subscribers` has one object of this type for each loop and rendition. So a new fragment costs one task per
/// loop, however many responses wait for it.
final class SegmentFollowers: Sendable {
  let eventLoop: any EventLoop
  private let followers: NIOLoopBoundBox<[ObjectIdentifier: Follower]>

  /// One response.
  private struct Follower {
    let writer: LiveBodyWriter
    /// The track whose bytes are sent; nil for all tracks, interleaved.
    let track: TrackID?
    let sequenceNumber: Int
    /// Fragments of the segment that were sent.
    var fragments: Int
  }

  init(eventLoop: any EventLoop) {
    self.eventLoop = eventLoop
    followers = .makeBoxSendingValue([:], eventLoop: eventLoop)
  }

  /// Adds a response. The writer already has all fragments of `segment`. `key` names the response until it ends.
  /// Call on the loop.
  func add(_ writer: LiveBodyWriter, key: ObjectIdentifier, _ segment: LiveSegment, track: TrackID?) {
    followers.value[key] = Follower(
      writer: writer, track: track, sequenceNumber: segment.sequenceNumber, fragments: segment.fragments.count)
  }

  /// Removes a response that was aborted. Call on the loop.
  func remove(_ key: ObjectIdentifier) {
    followers.value[key] = nil
  }

  /// Sends what is new to all responses. `segments` are in their newest state, oldest first. A followed segment that is missing
  /// among them has left the window: its response ends. Call from any thread.
  func deliver(_ segments: [LiveSegment]) {
    eventLoop.execute { self.advance(segments) }
  }

  /// Ends all responses, because the segments do not grow any more. Call from any thread.
  func finish() {
    eventLoop.execute {
      let finished = self.followers.value
      self.followers.value = [:]
      for follower in finished.values { follower.writer.finish() }
    }
  }

  private func advance(_ segments: [LiveSegment]) {
    for (key, follower) in followers.value {
      // This delivery is older than the response. The next one contains its segment.
      if let newest = segments.last, newest.sequenceNumber < follower.sequenceNumber { continue }
      let segment = segments.first { $0.sequenceNumber == follower.sequenceNumber }
      if let segment {
        // This delivery may be older than the response and have fewer fragments than its writer. The count never decreases.
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
