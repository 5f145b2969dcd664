internal import NIOCore
internal import Storage

/// An endless body on its way to one viewer: whom to tell when the viewer goes.
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

  /// The viewer is gone.
  func stop() {
    guard let writer else { return }
    self.writer = nil
    writer.detach()
    body.stop()
  }
}
