internal import FMP4
internal import Ingest
internal import NIOCore
internal import Synchronization

/// Who is watching: a client that asked for media or a playlist of a stream within the stream's last three target
/// durations, and each endless response (`stream.mp4`) while it lasts: it asks once. Counts viewers for the API and
/// refuses new ones when the server is full.
///
/// When more than 90 % of the places are taken an address may have at most half of all. When all are, a newcomer gets the
/// newest place of the address that has most, where that has more places than the newcomer's with it. Else nobody who is
/// playing is dropped.
final class ViewerRegistry: Sendable {
  private let limit: Int
  private let clock: SteadyClock
  private let state = Mutex(State())

  private struct Viewer {
    /// That of its place where it has no endless response open. The later it came, the higher.
    var number: Int
    /// Monotonic nanoseconds.
    var expiry: Int64
    /// Nil before it has asked for something that tells.
    var delivery: Delivery?
    /// Endless responses that it has open, the oldest first.
    var seats: [OpenSeat] = []

    /// As how many it counts: an endless response is one viewer, and one that also asks for playlists is the same.
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

    func isPresent(_ now: Int64) -> Bool { !seats.isEmpty || expiry > now }

    mutating func renew(_ expiry: Int64, _ delivery: Delivery?) {
      self.expiry = expiry
      // While it has an endless response open, that is how it watches.
      if let delivery, seats.isEmpty { self.delivery = delivery }
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
    var places = ViewerPlaces()
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
      total += more
      if let host = client.host { places.change(host, by: more) }
    }

    /// A client has its place number `number` now.
    mutating func note(_ number: Int, _ stream: StreamName, _ client: ClientID) {
      let streams = streams
      places.add(ViewerPlaces.Place(number: number, stream: stream, client: client)) { Self.isTaken($0, in: streams) }
    }

    private static func isTaken(_ place: ViewerPlaces.Place, in streams: [StreamName: [ClientID: Viewer]]) -> Bool {
      streams[place.stream]?[place.client]?.has(place.number) ?? false
    }

    mutating func sweep(now: Int64, nextSweep: Int64) {
      self.nextSweep = nextSweep
      for (stream, clients) in streams {
        for (client, viewer) in clients where !viewer.isPresent(now) { set(nil, stream, client) }
        if streams[stream]?.isEmpty ?? false { streams[stream] = nil }
      }
    }

    /// Takes the newest place from the address that has most, where that has more than the newcomer's will have. False
    /// where there is none; `seat` is then what has to end.
    mutating func makeRoom(for host: NetworkAddress?) -> (isFree: Bool, seat: ViewerSeat?) {
      // Two that have equally many do not take turns for ever.
      guard places.most > places.count(of: host) + 1, let largest = places.largest, let place = newest(of: largest),
        var left = streams[place.stream]?[place.client]
      else { return (false, nil) }
      displaced += 1
      let seat = left.seats.popLast()?.seat
      set(left.seats.isEmpty ? nil : left, place.stream, place.client)
      return (true, seat)
    }

    private mutating func newest(of host: NetworkAddress) -> ViewerPlaces.Place? {
      let streams = streams
      return places.newest(of: host) { Self.isTaken($0, in: streams) }
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
      let room = takeRoom(for: client, &state)
      guard room.isFree else { return room }
      let number = state.number()
      state.set(Viewer(number: number, expiry: expiry, delivery: delivery), stream, client)
      state.note(number, stream, client)
      return room
    }
    seat?.revoke()
    return isAdmitted
  }

  /// Room for one more place of a client.
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
      let room: (isFree: Bool, seat: ViewerSeat?) = isMore ? takeRoom(for: client, &state) : (true, nil)
      guard room.isFree else { return (nil, nil) }
      let number = state.number()
      let seat = ViewerSeat { [weak self] in
        self?.leave(number, stream: stream, client: client, lifetime: lifetime)
      }
      var viewer = known ?? Viewer(number: number, expiry: now)
      viewer.seats.append(OpenSeat(number: number, seat: seat))
      viewer.delivery = .mp4
      state.set(viewer, stream, client)
      state.note(number, stream, client)
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
      if viewer.seats.isEmpty { viewer.number = number }
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
  var counts: (streams: [StreamName: [Delivery?: Int]], refused: Int, displaced: Int) {
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
