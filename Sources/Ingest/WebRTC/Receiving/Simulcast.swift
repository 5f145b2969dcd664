internal import Base
internal import FMP4

/// The encodings of one picture by simulcast: which of them flow, and which track each becomes.
///
/// The largest is the first video, whatever the sender's order. What is larger costs the most bit rate, so senders stop it first
/// where the network is narrow. An encoding that stops leaves the stream, and the others go on. One that comes back, or comes
/// late, joins when it has flowed for a while.
struct Simulcast {
  private struct Layer {
    var pixels: Int?
    /// When its newest whole frame came, and how many of others came since.
    var newest: MonotonicTime?
    var missed = 0
    /// Since when it flows without a stop.
    var since: MonotonicTime?
    /// The stream has it.
    var isIn = false
    var stops = 0
  }

  /// How long the first choice waits for encodings (twice as long for one that flows and is not on the clock yet), and after
  /// how long without frames one has stopped. In nanoseconds.
  private static let (patience, silence): (Int64, Int64) = (1_500_000_000, 1_500_000_000)
  /// Frames of others in which one that has stopped had none.
  private static let leastMissed = 10
  /// How long one that comes late has to flow before it joins, in nanoseconds. Each stop doubles that, up to 512 s. If
  /// nothing else flows it joins at once.
  private static let steadiness: Int64 = 2_000_000_000

  /// The tracks of the offer, in its order.
  let members: [TrackID]
  var clocks = LayerClocks()
  private var layers: [TrackID: Layer] = [:]
  /// The published tracks of members.
  private var places: [TrackID: TrackID] = [:]
  private var begun: MonotonicTime?
  /// Members whose senders said that they end.
  private var ended: Set<TrackID> = []
  /// The first tracks are chosen.
  private(set) var isChosen = false

  init(_ members: [TrackID]) { self.members = members }

  /// The track that a member is now; nil while the stream does not have it.
  func track(of member: TrackID) -> TrackID? { layers[member]?.isIn == true ? places[member] : nil }

  /// Whether frames of a member come.
  func flows(_ member: TrackID, _ now: MonotonicTime) -> Bool {
    layers[member]?.newest.map { now &- $0 < Self.silence } ?? false
  }

  /// It has had frames of late, as others have.
  func keepsUp(_ member: TrackID, _ now: MonotonicTime) -> Bool {
    flows(member, now) && layers[member].map { $0.missed < Self.leastMissed } ?? false
  }

  /// Other members go on when this one has ended.
  func goesOn(without member: TrackID, _ now: MonotonicTime) -> Bool {
    members.contains { $0 != member && track(of: $0) != nil && clocks.isKnown($0) && flows($0, now) }
  }

  /// Takes a whole frame of a member; `pixels` of its picture, where they are known.
  mutating func saw(_ member: TrackID, pixels: Int?, _ now: MonotonicTime) {
    begun = begun ?? now
    var layer = layers[member] ?? Layer()
    if layer.since == nil || !flows(member, now) { layer.since = now }
    (layer.pixels, layer.newest, layer.missed) = (pixels ?? layer.pixels, now, 0)
    layers[member] = layer
    ended.remove(member)
    for other in members where other != member { layers[other]?.missed += 1 }
  }

  /// Its sender is another one, or has ended.
  mutating func forget(_ member: TrackID) { layers[member]?.newest = nil }

  /// Its sender ends. Returns whether the senders of all members have ended. One that never came may still begin: a page may
  /// change from one encoding to another.
  mutating func end(_ member: TrackID) -> Bool {
    forget(member)
    ended.insert(member)
    return members.allSatisfy { ended.contains($0) }
  }

  /// A member that flows and is not on the clock, while no member on the clock flows.
  func stranded(_ now: MonotonicTime) -> TrackID? {
    guard !members.contains(where: { clocks.isKnown($0) && flows($0, now) }) else { return nil }
    return members.first { member in
      guard let since = layers[member]?.since else { return false }
      return flows(member, now) && now &- since >= Self.patience
    }
  }

  /// What joins the stream now: the members that are there when the first ones are chosen, later each one that flows.
  mutating func joining(_ now: MonotonicTime) -> [TrackID] {
    let ready = members.filter { member in
      guard let layer = layers[member], !layer.isIn, layer.pixels != nil, clocks.isKnown(member), flows(member, now),
        let since = layer.since
      else { return false }
      return !isChosen || !goesOn(without: member, now)
        || now &- since >= Self.steadiness << Int64(min(layer.stops, 8))
    }
    guard !ready.isEmpty else { return [] }
    if !isChosen {
      let waited = begun.map { now &- $0 } ?? 0
      let isComplete = ready.count == members.count(where: { flows($0, now) })
      guard ready.count == members.count || waited >= (isComplete ? 1 : 2) * Self.patience else { return [] }
      isChosen = true
    }
    let bySize = ready.enumerated().sorted { one, other in
      let (left, right) = (layers[one.element]?.pixels ?? 0, layers[other.element]?.pixels ?? 0)
      return left == right ? one.offset < other.offset : left > right
    }
    for (_, member) in bySize {
      let free = members.sorted().first { place in !places.values.contains(place) }
      places[member] = places[member] ?? free
      layers[member]?.isIn = true
    }
    return bySize.map(\.element)
  }

  /// Members that have stopped while others flow. They leave the stream.
  mutating func leaving(_ now: MonotonicTime) -> [TrackID] {
    members.filter { member in
      guard let layer = layers[member], layer.isIn, layer.missed >= Self.leastMissed, !flows(member, now) else {
        return false
      }
      return goesOn(without: member, now)
    }
  }

  /// A member leaves the stream. Returns the track that it was.
  mutating func leave(_ member: TrackID) -> TrackID? {
    guard let track = track(of: member) else { return nil }
    layers[member]?.isIn = false
    layers[member]?.stops += 1
    layers[member]?.since = nil
    return track
  }
}
