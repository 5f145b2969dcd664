package import FMP4
package import Publishing

/// The latest refused publications with their reasons, for the API. Its size is bounded: a repeated refusal is only counted, an
/// address at its limit loses its own oldest entry, and texts are cut. When all places are taken, the address with most loses its
/// oldest, so a few addresses push out no other.
package struct RecentRefusals: Sendable {
  package struct Entry: Sendable {
    package var refused: RefusedPublication
    /// How often it occurred, and when first and last.
    package var count: Int
    package var first: WallTime
    package var last: WallTime
  }

  /// The most entries in all, and of one address.
  static let limit = 100
  static let limitOfHost = 10
  /// The most characters of a text.
  static let textLength = 300

  /// Sorted by their last occurrence, oldest first.
  private(set) var entries: [Entry] = []

  mutating func add(_ refused: RefusedPublication, now: WallTime) {
    var entry = Entry(refused: Self.cut(refused), count: 1, first: now, last: now)
    if let known = entries.firstIndex(where: { Self.isSame($0.refused, entry.refused) }) {
      entry.count = entries[known].count &+ 1
      entry.first = entries[known].first
      entries.remove(at: known)
    } else if entries.count(where: { $0.refused.host == refused.host }) >= Self.limitOfHost {
      entries.firstIndex { $0.refused.host == refused.host }.map { _ = entries.remove(at: $0) }
    } else if entries.count >= Self.limit {
      removeOldestOfLargest()
    }
    entries.append(entry)
  }

  private mutating func removeOldestOfLargest() {
    let counts = Dictionary(grouping: entries, by: \.refused.host).mapValues(\.count)
    let most = counts.values.max()
    entries.firstIndex { counts[$0.refused.host] == most }.map { _ = entries.remove(at: $0) }
  }

  /// Whether both are the same refusal again. The port is ignored: it differs with each attempt.
  private static func isSame(_ a: RefusedPublication, _ b: RefusedPublication) -> Bool {
    a.host == b.host && a.stream == b.stream && a.protocolName == b.protocolName && a.publicReason == b.publicReason
  }

  private static func cut(_ refused: RefusedPublication) -> RefusedPublication {
    var refused = refused
    refused.stream = refused.stream.map { String($0.prefix(textLength)) }
    refused.reason = String(refused.reason.prefix(textLength))
    refused.publicReason = String(refused.publicReason.prefix(textLength))
    return refused
  }
}
