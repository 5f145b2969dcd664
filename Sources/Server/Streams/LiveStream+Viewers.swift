internal import Base
package import FMP4
package import NIOCore
internal import Publishing
package import Storage

/// Responses that grow with the stream: `stream.mp4`, and growing segments.
extension LiveStream {
  /// Starts a `stream.mp4` response on the writer's loop: the init segment and the fragments since the last key frame, then each
  /// new fragment. `tracks`: of these; of the first of each kind for nil.
  package func join(_ writer: LiveBodyWriter, key: ObjectIdentifier, tracks: [TrackID]? = nil) {
    let (place, pieces) = state.withLock { state in
      (
        state.life.phase == .ended ? nil : state.subscribers.join(on: writer.eventLoop),
        state.life.epoch.piecesSinceLastKeyFrame(of: tracks)
      )
    }
    if !pieces.isEmpty { writer.write(pieces) }
    guard let place else { return writer.finish() }
    place.audience.add(writer, key: key, firstPosition: place.firstPosition, tracks: tracks)
  }

  /// No `stream.mp4` can begin: its media has no key frame, and the encoder makes none.
  package var lacksKeyFrames: Bool {
    state.withLock { state in
      // The init segment alone.
      state.warnings.contains(.onlyGradualRefresh) && state.life.epoch.piecesSinceLastKeyFrame().count < 2
    }
  }

  /// Removes a viewer whose response has ended. Call on its loop.
  package func leave(key: ObjectIdentifier, eventLoop: any EventLoop) {
    state.withLock { $0.subscribers.leave(eventLoop) }?.remove(key)
  }

  /// Starts a response on the writer's loop with a segment, from `offset` bytes of the track's layout on. It grows and ends with
  /// the segment.
  package func follow(
    _ writer: LiveBodyWriter, key: ObjectIdentifier, epoch: String, _ rendition: Rendition, sequenceNumber: Int,
    track: TrackID?, offset: Int
  ) {
    let (segment, followers) = state.withLock { state -> (LiveSegment?, SegmentFollowers?) in
      guard let window = state.life.window(ofEpoch: epoch, rendition), let segment = window.segment(sequenceNumber)
      else { return (nil, nil) }
      // Only the current epoch grows; its rungs also shortly after its end.
      guard epoch == state.life.epoch.id, !segment.isComplete, !window.isEnded else { return (segment, nil) }
      return (segment, state.subscribers.follow(sequenceNumber, rendition, on: writer.eventLoop))
    }
    if let segment {
      let pieces = segment.pieces(of: track)
      let length = pieces.totalLength
      if offset < length { writer.write(pieces.slice(offset..<length)) }
      if let followers { return followers.add(writer, key: key, segment, track: track) }
    }
    writer.finish()
  }

  /// Removes a response that was aborted. Call on its loop.
  package func unfollow(key: ObjectIdentifier, _ rendition: Rendition, eventLoop: any EventLoop) {
    state.withLock { $0.subscribers.followers(of: rendition, on: eventLoop) }?.remove(key)
  }
}
