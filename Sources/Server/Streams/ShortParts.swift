internal import FMP4

/// Counts parts below 85 % of PART-TARGET which another one of their segment follows (RFC 8216bis §4.4.4.9). A rate that
/// varies has them where frames come slower than usual: such a part is short, never long.
package struct ShortParts: Sendable {
  package private(set) var count = 0
  /// The newest part.
  private var segment = 0
  private var isShort = false

  mutating func take(_ length: MediaTime, segment: Int, target: MediaTime?) {
    if isShort, segment == self.segment { count &+= 1 }
    self.segment = segment
    isShort =
      target.map {
        MediaTime(ticks: length.ticks &* 100, timescale: length.timescale)
          < MediaTime(ticks: $0.ticks &* 85, timescale: $0.timescale)
      } ?? false
  }

  static func += (total: inout ShortParts, more: ShortParts) { total.count &+= more.count }
}
