package import NIOCore

/// How a `LiveBody` sends. Confined to `eventLoop`: every call from elsewhere traps. What is written after the end is
/// dropped.
package final class LiveBodyWriter: Sendable {
  /// The connection's loop, on which all of this is called.
  package let eventLoop: any EventLoop
  private let sink: NIOLoopBoundBox<(any LiveBodySink)?>

  package init(eventLoop: any EventLoop, sink: any LiveBodySink) {
    self.eventLoop = eventLoop
    self.sink = NIOLoopBoundBox(sink, eventLoop: eventLoop)
  }

  /// Whether anybody still sees what is written.
  package var isOpen: Bool { sink.value != nil }

  /// Bytes written and not yet taken by the socket.
  package var backlog: Int { sink.value?.liveBacklog ?? 0 }

  /// Sends the pieces, in order, as one chunk. They are sent straight from where they are: file ranges must stay
  /// unchanged.
  package func write(_ pieces: [BodyPiece]) { sink.value?.writeLive(pieces) }

  /// Ends the body as it should end: the viewer knows that it has all of it.
  package func finish() {
    let last = sink.value
    sink.value = nil
    last?.finishLive()
  }

  /// The connection is gone.
  package func detach() { sink.value = nil }
}

/// The connection behind a `LiveBodyWriter`.
package protocol LiveBodySink: AnyObject {
  var liveBacklog: Int { get }
  func writeLive(_ pieces: [BodyPiece])
  func finishLive()
}
