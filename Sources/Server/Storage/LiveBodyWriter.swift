package import NIOCore

/// Writes the body of a `LiveBody`. Confined to `eventLoop`: a call from another thread traps. Writes after the end are
/// dropped.
package final class LiveBodyWriter: Sendable {
  /// The event loop of the connection.
  package let eventLoop: any EventLoop
  private let sink: NIOLoopBoundBox<(any LiveBodySink)?>

  package init(eventLoop: any EventLoop, sink: any LiveBodySink) {
    self.eventLoop = eventLoop
    self.sink = NIOLoopBoundBox(sink, eventLoop: eventLoop)
  }

  /// Whether the connection still takes bytes.
  package var isOpen: Bool { sink.value != nil }

  /// Bytes that were written and that the socket has not taken yet.
  package var backlog: Int { sink.value?.liveBacklog ?? 0 }

  /// Sends the pieces, in order, as one chunk. They are not copied, so file ranges must stay unchanged.
  package func write(_ pieces: [BodyPiece]) { sink.value?.writeLive(pieces) }

  /// Ends the body regularly, so that the viewer can tell that it is complete.
  package func finish() {
    let last = sink.value
    sink.value = nil
    last?.finishLive()
  }

  /// The connection has closed.
  package func detach() { sink.value = nil }
}

/// The connection behind a `LiveBodyWriter`.
package protocol LiveBodySink: AnyObject {
  var liveBacklog: Int { get }
  func writeLive(_ pieces: [BodyPiece])
  func finishLive()
}
