internal import FMP4
internal import NIOCore
internal import Storage

/// The viewers of `stream.mp4` on one event loop. A fragment is passed once to each loop, and from there to its viewers by
/// direct calls.
final class LoopViewers: Sendable {
  let eventLoop: any EventLoop
  private let viewers: NIOLoopBoundBox<[ObjectIdentifier: Viewer]>

  private struct Viewer {
    let writer: LiveBodyWriter
    /// The viewer already has the fragments before this position.
    let firstPosition: Int
  }

  init(eventLoop: any EventLoop) {
    self.eventLoop = eventLoop
    viewers = .makeBoxSendingValue([:], eventLoop: eventLoop)
  }

  /// Call on the loop. `firstPosition` is the position of the first fragment that the viewer does not have.
  func add(_ writer: LiveBodyWriter, key: ObjectIdentifier, firstPosition: Int) {
    viewers.value[key] = Viewer(writer: writer, firstPosition: firstPosition)
  }

  /// Call on the loop.
  func remove(_ key: ObjectIdentifier) {
    viewers.value[key] = nil
  }

  /// Call from any thread.
  func deliver(_ pieces: [BodyPiece], position: Int) {
    eventLoop.execute {
      for viewer in self.viewers.value.values where viewer.firstPosition <= position {
        viewer.writer.write(pieces)
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
