package import Base
package import Control
package import FMP4
internal import NIOCore
package import Publishing
internal import Synchronization

/// The current viewers: clients that requested media or a playlist of a stream within its last three target durations, and
/// endless responses (`stream.mp4`) and sessions of WebRTC while they last. Counts viewers for the API and refuses new ones when the server is full.
///
/// When more than 90 % of the places are taken, an address may have at most half of all. When all are taken, a new viewer can
/// get the newest place of the address with most places. That address must have more places than the new viewer's would then
/// have. No other active viewer is dropped.
///
/// A session of WebRTC that is not connected takes no place, though it is counted and listed.
package final class ViewerRegistry: Sendable {
  private let places: Atomic<Int>
  /// The most viewers at once. Lowering it ends no viewer.
  package var limit: Int {
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
    var requested: ViewerProtocol?
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

    mutating func renew(_ expiry: MonotonicTime, _ delivery: ViewerProtocol?) {
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
    var number: Int
    let id: SessionID
    let since: MonotonicTime
    let delivery: ViewerProtocol
    weak let seat: ViewerSeat?
  }

  /// A seat, and whose it is.
  private struct ClientSeat {
    let stream: StreamName
    let client: ClientID
    var seat: OpenSeat

    var session: ViewerSession {
      ViewerSession(id: seat.id, stream: stream, host: client.host, since: seat.since, delivery: seat.delivery)
    }
  }

  private struct State {
    var streams: [StreamName: [ClientID: Viewer]] = [:]
    /// Sessions that are not connected.
    var waiting: [SessionID: ClientSeat] = [:]
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

    /// Whether an endless response or a session of a client needs a further place: the first one of an active viewer does not.
    func needsPlace(_ client: ClientID, of stream: StreamName) -> Bool {
      streams[stream]?[client].map { !$0.seats.isEmpty } ?? true
    }

    /// Gives a client a place that there is.
    mutating func open(_ new: ClientSeat, now: MonotonicTime) {
      var viewer = streams[new.stream]?[new.client] ?? Viewer(number: new.seat.number, expiry: now)
      viewer.seats.append(new.seat)
      set(viewer, new.stream, new.client)
      note(new.seat.number, new.stream, new.client)
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

    /// All endless responses and sessions, in no order.
    var seats: [ClientSeat] {
      streams.flatMap { stream, clients in
        clients.flatMap { client, viewer in
          viewer.seats.map { ClientSeat(stream: stream, client: client, seat: $0) }
        }
      } + waiting.values
    }

    mutating func sweep(now: MonotonicTime, nextSweep: MonotonicTime) {
      self.nextSweep = nextSweep
      for (stream, clients) in streams {
        for (client, viewer) in clients where !viewer.isPresent(now) { set(nil, stream, client) }
        if streams[stream]?.isEmpty ?? false { streams[stream] = nil }
      }
    }

    /// Whether the address with most places has more than the new viewer's address will have. Two addresses with equally many
    /// places must not replace each other without end.
    func canMakeRoom(for host: NetworkAddress?) -> Bool { places.most > places.count(of: host) + 1 }

    /// Frees the newest place of that address. Returns false when there is none. `seat` is the endless response that must end.
    mutating func makeRoom(for host: NetworkAddress?) -> (isFree: Bool, seat: ViewerSeat?) {
      guard canMakeRoom(for: host), let largest = places.largest, let place = newest(of: largest),
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

  package init(limit: Int, clock: SteadyClock, events: EventLog? = nil) {
    places = Atomic(limit)
    self.clock = clock
    self.events = events
  }

  /// Records a request of a client. False when it is new and the server is full. `lifetime` is how long it counts as a viewer
  /// from now on. `delivery` is the protocol, if the request shows it.
  package func touch(stream: StreamName, client: ClientID, lifetime: MediaTime, delivery: ViewerProtocol? = nil) -> Bool
  {
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
    guard mayHaveMore(client, state) else {
      state.refused += 1
      return (false, nil)
    }
    guard state.total >= limit else { return (true, nil) }
    let room = state.makeRoom(for: client.host)
    if !room.isFree { state.refused += 1 }
    return room
  }

  /// Whether an address may have one more place, if there is one.
  private func mayHaveMore(_ client: ClientID, _ state: borrowing State) -> Bool {
    let hasMuch = state.places.count(of: client.host) >= max(1, limit / 2)
    return !hasMuch || state.total * 10 <= limit * 9
  }

  /// A place for a session of WebRTC, which it has when it is connected (`ViewerSeat.connect`). Nil when the server is full.
  package func waitingSeat(stream: StreamName, client: ClientID) -> ViewerSeat? {
    let now = clock.monotonic()
    let own = state.withLock { state -> ViewerSeat? in
      if now >= state.nextSweep { state.sweep(now: now, nextSweep: now &+ Self.sweepInterval) }
      let isFree =
        !state.needsPlace(client, of: stream)
        || mayHaveMore(client, state) && (state.total < limit || state.canMakeRoom(for: client.host))
      guard isFree else {
        state.refused += 1
        return nil
      }
      let id = SessionID(.viewer)
      let seat = ViewerSeat { [weak self] in
        self?.leave(id, stream: stream, client: client, lifetime: .zero)
      } connect: { [weak self] in
        self?.connect(id) ?? false
      }
      let open = OpenSeat(number: state.number(), id: id, since: now, delivery: .webrtc, seat: seat)
      state.waiting[id] = ClientSeat(stream: stream, client: client, seat: open)
      return seat
    }
    if own == nil { tellOfRefusal(stream, client) }
    return own
  }

  private func connect(_ id: SessionID) -> Bool {
    let now = clock.monotonic()
    let (waiting, isFree, others) = state.withLock { state -> (ClientSeat?, Bool, ViewerSeat?) in
      guard var waiting = state.waiting[id] else { return (nil, false, nil) }
      let room = takeRoom(for: waiting.client, of: waiting.stream, &state)
      guard room.isFree else { return (waiting, false, nil) }
      state.waiting[id] = nil
      waiting.seat.number = state.number()
      state.open(waiting, now: now)
      return (waiting, true, room.seat)
    }
    others?.revoke()
    if !isFree, let waiting { tellOfRefusal(waiting.stream, waiting.client) }
    return isFree
  }

  /// Finds room for an endless response or a session of a client.
  private func takeRoom(
    for client: ClientID, of stream: StreamName, _ state: inout State
  ) -> (isFree: Bool, seat: ViewerSeat?) {
    state.needsPlace(client, of: stream) ? takeRoom(for: client, &state) : (true, nil)
  }

  /// Takes a place for an endless response. Nil when the server is full.
  ///
  /// - Parameter lifetime: how long the client counts as a viewer after the response, as it may return.
  package func seat(
    stream: StreamName, client: ClientID, lifetime: MediaTime, delivery: ViewerProtocol = .mp4
  ) -> ViewerSeat? {
    let now = clock.monotonic()
    let (own, others) = state.withLock { state -> (ViewerSeat?, ViewerSeat?) in
      if now >= state.nextSweep { state.sweep(now: now, nextSweep: now &+ Self.sweepInterval) }
      let room = takeRoom(for: client, of: stream, &state)
      guard room.isFree else { return (nil, nil) }
      let id = SessionID(.viewer)
      let seat = ViewerSeat { [weak self] in
        self?.leave(id, stream: stream, client: client, lifetime: lifetime)
      }
      let open = OpenSeat(number: state.number(), id: id, since: now, delivery: delivery, seat: seat)
      state.open(ClientSeat(stream: stream, client: client, seat: open), now: now)
      return (seat, room.seat)
    }
    others?.revoke()
    if own == nil { tellOfRefusal(stream, client) }
    return own
  }

  private func leave(_ id: SessionID, stream: StreamName, client: ClientID, lifetime: MediaTime) {
    let expiry = clock.monotonic() &+ lifetime.nanoseconds
    state.withLock { state in
      guard state.waiting.removeValue(forKey: id) == nil, var viewer = state.streams[stream]?[client],
        let index = viewer.seats.firstIndex(where: { $0.id == id })
      else { return }
      let seat = viewer.seats.remove(at: index)
      if viewer.seats.isEmpty { viewer.number = seat.number }
      if lifetime > .zero, expiry > viewer.expiry { (viewer.expiry, viewer.requested) = (expiry, seat.delivery) }
      state.set(viewer, stream, client)
    }
  }

  /// The open endless responses, in no order.
  package var sessions: [ViewerSession] {
    state.withLock { $0.seats.map(\.session) }
  }

  /// One of them.
  package func session(_ id: SessionID) -> ViewerSession? {
    state.withLock { $0.seats.first { $0.seat.id == id }?.session }
  }

  /// Ends an endless response. False if there is none of that id.
  package func endSession(_ id: SessionID) -> Bool {
    let seat = state.withLock { $0.seats.first { $0.seat.id == id }?.seat.seat }
    seat?.revoke()
    return seat != nil
  }

  /// The current viewers of a stream.
  package func count(of stream: StreamName) -> Int {
    let now = clock.monotonic()
    return state.withLock { state in
      (state.streams[stream]?.values.reduce(0) { $1.isPresent(now) ? $0 + $1.weight : $0 } ?? 0)
        + state.waiting.values.count { $0.stream == stream }
    }
  }

  /// All current viewers by stream and protocol, the refused requests so far, and the places given to another address.
  package var counts: (streams: [StreamName: [ViewerProtocol?: Int]], refused: Int, displaced: Int) {
    let now = clock.monotonic()
    return state.withLock { state in
      state.sweep(now: now, nextSweep: now &+ Self.sweepInterval)
      var streams = state.streams.mapValues { clients in
        clients.values.reduce(into: [ViewerProtocol?: Int]()) { counts, viewer in
          if viewer.seats.isEmpty { counts[viewer.requested, default: 0] += 1 }
          for seat in viewer.seats { counts[seat.delivery, default: 0] += 1 }
        }
      }
      for waiting in state.waiting.values { streams[waiting.stream, default: [:]][.webrtc, default: 0] += 1 }
      return (streams, state.refused, state.displaced)
    }
  }
}

/// The place of a viewer during an endless response. The last reference frees it, so that any end of a response does.
package final class ViewerSeat: Sendable {
  private enum Revocation: Sendable {
    case none
    case told(@Sendable () -> Void)
    case over
  }

  private let giveUp: @Sendable () -> Void
  private let take: @Sendable () -> Bool
  private let revocation = Mutex(Revocation.none)

  fileprivate init(giveUp: @escaping @Sendable () -> Void, connect take: @escaping @Sendable () -> Bool = { true }) {
    (self.giveUp, self.take) = (giveUp, take)
  }

  /// The session of `waitingSeat` is connected. False if there is no place for it any more.
  package func connect() -> Bool { take() }

  deinit { giveUp() }

  /// Calls `end`, on any thread, when the place is given to another viewer; at once when it already was.
  package func whenRevoked(_ end: @escaping @Sendable () -> Void) {
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
