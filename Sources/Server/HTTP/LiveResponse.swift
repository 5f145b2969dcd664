internal import NIOCore
internal import Storage

/// An endless body that is sent to one viewer. Stops the body when the viewer disconnects.
final class LiveResponse {
  private let body: any LiveBody
  private var writer: LiveBodyWriter?

  init(_ body: any LiveBody) {
    self.body = body
  }

  func start(on eventLoop: any EventLoop, sink: any LiveBodySink) {
    let writer = LiveBodyWriter(eventLoop: eventLoop, sink: sink)
    self.writer = writer
    body.start(writer)
  }

  /// The viewer has disconnected.
  func stop() {
    guard let writer else { return }
    self.writer = nil
    writer.detach()
    body.stop()
  }
}
