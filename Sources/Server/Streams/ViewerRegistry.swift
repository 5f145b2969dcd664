internal import FMP4
internal import Ingest
internal import NIOCore
internal import Synchronization

/// Who is watching: a client that asked for media or a playlist of a stream within the stream's last three target
/// durations, and each endless response (`stream.mp4`) while it lasts: it asks once. Counts viewers for the API and
/// refuses new ones when the server is full.
///
/// Nobody who is playing is dropped, but where one address holds more than half of all places: there a newcomer from
/// another address gets the newest of them.
final class ViewerRegistry: Sendable {
  private let limit: Int
  private let clock: SteadyClock
  private let state = Mutex(State())

  private struct Viewer {
    let host: NetworkAddress?
    /// The later it came, the higher.
    let number: Int
    /// Monotonic nanoseconds.
    var expiry: Int64
    /// Nil before it has asked for something that tells.
    var delivery: Delivery?
    /// Endless responses that it has open, the oldest first.
    var seats: [OpenSeat] = []

    /// As how many it counts: an endless response is one viewer, and one that also asks for playlists is the same.
    var weight: Int { max(1, seats.count) }
    /// That of its newest place.
    var newest: Int { seats.last?.number ?? number }

    func isPresent(_ now: Int64) -> Bool { !seats.isEmpty || expiry > now }

    mutating func renew(_ expiry: Int64, _ delivery: Delivery?) {
      self.expiry = expiry
      if let delivery { self.delivery = delivery }
    }
  }

  private struct OpenSeat {
    let number: Int
    weak let seat: ViewerSeat?
  }

  private struct State {
    var streams: [StreamName: [ClientID: Viewer]] = [:]
    /// Places that are taken: in all, and by address.
    var total = 0
    var hosts: [NetworkAddress?: Int] = [:]
    var numbered = 0
    /// Requests for which there was no room, and places that went to another address.
    var refused = 0
    var displaced = 0
    var nextSweep: Int64 = 0

    mutating func number() -> Int {
      numbered &+= 1
      return numbered
    }

    mutating func set(_ viewer: Viewer?, _ stream: StreamName, _ client: ClientID) {
      let before = streams[stream]?[client]
      let more = (viewer?.weight ?? 0) - (before?.weight ?? 0)
      streams[stream, default: [:]][client] = viewer
      guard more != 0, let host = (viewer ?? before)?.host else {
        total += more
        return
      }
      total += more
      let count = hosts[host, default: 0] + more
      hosts[host] = count > 0 ? count : nil
    }

    mutating func sweep(now: Int64, nextSweep: Int64) {
      self.nextSweep = nextSweep
      for (stream, clients) in streams {
        for (client, viewer) in clients where !viewer.isPresent(now) { set(nil, stream, client) }
        if streams[stream]?.isEmpty ?? false { streams[stream] = nil }
      }
    }

    /// Takes the newest place from the address that has more than half of them, where that is another. False where there
    /// is none; `seat` is then what has to end.
    mutating func makeRoom(for host: NetworkAddress?, limit: Int) -> (isFree: Bool, seat: ViewerSeat?) {
      guard let largest = hosts.max(by: { $0.value < $1.value }), largest.value > limit / 2, largest.key != host,
        let (stream, client, viewer) = newest(of: largest.key)
      else { return (false, nil) }
      displaced += 1
      var left = viewer
      let seat = left.seats.popLast()?.seat
      set(left.seats.isEmpty ? nil : left, stream, client)
      return (true, seat)
    }

    private func newest(of host: NetworkAddress?) -> (StreamName, ClientID, Viewer)? {
      var found: (StreamName, ClientID, Viewer)?
      for (stream, clients) in streams {
        for (client, viewer) in clients where viewer.host == host && viewer.newest > found?.2.newest ?? 0 {
          found = (stream, client, viewer)
        }
      }
      return found
    }
  }

  private static let sweepInterval: Int64 = 1_000_000_000

  init(limit: Int, clock: SteadyClock) {
    self.limit = limit
    self.clock = clock
  }

  /// A client is given something of a stream. False when it is new and there is no room. `lifetime` is how long it
  /// counts as a viewer from now on, `delivery` how it watches, where what it asks for tells.
  func touch(stream: StreamName, client: ClientID, lifetime: MediaTime, delivery: Delivery? = nil) -> Bool {
    let now = clock.monotonicNanoseconds()
    let expiry = now &+ lifetime.nanoseconds
    let (isAdmitted, seat) = state.withLock { state -> (Bool, ViewerSeat?) in
      if now >= state.nextSweep { state.sweep(now: now, nextSweep: now &+ Self.sweepInterval) }
      if state.streams[stream]?[client]?.renew(expiry, delivery) != nil { return (true, nil) }
      let room = takeRoom(1, for: client, &state)
      guard room.isFree else { return room }
      state.set(
        Viewer(host: client.host, number: state.number(), expiry: expiry, delivery: delivery), stream, client)
      return room
    }
    seat?.revoke()
    return isAdmitted
  }

