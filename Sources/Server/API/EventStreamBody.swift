internal import Control
internal import HTTP
internal import NIOCore
internal import Storage
internal import Synchronization

/// Events as they come, as server-sent events (WHATWG HTML §9.2): first those behind the client's last one, then each new one. A
/// comment line every 15 s keeps proxies from closing the connection. A client that reads slowly is served slowly: events stay in
/// the log, and only some are on the way.
final class EventStreamBody: LiveBody {
  /// The most bytes that wait for the client before more are read from the log.
  private static let backlog = 64 << 10
  private static let page = 100
  private static let tick = TimeAmount.seconds(1)
  private static let ticksPerBeat = 15

  private let log: EventLog
  private let filter: EventFilter
  /// Nil for HEAD, which sends no body.
  private let place: EventStreams.Place?
  private let isCalled = Atomic(false)
  private let state: Mutex<State>

  private struct State {
    var position: Int64
    var follower: Int?
    var ticking: RepeatedTask?
    var silentTicks = 0
  }

  /// - Parameter position: the event behind which the stream begins.
  init(log: EventLog, after position: Int64, _ filter: EventFilter, place: EventStreams.Place?) {
    (self.log, self.filter, self.place) = (log, filter, place)
    state = Mutex(State(position: position))
  }

  func start(_ writer: LiveBodyWriter) {
    Self.write(": weir\nretry: 2000\n\n", writer)
    let follower = log.follow { [weak self] in
      guard let self, !isCalled.exchange(true, ordering: .acquiringAndReleasing) else { return }
      writer.eventLoop.execute { self.send(to: writer) }
    }
    let ticking = writer.eventLoop.scheduleRepeatedTask(initialDelay: Self.tick, delay: Self.tick) { [weak self] _ in
      self?.beat(writer)
    }
    state.withLock { ($0.follower, $0.ticking) = (follower, ticking) }
    send(to: writer)
  }

  func stop() {
    let (follower, ticking) = state.withLock { state in
      defer { (state.follower, state.ticking) = (nil, nil) }
      return (state.follower, state.ticking)
    }
    if let follower { log.unfollow(follower) }
    ticking?.cancel()
  }

  private func beat(_ writer: LiveBodyWriter) {
    let isDue = state.withLock { state in
      state.silentTicks += 1
      return state.silentTicks >= Self.ticksPerBeat
    }
    if isDue, writer.backlog == 0 {
      state.withLock { $0.silentTicks = 0 }
      Self.write(":\n\n", writer)
    }
    send(to: writer)
  }

  /// Called on the event loop.
  private func send(to writer: LiveBodyWriter) {
    isCalled.store(false, ordering: .releasing)
    while writer.isOpen, writer.backlog < Self.backlog {
      let isEnding = log.isEnding
      let before = state.withLock { $0.position }
      let page = log.page(after: before, limit: Self.page, filter)
      state.withLock { $0.position = page.through }
      var text = ""
      if let next = page.gapUntil { text = "event: gap\ndata: {\"after\":\(before),\"from\":\(next)}\n\n" }
      for event in page.events { text += "id: \(event.id)\nevent: \(event.kind.rawValue)\ndata: \(event.json)\n\n" }
      if !text.isEmpty {
        state.withLock { $0.silentTicks = 0 }
        Self.write(text, writer)
      }
      if page.isMore { continue }
      guard isEnding else { return }
      stop()
      return writer.finish()
    }
  }

  private static func write(_ text: String, _ writer: LiveBodyWriter) {
    writer.write([.bytes(ByteBuffer(string: text))])
  }
}
