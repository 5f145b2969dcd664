internal import Base
internal import FMP4
package import Publishing
internal import Synchronization

/// What takes the place of a publisher that is away.
package enum Fallback: Sendable, Hashable {
  /// The test pattern.
  case test
  /// A film or a picture of this machine, in a loop.
  case file(path: String)
  /// The publisher of another stream.
  case stream(StreamName)
}

/// Starts the media of fallbacks. Safe to use from any thread.
package protocol FallbackSources: Sendable {
  /// Begins to publish through the gate. Nil where that is not possible now: another stream is away itself.
  func begin(_ fallback: Fallback, of stream: StreamName, through gate: any PublishGate) -> (any FallbackRun)?
}

/// The media of a fallback while it is published.
package protocol FallbackRun: AnyObject, Sendable {
  /// Ends it soon. Does not block.
  func stop()
}

/// A stream's own publication, which takes the place of a publisher that is away.
struct StandIn: Sendable {
  let number: Int
  let fallback: Fallback
  let since: MonotonicTime
  var run: (any FallbackRun)?
  /// Viewers get its media.
  var isOnAir = false
}

/// Whose media viewers get: the publisher's, or those of the stand-in.
struct OnAir: Sendable {
  var standIn: StandIn?
  /// Of the publisher, where it has joined or come back while the stand-in was on air.
  var late: LateStart?
  /// The newest tracks and clock of the publisher.
  var tracks: [TrackDescription] = []
  var anchor: WallClockAnchor?
  /// Other streams whose fallback this one is.
  var relays: [ObjectIdentifier: any SampleFollower] = [:]
  /// Why the last stand-in ended by itself.
  var trouble: String?
  /// No stand-in begins before.
  var notBefore: MonotonicTime?
  private var count = 0

  var isStoodIn: Bool { standIn?.isOnAir == true }

  mutating func nextNumber() -> Int {
    count += 1
    return count
  }

  /// Keeps what a publisher's event says of its tracks and times.
  mutating func note(_ event: MediaEvent) {
    switch event {
    case .tracks(let tracks): self.tracks = tracks
    case .clock(let anchor): self.anchor = anchor
    case .sample, .progress, .discontinuity, .end: break
    }
  }

  /// Another publisher begins.
  mutating func beginPublication() {
    (tracks, anchor) = ([], nil)
    late = isStoodIn ? LateStart() : nil
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

/// What viewers of a stream get.
package enum Input: String, Sendable, Hashable, CaseIterable {
  case publisher, fallback
}

extension LiveStream.State {
  /// Nil while nobody sends.
  var onAir: Input? {
    if air.isStoodIn { return .fallback }
    return publisher.holder == nil ? nil : .publisher
  }
}

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
