/// The fields that a client has had added to the table of its connection (RFC 7541 §2.3.2). It holds no memory before the first.
struct FieldTable {
  /// The most that it may count, by `FieldPlace.size`: the initial value of SETTINGS_HEADER_TABLE_SIZE.
  static let largest = 4096
  /// No more fields than these can count no more: each counts 32 beside its text.
  static let mostFields = largest / 32

  private(set) var bytes: [UInt8] = []
  /// Oldest first.
  private var places: [FieldPlace] = []
  /// The places before it are no longer in the table.
  private var oldest = 0
  private var size = 0
  private var limit = largest
  /// Changes with each change of the table.
  private(set) var generation = 0

  var count: Int { places.count &- oldest }
  /// Places that are held, also of fields that are no longer in the table.
  var heldPlaces: Int { places.count }

  /// The field of an index; 0 is the newest.
  func place(_ index: Int) -> FieldPlace? {
    index < count ? places[places.count &- 1 &- index] : nil
  }

  /// Adds a field, for which older ones make room. One that is larger than the table empties it (RFC 7541 §4.4).
  mutating func add(_ name: Span<UInt8>, _ value: Span<UInt8>) {
    generation &+= 1
    let place = FieldPlace(start: bytes.count, name: name.count, value: value.count)
    evict(to: limit &- place.size)
    guard place.size <= limit else { return }
    reclaim()
    var added = place
    added.start = bytes.count
    for index in name.indices { bytes.append(name[index]) }
    for index in value.indices { bytes.append(value[index]) }
    places.append(added)
    size &+= added.size
  }

  /// Changes the most that it may count. False when the client may not (RFC 7541 §6.3).
  mutating func resize(to limit: Int) -> Bool {
    guard limit <= Self.largest else { return false }
    generation &+= 1
    self.limit = limit
    evict(to: limit)
    return true
  }

  private mutating func evict(to room: Int) {
    while size > room, oldest < places.count {
      size &-= places[oldest].size
      oldest &+= 1
    }
    if oldest == places.count {
      places.removeAll()
      bytes.removeAll()
      oldest = 0
    }
  }

  /// Gives back the places and the bytes of old fields when either are more than a table can have.
  private mutating func reclaim() {
    guard oldest < places.count, oldest >= Self.mostFields || places[oldest].start > Self.largest else { return }
    let start = places[oldest].start
    places.removeFirst(oldest)
    bytes.removeFirst(start)
    oldest = 0
    for index in places.indices { places[index].start &-= start }
  }
}
