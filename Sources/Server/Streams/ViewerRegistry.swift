internal import FMP4
internal import Ingest
internal import NIOCore
internal import Synchronization

/// Who is watching: a client that asked for media or a playlist of a stream within the stream's last three target
/// durations. Counts viewers for the API and refuses new ones when the server is full; nobody who is playing is
/// dropped.
final class ViewerRegistry: Sendable {
  private let limit: Int
  private let clock: SteadyClock
  private let state = Mutex(State())

  private struct Viewer {
    /// Monotonic nanoseconds.
    var expiry: Int64
    /// Nil before it has asked for something that tells.
    var delivery: Delivery?

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
        let present = clients.filter { $0.value.expiry > now }
        streams[stream] = present.isEmpty ? nil : present
        total += present.count
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

  /// Viewers of a stream now.
  func count(of stream: StreamName) -> Int {
    let now = clock.monotonicNanoseconds()
    return state.withLock { state in
      state.streams[stream]?.values.count { $0.expiry > now } ?? 0
    }
  }

  /// All viewers now, by stream and by how they watch, and how many requests found no room so far.
  var census: (streams: [StreamName: [Delivery?: Int]], refused: Int) {
    let now = clock.monotonicNanoseconds()
    return state.withLock { state in
      state.sweep(now: now, nextSweep: now &+ Self.sweepInterval)
      let streams = state.streams.mapValues { clients in
        clients.values.reduce(into: [Delivery?: Int]()) { $0[$1.delivery, default: 0] += 1 }
      }
      return (streams, state.refused)
    }
  }
}
