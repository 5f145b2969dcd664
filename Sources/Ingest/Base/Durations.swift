/// The count and the total length of timed operations.
package struct Durations: Sendable, Hashable {
  package private(set) var count = 0
  package private(set) var nanoseconds: Int64 = 0

  package init() {}

  package var seconds: Double { Double(nanoseconds) / 1_000_000_000 }

  /// Adds one duration. A negative length counts as 0.
  package mutating func add(nanoseconds length: Int64) {
    count &+= 1
    nanoseconds &+= max(0, length)
  }

  package static func += (total: inout Durations, more: Durations) {
    total.count &+= more.count
    total.nanoseconds &+= more.nanoseconds
  }
}
