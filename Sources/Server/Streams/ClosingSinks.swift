/// The sinks of streams and epochs that are over, for as long as they have files open: a disk may be slow.
struct ClosingSinks: Sendable {
  /// A stream that has so many gets no new ones.
  static let limit = 4

  private var sinks: [any FragmentSink] = []

  /// They were told of the end.
  mutating func add(_ sinks: [any FragmentSink]) {
    self.sinks += sinks.filter(\.isClosing)
  }

  mutating func add(_ other: ClosingSinks) { add(other.sinks) }

  /// How many have files open still.
  mutating func count() -> Int {
    sinks.removeAll { !$0.isClosing }
    return sinks.count
  }
}
