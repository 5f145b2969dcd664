/// Streams whose places others may have, and which of them gives way first.
struct VacantStreams {
  private var all: [(stream: LiveStream, vacancy: LiveStream.Vacancy)]

  init(of streams: some Sequence<LiveStream>) {
    all = streams.compactMap { stream in stream.vacancy.map { (stream, $0) } }
  }

  /// Descriptors that are free once all of them have given way. The memory of a stream that is not over may still be held.
  func freed(_ descriptors: StreamDescriptors) -> Int {
    all.reduce(0) { sum, next in
      let settings = next.stream.settings
      return sum + (next.vacancy.isOver ? descriptors.count(of: settings) : descriptors.countAtOnce(of: settings))
    }
  }

  /// Takes the next one out: of those that are over and never had media, or else that of the publisher that has waited longest to
  /// be connected, of an address that has most of these. Nil if there is none.
  ///
  /// - Parameter holder: only streams of this address, of publishers that never connected.
  mutating func next(within holder: String? = nil) -> LiveStream? {
    let suitable = all.indices.filter { index in
      guard let holder else { return true }
      return !all[index].vacancy.hasConnected && all[index].vacancy.host == holder
    }
    var leaving = suitable.filter { all[$0].vacancy.isOver }
    if leaving.isEmpty {
      let counts = suitable.reduce(into: [String?: Int]()) { $0[all[$1].vacancy.host, default: 0] += 1 }
      let most = counts.values.max()
      leaving = suitable.filter { counts[all[$0].vacancy.host] == most }
    }
    return leaving.min { all[$0].vacancy.since < all[$1].vacancy.since }.map { all.remove(at: $0).stream }
  }
}
