internal import Basics
internal import FMP4
internal import Ingest
internal import NIOCore
internal import Synchronization

/// The current viewers: clients that requested media or a playlist of a stream within its last three target durations, and
/// endless responses (`stream.mp4`) and sessions of WebRTC while they last. Counts viewers for the API and refuses new ones when the server is full.
///
/// When more than 90 % of the places are taken, an address may have at most half of all. When all are taken, a new viewer can
/// get the newest place of the address with most places. That address must have more places than the new viewer's would then
/// have. No other active viewer is dropped.
final class ViewerRegistry: Sendable {
  private let places: Atomic<Int>
  /// The most viewers at once. Lowering it ends no viewer.
  var limit: Int {
    get { places.load(ordering: .relaxed) }
    set { places.store(newValue, ordering: .relaxed) }
  }

  private let clock: SteadyClock
  private let events: EventLog?
  private let state = Mutex(State())

  private struct Viewer {
    /// The number of its place without an endless response. Later places have higher numbers.
    var number: Int
    var expiry: MonotonicTime
    /// The protocol of its requests, or of an endless response after which it may return. Nil until one shows it.
    var requested: Delivery?
    /// Its open endless responses, oldest first.
    var seats: [OpenSeat] = []

    /// Its number of places: one for each endless response, at least one. Playlist requests of the same client add none.
    var weight: Int { max(1, seats.count) }

    /// Whether one of its places has this number.
    func has(_ number: Int) -> Bool {
      guard !seats.isEmpty else { return self.number == number }
      var (low, high) = (0, seats.count)
      while low < high {
        let middle = (low + high) / 2
        if seats[middle].number < number { low = middle + 1 } else { high = middle }
      }
      return low < seats.count && seats[low].number == number
    }

    func isPresent(_ now: MonotonicTime) -> Bool { !seats.isEmpty || expiry > now }

    mutating func renew(_ expiry: MonotonicTime, _ delivery: Delivery?) {
      self.expiry = expiry
      if let delivery { requested = delivery }
    }
  }

  /// A place by address. Later places have higher numbers.
  private struct Place {
    let number: Int
    let stream: StreamName
    let client: ClientID
  }

  private struct OpenSeat {
    let number: Int
    let id = SessionID(.viewer)
    let since: MonotonicTime
    let delivery: Delivery
    weak let seat: ViewerSeat?
  }

  private struct State {
    var streams: [StreamName: [ClientID: Viewer]] = [:]
    /// The taken places: in all, and by address.
    var total = 0
    var places = AddressPlaces<NetworkAddress, Place>()
    var numbered = 0
    /// Refused requests, and places that were given to another address.
    var refused = 0
    var displaced = 0
    var nextSweep = MonotonicTime.zero

    mutating func number() -> Int {
      numbered &+= 1
      return numbered
    }

    mutating func set(_ viewer: Viewer?, _ stream: StreamName, _ client: ClientID) {
      let before = streams[stream]?[client]
      let more = (viewer?.weight ?? 0) - (before?.weight ?? 0)
      streams[stream, default: [:]][client] = viewer
      total += more
      if let host = client.host { places.change(host, by: more) }
    }

    /// A client has the place `number` now.
    mutating func note(_ number: Int, _ stream: StreamName, _ client: ClientID) {
      guard let host = client.host else { return }
      let streams = streams
      places.add(Place(number: number, stream: stream, client: client), of: host) { Self.isTaken($0, in: streams) }
    }

    private static func isTaken(_ place: Place, in streams: [StreamName: [ClientID: Viewer]]) -> Bool {
      streams[place.stream]?[place.client]?.has(place.number) ?? false
    }

    mutating func sweep(now: MonotonicTime, nextSweep: MonotonicTime) {
      self.nextSweep = nextSweep
      for (stream, clients) in streams {
        for (client, viewer) in clients where !viewer.isPresent(now) { set(nil, stream, client) }
        if streams[stream]?.isEmpty ?? false { streams[stream] = nil }
      }
    }

    /// Frees the newest place of the address with most places, if it has more than the new viewer's address will have. Returns
    /// false when there is none. `seat` is the endless response that must end.
    mutating func makeRoom(for host: NetworkAddress?) -> (isFree: Bool, seat: ViewerSeat?) {
      // Two addresses with equally many places must not replace each other without end.
      guard places.most > places.count(of: host) + 1, let largest = places.largest, let place = newest(of: largest),
        var left = streams[place.stream]?[place.client]
      else { return (false, nil) }
      displaced += 1
      let seat = left.seats.popLast()?.seat
      set(left.seats.isEmpty ? nil : left, place.stream, place.client)
      return (true, seat)
    }

    private mutating func newest(of host: NetworkAddress) -> Place? {
      let streams = streams
      return places.newest(of: host) { Self.isTaken($0, in: streams) }
    }
  }

  private static let sweepInterval: Int64 = 1_000_000_000

  init(limit: Int, clock: SteadyClock, events: EventLog? = nil) {
    places = Atomic(limit)
    self.clock = clock
    self.events = events
  }

  /// Records a request of a client. False when it is new and the server is full. `lifetime` is how long it counts as a viewer
  /// from now on. `delivery` is the protocol, if the request shows it.
  func touch(stream: StreamName, client: ClientID, lifetime: MediaTime, delivery: Delivery? = nil) -> Bool {
    let now = clock.monotonic()
    let expiry = now &+ lifetime.nanoseconds
    let (isAdmitted, seat) = state.withLock { state -> (Bool, ViewerSeat?) in
      if now >= state.nextSweep { state.sweep(now: now, nextSweep: now &+ Self.sweepInterval) }
      if state.streams[stream]?[client]?.renew(expiry, delivery) != nil { return (true, nil) }
      let room = takeRoom(for: client, &state)
      guard room.isFree else { return room }
      let number = state.number()
      state.set(Viewer(number: number, expiry: expiry, requested: delivery), stream, client)
      state.note(number, stream, client)
      return room
    }
    seat?.revoke()
    if !isAdmitted { tellOfRefusal(stream, client) }
    return isAdmitted
  }

