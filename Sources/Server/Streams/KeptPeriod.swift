package import FMP4

/// A DASH Period from before an outage, whose media has left the window or belonged to another process. It stays listed for a
/// while: dash.js stops for good when the Period that it plays disappears.
package struct KeptPeriod: Sendable, Hashable {
  /// Counts from 0 within the epoch.
  package var ordinal: Int
  /// Wall-clock time of the end of its media.
  package var end: WallTime
  /// The XML element, with the newest segment of each representation.
  package var text: String

  package init(ordinal: Int, end: WallTime, text: String) {
    (self.ordinal, self.end, self.text) = (ordinal, end, text)
  }

  /// The most kept Periods of an epoch; the newest are kept.
  package static let limit = 4
  /// The most bytes of an element; a longer Period is not kept.
  package static let longest = 16_384

  /// One line each: ordinal, end and element, separated by tabs. Control characters in the element are escaped.
  static func text(of periods: [KeptPeriod]) -> String {
    periods.map { "\($0.ordinal)\t\($0.end.nanoseconds)\t\($0.text)" }.joined(separator: "\n")
  }

  /// Nil for text that `text(of:)` cannot have written.
  static func parse(_ text: String) -> [KeptPeriod]? {
    guard text.utf8.count <= limit * (longest + 64) else { return nil }
    var periods: [KeptPeriod] = []
    for line in text.split(separator: "\n") {
      let parts = line.split(separator: "\t", maxSplits: 2)
      guard parts.count == 3, let ordinal = Int(parts[0]), (0..<1 << 40).contains(ordinal), let end = Int64(parts[1]),
        (0..<Int64.max / 4).contains(end), parts[2].hasPrefix("<Period "), parts[2].hasSuffix("</Period>"),
        periods.count < limit
      else { return nil }
      periods.append(KeptPeriod(ordinal: ordinal, end: WallTime(nanoseconds: end), text: String(parts[2])))
    }
    return periods
  }
}
