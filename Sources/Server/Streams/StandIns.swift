internal import Base
internal import FMP4
internal import Publishing
internal import Synchronization

/// The stand-ins of a server's streams.
final class StandIns: Sendable {
  private let settings: @Sendable (StreamName) -> StreamSettings
  private let sources = Mutex<(any FallbackSources)?>(nil)

  /// `settings` are those of a stream that begins now.
  init(settings: @escaping @Sendable (StreamName) -> StreamSettings) { self.settings = settings }

  /// Without sources nobody stands in.
  func use(_ sources: any FallbackSources) { self.sources.withLock { $0 = sources } }

  /// Begins or ends the stand-in of a stream as it is due.
  func tend(_ stream: LiveStream) {
    guard let sources = sources.withLock({ $0 }) else { return }
    stream.tendStandIn(by: settings(stream.name), sources)
  }

  /// Does so when the publisher has been away for `LiveStream.standInDelay`.
  func tendSoon(_ stream: LiveStream) {
    guard sources.withLock({ $0 }) != nil, settings(stream.name).fallback != nil else { return }
    Task { [weak self, weak stream] in
      try? await Task.sleep(for: .nanoseconds(LiveStream.standInDelay.nanoseconds))
      if let stream { self?.tend(stream) }
    }
  }
}

/// The gate of a stand-in: what is admitted here is no publisher of the stream, and nobody is asked.
final class StandInGate: PublishGate {
  private let stream: LiveStream
  private let number: Int

  init(_ stream: LiveStream, _ number: Int) { (self.stream, self.number) = (stream, number) }

  package func admit(_ request: PublishRequest) async throws(PublishRefusal) -> any MediaSink {
    StandInPublication(stream, number, request.keyFrames)
  }
}

/// A stand-in's access to its stream.
private final class StandInPublication: MediaSink {
  private let stream: LiveStream
  private let number: Int
  private let keyFrames: PublishRequest.KeyFrames

  init(_ stream: LiveStream, _ number: Int, _ keyFrames: PublishRequest.KeyFrames) {
    (self.stream, self.number, self.keyFrames) = (stream, number, keyFrames)
  }

  func receive(_ event: MediaEvent) -> SinkVerdict { stream.receive(event, ofStandIn: number, keyFrames) }
  func warn(_ warning: PublicationWarning) {}
  func withdraw(_ warning: PublicationWarning) {}
}