  private func takeRoom(_ count: Int, for client: ClientID, _ state: inout State) -> (isFree: Bool, seat: ViewerSeat?) {
    guard count > 0, state.total + count > limit else { return (true, nil) }
    let room = state.makeRoom(for: client.host, limit: limit)
    if !room.isFree { state.refused += 1 }
    return room
  }

  /// A client asks for an endless response. Nil where there is no room for one more.
  ///
  /// - Parameter lifetime: how long the client counts as a viewer after the response has ended: it may come again.
  func seat(stream: StreamName, client: ClientID, lifetime: MediaTime) -> ViewerSeat? {
    let now = clock.monotonicNanoseconds()
    let (own, others) = state.withLock { state -> (ViewerSeat?, ViewerSeat?) in
      if now >= state.nextSweep { state.sweep(now: now, nextSweep: now &+ Self.sweepInterval) }
      let known = state.streams[stream]?[client]
      // Whoever plays, and opens its first, stays one viewer.
      let isMore = known.map { !$0.seats.isEmpty } ?? true
      let room = takeRoom(isMore ? 1 : 0, for: client, &state)
      guard room.isFree else { return (nil, nil) }
      let number = state.number()
      let seat = ViewerSeat { [weak self] in
        self?.leave(number, stream: stream, client: client, lifetime: lifetime)
      }
      var viewer = known ?? Viewer(host: client.host, number: number, expiry: now)
      viewer.seats.append(OpenSeat(number: number, seat: seat))
      viewer.delivery = .mp4
      state.set(viewer, stream, client)
      return (seat, room.seat)
    }
    others?.revoke()
    return own
  }

  private func leave(_ number: Int, stream: StreamName, client: ClientID, lifetime: MediaTime) {
    let expiry = clock.monotonicNanoseconds() &+ lifetime.nanoseconds
    state.withLock { state in
      guard var viewer = state.streams[stream]?[client],
        let index = viewer.seats.firstIndex(where: { $0.number == number })
      else { return }
      viewer.seats.remove(at: index)
      viewer.expiry = max(viewer.expiry, expiry)
      state.set(viewer, stream, client)
    }
  }

  /// Viewers of a stream now.
  func count(of stream: StreamName) -> Int {
    let now = clock.monotonicNanoseconds()
    return state.withLock { state in
      state.streams[stream]?.values.reduce(0) { $1.isPresent(now) ? $0 + $1.weight : $0 } ?? 0
    }
  }

  /// All viewers now, by stream and by how they watch, how many requests found no room so far, and how many places went
  /// to another address.
  var census: (streams: [StreamName: [Delivery?: Int]], refused: Int, displaced: Int) {
    let now = clock.monotonicNanoseconds()
    return state.withLock { state in
      state.sweep(now: now, nextSweep: now &+ Self.sweepInterval)
      let streams = state.streams.mapValues { clients in
        clients.values.reduce(into: [Delivery?: Int]()) { $0[$1.delivery, default: 0] += $1.weight }
      }
      return (streams, state.refused, state.displaced)
    }
  }
}

/// A viewer's place for as long as an endless response lasts. It is given up with the last reference, so that no way in
/// which a response can end forgets it.
final class ViewerSeat: Sendable {
  private enum Revocation: Sendable {
    case none
    case told(@Sendable () -> Void)
    case over
  }

  private let giveUp: @Sendable () -> Void
  private let revocation = Mutex(Revocation.none)

  fileprivate init(giveUp: @escaping @Sendable () -> Void) {
    self.giveUp = giveUp
  }

  deinit { giveUp() }

  /// `end` is called, on any thread, when the place is given to somebody else; at once where it has been.
  func whenRevoked(_ end: @escaping @Sendable () -> Void) {
    let isOver = revocation.withLock { revocation in
      if case .over = revocation { return true }
      revocation = .told(end)
      return false
    }
    if isOver { end() }
  }

  fileprivate func revoke() {
    let before = revocation.withLock { revocation in
      defer { revocation = .over }
      return revocation
    }
    if case .told(let end) = before { end() }
  }
}
