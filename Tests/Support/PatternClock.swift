package import FMP4

/// When a test pattern begins.
package enum PatternClock {
  /// 2026-11-21T12:03:04.4Z
  package static let wallStart: WallTime = 1_795_262_584_400_000_000
}
