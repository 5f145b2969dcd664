internal import FMP4
internal import NIOCore
internal import Storage

/// The viewers of `stream.mp4` on one event loop. A fragment is handed over once a loop, and reaches its viewers
/// there by plain calls.
final class LoopViewers: Sendable {
  let eventLoop: any EventLoop
  private let viewers: NIOLoopBoundBox<[ObjectIdentifier: Viewer]>

  private struct Viewer {
    let writer: LiveBodyWriter
    /// What was published before this position is already in what the viewer began with.
    let firstPosition: Int
  }

  init(eventLoop: any EventLoop) {
    self.eventLoop = eventLoop
    viewers = .makeBoxSendingValue([:], eventLoop: eventLoop)
  }

  /// On the loop. `firstPosition` is the position of the first fragment that the viewer does not have yet.
  func add(_ writer: LiveBodyWriter, key: ObjectIdentifier, firstPosition: Int) {
    viewers.value[key] = Viewer(writer: writer, firstPosition: firstPosition)
  }

  /// On the loop.
  func remove(_ key: ObjectIdentifier) {
    viewers.value[key] = nil
  }

  /// From any thread.
  func deliver(_ pieces: [BodyPiece], position: Int) {
    eventLoop.execute {
      for viewer in self.viewers.value.values where viewer.firstPosition <= position {
        viewer.writer.write(pieces)
      }
    }
  }

  /// From any thread: all responses end, because the stream does or because its parameters change. Nobody joins an
  /// audience that is finished.
  func finish() {
    eventLoop.execute {
      let finished = self.viewers.value
      self.viewers.value = [:]
      for viewer in finished.values { viewer.writer.finish() }
    }
  }
}
