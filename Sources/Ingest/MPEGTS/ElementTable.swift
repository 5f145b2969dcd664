/// The elementary streams that are followed, by PID. A packet changes its stream in place: reading a value of a dictionary
/// copies it, and a stream is large.
struct ElementTable {
  /// Where a stream is.
  struct Place {
    fileprivate let index: Int
    let program: UInt16
  }

  private var places: [UInt16: Place] = [:]
  private var streams: [ElementStream] = []

  var count: Int { streams.count }
  /// Rising.
  var pids: [UInt16] { places.keys.sorted() }
  /// In no order.
  var all: [ElementStream] { streams }

  func place(of pid: UInt16) -> Place? { places[pid] }

  /// Changes the stream at a place that the table has told since its last change of streams.
  @discardableResult
  mutating func change<Result>(_ place: Place, _ body: (inout ElementStream) -> Result) -> Result? {
    streams.indices.contains(place.index) ? body(&streams[place.index]) : nil
  }

  @discardableResult
  mutating func change<Result>(_ pid: UInt16, _ body: (inout ElementStream) -> Result) -> Result? {
    places[pid].flatMap { change($0, body) }
  }

  subscript(pid: UInt16) -> ElementStream? { places[pid].map { streams[$0.index] } }

  /// Adds a stream whose PID has none.
  mutating func add(_ stream: ElementStream) {
    places[stream.element.pid] = Place(index: streams.count, program: stream.program)
    streams.append(stream)
  }

  mutating func remove(_ pid: UInt16) -> ElementStream? {
    guard let place = places.removeValue(forKey: pid) else { return nil }
    streams.swapAt(place.index, streams.count - 1)
    let stream = streams.removeLast()
    // The last one has taken its place.
    if place.index < streams.count {
      let moved = streams[place.index]
      places[moved.element.pid] = Place(index: place.index, program: moved.program)
    }
    return stream
  }
}
