internal import FMP4
internal import Ingest
internal import NIOCore
internal import Synchronization

/// Who is watching: a client that asked for media or a playlist of a stream within the stream's last three target
/// durations, and each endless response (`stream.mp4`) while it lasts: it asks once. Counts viewers for the API and
/// refuses new ones when the server is full; nobody who is playing is dropped.
final class ViewerRegistry: Sendable {
  private let limit: Int
  private let clock: SteadyClock
  private let state = Mutex(State())

  private struct Viewer {
    /// Monotonic nanoseconds.
    var expiry: Int64
    /// Nil before it has asked for something that tells.
    var delivery: Delivery?
    /// Endless responses that it has open.
    var seats = 0

    /// As how many it counts: an endless response is one viewer, and one that also asks for playlists is the same.
    var weight: Int { max(1, seats) }

    func isPresent(_ now: Int64) -> Bool { seats > 0 || expiry > now }

    mutating func renew(_ expiry: Int64, _ delivery: Delivery?) {
      self.expiry = expiry
      if let delivery { self.delivery = delivery }
    }
  }

  private struct State {
    var streams: [StreamName: [ClientID: Viewer]] = [:]
    var total = 0
    /// Requests for which there was no room.
    var refused = 0
    var nextSweep: Int64 = 0

    mutating func sweep(now: Int64, nextSweep: Int64) {
      self.nextSweep = nextSweep
      var total = 0
      for (stream, clients) in streams {
        let present = clients.filter { $0.value.isPresent(now) }
        streams[stream] = present.isEmpty ? nil : present
        total += present.values.reduce(0) { $0 + $1.weight }
      }
      self.total = total
    }
  }

  private static let sweepInterval: Int64 = 1_000_000_000

  init(limit: Int, clock: SteadyClock) {
    self.limit = limit
    self.clock = clock
  }

  /// A client asks for something of a stream. False when it is new and there is no room. `lifetime` is how long it
  /// counts as a viewer from now on, `delivery` how it watches, where what it asks for tells.
  func touch(stream: StreamName, client: ClientID, lifetime: MediaTime, delivery: Delivery? = nil) -> Bool {
    let now = clock.monotonicNanoseconds()
    let expiry = now &+ lifetime.nanoseconds
    return state.withLock { state in
      if now >= state.nextSweep { state.sweep(now: now, nextSweep: now &+ Self.sweepInterval) }
      if state.streams[stream]?[client] == nil {
        guard state.total < limit else {
          state.refused += 1
          return false
        }
        state.total += 1
      }
      state.streams[stream, default: [:]][client, default: Viewer(expiry: expiry)].renew(expiry, delivery)
      return true
    }
  }

  /// A client asks for an endless response. Nil where there is no room for one more.
  ///
  /// - Parameter lifetime: how long the client counts as a viewer after the response has ended: it may come again.
  func seat(stream: StreamName, client: ClientID, lifetime: MediaTime) -> ViewerSeat? {
    let now = clock.monotonicNanoseconds()
    let isFree = state.withLock { state in
      if now >= state.nextSweep { state.sweep(now: now, nextSweep: now &+ Self.sweepInterval) }
      let known = state.streams[stream]?[client]
      var viewer = known ?? Viewer(expiry: now)
      viewer.seats += 1
      viewer.delivery = .mp4
      let more = viewer.weight - (known?.weight ?? 0)
      guard more == 0 || state.total + more <= limit else {
        state.refused += 1
        return false
      }
      state.total += more
      state.streams[stream, default: [:]][client] = viewer
      return true
    }
    guard isFree else { return nil }
    return ViewerSeat { [self] in leave(stream: stream, client: client, lifetime: lifetime) }
  }

  private func leave(stream: StreamName, client: ClientID, lifetime: MediaTime) {
    let expiry = clock.monotonicNanoseconds() &+ lifetime.nanoseconds
    state.withLock { state in
      guard var viewer = state.streams[stream]?[client], viewer.seats > 0 else { return }
      let before = viewer.weight
      viewer.seats -= 1
      viewer.expiry = max(viewer.expiry, expiry)
      state.total -= before - viewer.weight
      state.streams[stream]?[client] = viewer
    }
  }

  /// Viewers of a stream now.
  func count(of stream: StreamName) -> Int {
    let now = clock.monotonicNanoseconds()
    return state.withLock { state in
      state.streams[stream]?.values.reduce(0) { $1.isPresent(now) ? $0 + $1.weight : $0 } ?? 0
    }
  }

  /// All viewers now, by stream and by how they watch, and how many requests found no room so far.
  var census: (streams: [StreamName: [Delivery?: Int]], refused: Int) {
    let now = clock.monotonicNanoseconds()
    return state.withLock { state in
      state.sweep(now: now, nextSweep: now &+ Self.sweepInterval)
      let streams = state.streams.mapValues { clients in
        clients.values.reduce(into: [Delivery?: Int]()) { $0[$1.delivery, default: 0] += $1.weight }
      }
      return (streams, state.refused)
    }
  }
}

/// A viewer's place for as long as an endless response lasts. It is given up with the last reference, so that no way in
/// which a response can end forgets it.
final class ViewerSeat: Sendable {
  private let giveUp: @Sendable () -> Void

  fileprivate init(giveUp: @escaping @Sendable () -> Void) {
    self.giveUp = giveUp
  }

  deinit { giveUp() }
}
