package import Base
internal import FMP4
package import Logging
package import Publishing

/// A gate whose publications may have media that outputs do not carry: it is decoded before the stream sees it.
package struct DecodedMediaGate: PublishGate {
  private let inner: any PublishGate
  private let launcher: WorkerLauncher
  private let room: WorkerRoom
  private let logger: Logger
  private let output: @Sendable (StreamName) -> AudioSpecification?

  /// - Parameters:
  ///   - room: asked before each decoder.
  ///   - output: the audio codec that a stream's settings ask for. Nil: AAC.
  package init(
    _ inner: any PublishGate, launcher: WorkerLauncher, room: WorkerRoom, logger: Logger,
    output: @escaping @Sendable (StreamName) -> AudioSpecification?
  ) {
    self.inner = inner
    self.launcher = launcher
    self.room = room
    self.logger = logger
    self.output = output
  }

  package func admit(_ request: PublishRequest) async throws(PublishRefusal) -> any MediaSink {
    let sink = try await inner.admit(request)
    var logger = logger
    logger[metadataKey: "stream"] = "\(request.stream)"
    return DecodedMediaSink(
      sink, as: output(request.stream) ?? AudioSpecification(.aac), launcher: launcher, room: room,
      logger: logger)
  }

  package func account(
    of stream: StreamName, end: @escaping @Sendable (_ reason: String) -> Void
  ) -> (any HeldBytes)? { inner.account(of: stream, end: end) }

  package func note(_ refused: RefusedPublication) { inner.note(refused) }
}
