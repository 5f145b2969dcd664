internal import FMP4
package import Streams

extension DASHManifest {
  /// The implementation of `StreamSettings.periodsToKeep`.
  package static func periodsToKeep(of epoch: EpochView, _ count: Int) -> [KeptPeriod] {
    DASHManifest(epoch: epoch, source: .server).periodsToKeep(count)
  }

  /// The Periods to keep before an outage or a restart, oldest first.
  ///
  /// - Parameter count: the most Periods of the window itself; the newest are kept.
  func periodsToKeep(_ count: Int) -> [KeptPeriod] {
    let own = window.periods.suffix(count).compactMap { period -> KeptPeriod? in
      let inside = segments.filter { $0.isComplete && isIn(period, $0) }
      guard let last = inside.last else { return nil }
      let text = DASHPeriod(manifest: self, period: period, segments: inside, tellsLast: 1).element.markup
      guard text.utf8.count <= KeptPeriod.longest else { return nil }
      return KeptPeriod(ordinal: period.ordinal, end: last.wallEnd, text: text)
    }
    let older = epoch.keptPeriods.filter { kept in !own.contains { $0.ordinal == kept.ordinal } }
    return (older + own).suffix(KeptPeriod.limit)
  }

  /// The kept Periods that are still listed. They are listed until the first Period after them is older than `depth`, by when
  /// players have moved on to it.
  func keptPeriods(publishTime: WallTime, depth: MediaTime) -> [KeptPeriod] {
    guard source == .server, !window.isEnded else { return [] }
    let listed = window.periods.filter { period in segments.contains { isIn(period, $0) } }
    let oldest = publishTime &- depth.nanoseconds
    return epoch.keptPeriods.filter { kept in
      guard !listed.contains(where: { $0.ordinal == kept.ordinal }) else { return false }
      return listed.first { $0.ordinal > kept.ordinal }.map { $0.wallStart >= oldest } ?? true
    }
  }
}