  private func tellOfRefusal(_ stream: StreamName, _ client: ClientID) {
    events?.tell(
      .viewersRefused, of: stream.description, by: client.host?.hostText, ["maxViewers": .whole(Int64(limit))])
  }

  /// Finds room for one more place of a client.
  private func takeRoom(for client: ClientID, _ state: inout State) -> (isFree: Bool, seat: ViewerSeat?) {
    let hasMuch = state.places.count(of: client.host) >= max(1, limit / 2)
    guard !hasMuch || state.total * 10 <= limit * 9 else {
      state.refused += 1
      return (false, nil)
    }
    guard state.total >= limit else { return (true, nil) }
    let room = state.makeRoom(for: client.host)
    if !room.isFree { state.refused += 1 }
    return room
  }

  /// Takes a place for an endless response, or for a session of WebRTC. Nil when the server is full.
  ///
  /// - Parameter lifetime: how long the client counts as a viewer after the response, as it may return.
  func seat(
    stream: StreamName, client: ClientID, lifetime: MediaTime, delivery: Delivery = .mp4
  ) -> ViewerSeat? {
    let now = clock.monotonic()
    let (own, others) = state.withLock { state -> (ViewerSeat?, ViewerSeat?) in
      if now >= state.nextSweep { state.sweep(now: now, nextSweep: now &+ Self.sweepInterval) }
      let known = state.streams[stream]?[client]
      // The first endless response of an active viewer needs no further place.
      let isMore = known.map { !$0.seats.isEmpty } ?? true
      let room: (isFree: Bool, seat: ViewerSeat?) = isMore ? takeRoom(for: client, &state) : (true, nil)
      guard room.isFree else { return (nil, nil) }
      let number = state.number()
      let seat = ViewerSeat { [weak self] in
        self?.leave(number, stream: stream, client: client, lifetime: lifetime)
      }
      var viewer = known ?? Viewer(number: number, expiry: now)
      viewer.seats.append(OpenSeat(number: number, since: now, delivery: delivery, seat: seat))
      state.set(viewer, stream, client)
      state.note(number, stream, client)
      return (seat, room.seat)
    }
    others?.revoke()
    if own == nil { tellOfRefusal(stream, client) }
    return own
  }

  private func leave(_ number: Int, stream: StreamName, client: ClientID, lifetime: MediaTime) {
    let expiry = clock.monotonic() &+ lifetime.nanoseconds
    state.withLock { state in
      guard var viewer = state.streams[stream]?[client],
        let index = viewer.seats.firstIndex(where: { $0.number == number })
      else { return }
      let delivery = viewer.seats.remove(at: index).delivery
      if viewer.seats.isEmpty { viewer.number = number }
      if lifetime > .zero, expiry > viewer.expiry { (viewer.expiry, viewer.requested) = (expiry, delivery) }
      state.set(viewer, stream, client)
    }
  }

  /// The open endless responses, in no order.
  var sessions: [ViewerSession] {
    state.withLock { state in
      state.streams.flatMap { stream, clients in
        clients.flatMap { client, viewer in
          viewer.seats.map {
            ViewerSession(
              id: $0.id, stream: stream, host: client.host, since: $0.since, delivery: $0.delivery)
          }
        }
      }
    }
  }

  /// One of them.
  func session(_ id: SessionID) -> ViewerSession? {
    state.withLock { state in
      for (stream, clients) in state.streams {
        for (client, viewer) in clients {
          guard let seat = viewer.seats.first(where: { $0.id == id }) else { continue }
          return ViewerSession(
            id: seat.id, stream: stream, host: client.host, since: seat.since, delivery: seat.delivery)
        }
      }
      return nil
    }
  }

  /// Ends an endless response. False if there is none of that id.
  func endSession(_ id: SessionID) -> Bool {
    let seat = state.withLock { state in
      state.streams.values.lazy.flatMap(\.values).flatMap(\.seats).first { $0.id == id }?.seat
    }
    seat?.revoke()
    return seat != nil
  }

  /// The current viewers of a stream.
  func count(of stream: StreamName) -> Int {
    let now = clock.monotonic()
    return state.withLock { state in
      state.streams[stream]?.values.reduce(0) { $1.isPresent(now) ? $0 + $1.weight : $0 } ?? 0
    }
  }

  /// All current viewers by stream and protocol, the refused requests so far, and the places given to another address.
  var counts: (streams: [StreamName: [Delivery?: Int]], refused: Int, displaced: Int) {
    let now = clock.monotonic()
    return state.withLock { state in
      state.sweep(now: now, nextSweep: now &+ Self.sweepInterval)
      let streams = state.streams.mapValues { clients in
        clients.values.reduce(into: [Delivery?: Int]()) { counts, viewer in
          if viewer.seats.isEmpty { counts[viewer.requested, default: 0] += 1 }
          for seat in viewer.seats { counts[seat.delivery, default: 0] += 1 }
        }
      }
      return (streams, state.refused, state.displaced)
    }
  }
}

/// The place of a viewer during an endless response. The last reference frees it, so that any end of a response does.
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

  /// Calls `end`, on any thread, when the place is given to another viewer; at once when it already was.
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
