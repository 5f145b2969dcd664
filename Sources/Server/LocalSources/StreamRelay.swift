internal import FMP4
internal import NIOCore
internal import Publishing
internal import Streams
internal import Synchronization

/// A stream's publisher as the fallback of another stream, from its next key frame on. It ends where that publisher is away. What
/// waits to be passed on is bounded; beyond it, media is left out up to a key frame.
final class StreamRelay: FallbackRun, SampleFollower {
  /// Bytes that may wait.
  static let mostWaiting = 8 << 20

  private struct State {
    var waiting = 0
    /// Media is left out until a key frame comes and nothing waits.
    var isShedding = false
  }

  private let other: LiveStream
  private let state = Mutex(State())
  private let events: AsyncStream<MediaEvent>.Continuation

  /// Nil where the publisher of the other stream is away.
  init?(from other: LiveStream, to gate: any PublishGate, of stream: StreamName) {
    self.other = other
    let (queue, events) = AsyncStream.makeStream(of: MediaEvent.self)
    self.events = events
    guard other.relay(to: self) else { return nil }
    let request = PublishRequest(
      stream: stream, key: nil, protocolName: "stream", remoteAddress: "this server", origin: .server
    ) { _ in }
    Task { [weak other] in
      guard let sink = try? await gate.admit(request) else { return }
      var start = LateStart()
      passing: for await event in queue {
        self.passed(event)
        for event in start.take(event) where sink.receive(event) != .accepted { break passing }
      }
      other?.endRelay(to: self)
    }
  }

  func stop() { events.finish() }

  func receive(_ event: MediaEvent) {
    let (isIn, breaks) = state.withLock { state -> (Bool, Bool) in
      guard case .sample(let sample) = event else { return (true, false) }
      let size = sample.payload.readableBytes
      let breaks = state.isShedding && sample.isSync && state.waiting == 0
      if breaks { state.isShedding = false }
      if state.waiting + size > Self.mostWaiting { state.isShedding = true }
      guard !state.isShedding else { return (false, false) }
      state.waiting += size
      return (true, breaks)
    }
    if breaks { events.yield(.discontinuity) }
    if isIn { events.yield(event) }
    if case .end = event { events.finish() }
  }

  private func passed(_ event: MediaEvent) {
    guard case .sample(let sample) = event else { return }
    state.withLock { $0.waiting -= sample.payload.readableBytes }
  }
}
