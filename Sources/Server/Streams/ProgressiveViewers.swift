package import FMP4
internal import NIOCore
package import Storage

/// The viewers of `stream.mp4` on one event loop. A fragment is passed once to each loop, and from there to its viewers by
/// direct calls.
package final class LoopViewers: Sendable {
  let eventLoop: any EventLoop
  private let viewers: NIOLoopBoundBox<[ObjectIdentifier: Viewer]>

  private struct Viewer {
    let writer: LiveBodyWriter
    /// The viewer already has the fragments before this position.
    let firstPosition: Int
    /// Nil for the first track of each kind.
    let tracks: [TrackID]?
  }

  init(eventLoop: any EventLoop) {
    self.eventLoop = eventLoop
    viewers = .makeBoxSendingValue([:], eventLoop: eventLoop)
  }

  /// Call on the loop. `firstPosition` is the position of the first fragment that the viewer does not have.
  package func add(_ writer: LiveBodyWriter, key: ObjectIdentifier, firstPosition: Int, tracks: [TrackID]? = nil) {
    viewers.value[key] = Viewer(writer: writer, firstPosition: firstPosition, tracks: tracks)
  }

  /// Call on the loop.
  package func remove(_ key: ObjectIdentifier) {
    viewers.value[key] = nil
  }

  /// Call from any thread. `pieces` are given the tracks of a viewer.
  func deliver(position: Int, _ pieces: @escaping @Sendable ([TrackID]?) -> [BodyPiece]) {
    eventLoop.execute {
      for viewer in self.viewers.value.values where viewer.firstPosition <= position {
        let own = pieces(viewer.tracks)
        if !own.isEmpty { viewer.writer.write(own) }
      }
    }
  }

  /// Call from any thread. Ends the responses with these tracks that joined before a position.
  func finish(before position: Int, where isMeant: @escaping @Sendable ([TrackID]?) -> Bool) {
    eventLoop.execute {
      for (key, viewer) in self.viewers.value where viewer.firstPosition <= position && isMeant(viewer.tracks) {
        self.viewers.value[key] = nil
        viewer.writer.finish()
      }
    }
  }

  /// Call from any thread. Ends all responses, because the stream ends or its parameters change. No viewer may be added after
  /// that.
  func finish() {
    eventLoop.execute {
      let finished = self.viewers.value
      self.viewers.value = [:]
      for viewer in finished.values { viewer.writer.finish() }
    }
  }
}
