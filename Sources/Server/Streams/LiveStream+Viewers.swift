internal import FMP4
internal import NIOCore
internal import Storage
internal import Synchronization

/// Responses that grow with the stream: `stream.mp4`, and segments in the making.
extension LiveStream {
  /// Begins a `stream.mp4` on the writer's loop: the init segment and what there is since the last key frame, then
  /// every fragment as it comes.
  func join(_ writer: LiveBodyWriter, key: ObjectIdentifier) {
    let eventLoop = writer.eventLoop
    let (audience, position, pieces, isOver) = state.withLock { state in
      let loopKey = ObjectIdentifier(eventLoop)
      var entry = state.audiences[loopKey] ?? (LoopAudience(eventLoop: eventLoop), 0)
      let isOver = state.phase == .ended
      if !isOver {
        entry.count += 1
        state.audiences[loopKey] = entry
      }
      return (entry.audience, state.position + 1, state.epoch.piecesSinceLastKeyFrame(), isOver)
    }
    if !pieces.isEmpty { writer.write(pieces) }
    if isOver {
      writer.finish()
    } else {
      audience.add(writer, key: key, firstPosition: position)
    }
  }

  /// The viewer is gone, or its response is over. On its loop.
  func leave(key: ObjectIdentifier, eventLoop: any EventLoop) {
    let audience = state.withLock { state -> LoopAudience? in
      let loopKey = ObjectIdentifier(eventLoop)
      guard let entry = state.audiences[loopKey] else { return nil }
      state.audiences[loopKey]?.count = max(0, entry.count - 1)
      return entry.audience
    }
    audience?.remove(key)
  }

  // MARK: Segments in the making

  /// Begins a response on the writer's loop with what there is of a segment behind `offset` bytes of the track's
  /// layout; it grows and ends with the segment.
  func follow(
    _ writer: LiveBodyWriter, key: ObjectIdentifier, epoch: String, _ rendition: Rendition, sequenceNumber: Int,
    track: TrackID?, offset: Int
  ) {
    let eventLoop = writer.eventLoop
    let (segment, followers) = state.withLock { state -> (LiveSegment?, SegmentFollowers?) in
      guard let epoch = state.epoch(epoch), let window = epoch.window(of: rendition),
        let segment = window.segment(sequenceNumber)
      else { return (nil, nil) }
      // Only the current epoch grows; its rungs, a little beyond its end.
      guard epoch.id == state.epoch.id, !segment.isComplete, !window.isEnded else { return (segment, nil) }
      let loopKey = FollowerKey(eventLoop, rendition)
      var followed = state.followers[loopKey] ?? Followed(SegmentFollowers(eventLoop: eventLoop), from: sequenceNumber)
      followed.oldest = min(followed.oldest, sequenceNumber)
      state.followers[loopKey] = followed
      return (segment, followed.followers)
    }
    if let segment {
      let pieces = segment.pieces(of: track)
      let length = pieces.totalLength
      if offset < length { writer.write(pieces.slice(offset..<length)) }
      if let followers {
        followers.add(writer, key: key, segment, track: track)
        return
      }
    }
    writer.finish()
  }

  /// The response is broken off. On its loop.
  func unfollow(key: ObjectIdentifier, _ rendition: Rendition, eventLoop: any EventLoop) {
    state.withLock { $0.followers[FollowerKey(eventLoop, rendition)]?.followers }?.remove(key)
  }

  /// Hands what has come in a window, the source's or a rung's, to those who follow its segments: several may have been
  /// completed at once. With the newest complete all of them are done; who comes later follows the next one.
  func feedFollowers(of window: LiveWindow, rung: LadderRung?, _ state: inout State) {
    guard !state.followers.isEmpty, let newest = window.segments.last else { return }
    for (key, followed) in state.followers where key.rung == rung?.rendition {
      let count = max(1, newest.sequenceNumber - followed.oldest + 1)
      followed.followers.deliver(Array(window.segments.suffix(count)))
      state.followers[key]?.oldest = newest.sequenceNumber
      if newest.isComplete { state.followers[key] = nil }
    }
  }
}

/// Those who follow segments of one window on one event loop.
struct FollowerKey: Hashable, Sendable {
  private let eventLoop: ObjectIdentifier
  /// Nil for the source's window.
  let rung: Rendition?

  init(_ eventLoop: any EventLoop, _ rendition: Rendition) {
    self.eventLoop = ObjectIdentifier(eventLoop)
    rung = rendition.isRung ? rendition : nil
  }
}

/// Those who follow a window's segments on one event loop, and the oldest segment that any of them may follow.
struct Followed: Sendable {
  let followers: SegmentFollowers
  /// Media sequence number.
  var oldest: Int

  init(_ followers: SegmentFollowers, from oldest: Int) {
    self.followers = followers
    self.oldest = oldest
  }
}
