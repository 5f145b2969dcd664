/// A DASH Period of the process before this one, as its manifests had it. Its media are gone. It is listed all the same:
/// dash.js stands still for good when the Period that it plays is gone from the manifest.
struct KeptPeriod: Sendable, Hashable {
  /// Wall-clock time at which its media end, in nanoseconds since 1970.
  var end: Int64
  /// The element.
  var text: String

  /// Of one epoch; a restart after many breaks of the timeline keeps the newest.
  static let limit = 4
  /// Bytes of one; a longer one is not kept.
  static let longest = 16_384

  /// One a line: the end, a tab, the element, in which control characters are escaped.
  static func text(of periods: [KeptPeriod]) -> String {
    periods.map { "\($0.end)\t\($0.text)" }.joined(separator: "\n")
  }

  /// Nil for what `text(of:)` cannot have written.
  static func parse(_ text: String) -> [KeptPeriod]? {
    guard text.utf8.count <= limit * (longest + 32) else { return nil }
    var periods: [KeptPeriod] = []
    for line in text.split(separator: "\n") {
      let parts = line.split(separator: "\t", maxSplits: 1)
      guard parts.count == 2, let end = Int64(parts[0]), end >= 0, end < .max / 4, parts[1].hasPrefix("<Period "),
        parts[1].hasSuffix("</Period>"), periods.count < limit
      else { return nil }
      periods.append(KeptPeriod(end: end, text: String(parts[1])))
    }
    return periods
  }
}

extension DASHManifest {
  /// The Periods that the next process has to list: those kept from the process before, then this one's own, each with its
  /// newest complete segment.
  var periodsToKeep: [KeptPeriod] {
    let own = window.periods.compactMap { period -> KeptPeriod? in
      let inside = segments.filter { $0.isComplete && isIn(period, $0) }
      guard let last = inside.last else { return nil }
      let element = DASHPeriod(manifest: self, period: period, segments: inside).element.withLastSegments
      let text = element.markup
      return text.utf8.count > KeptPeriod.longest ? nil : KeptPeriod(end: last.wallEnd, text: text)
    }
    return (epoch.keptPeriods + own).suffix(KeptPeriod.limit)
  }
}

extension XMLElement {
  fileprivate var withLastSegments: XMLElement {
    XMLElement(
      name: name, attributes: attributes, text: text,
      children: name == "SegmentTimeline" ? children.suffix(1) : children.map(\.withLastSegments))
  }
}
