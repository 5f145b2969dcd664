/// The sinks of ended streams and epochs that still have open files. A disk may be slow.
package struct ClosingSinks: Sendable {
  /// A stream with this many closing sinks gets no new ones.
  package static let limit = 4

  private var sinks: [any FragmentSink] = []

  /// Adds sinks that received the end event.
  mutating func add(_ sinks: [any FragmentSink]) {
    self.sinks += sinks.filter(\.isClosing)
  }

  mutating func add(_ other: ClosingSinks) { add(other.sinks) }

  /// How many still have open files.
  mutating func count() -> Int {
    sinks.removeAll { !$0.isClosing }
    return sinks.count
  }
}
