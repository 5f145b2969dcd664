internal import Base
internal import Publishing

/// What a sender without transport feedback may send: some more than what comes, less where packets are lost.
struct BitRateEstimate {
  /// Bits per second.
  private static let range: ClosedRange<UInt64> = 300_000...20_000_000
  private var told: UInt64 = 2_500_000
  private var bytes: UInt64 = 0
  private var since: MonotonicTime
  private var before = LinkFigures()

  init(now: MonotonicTime) { since = now }

  mutating func saw(_ bytes: Int) { self.bytes &+= UInt64(clamping: bytes) }

  /// The next value, in bits per second, about each second.
  mutating func next(_ figures: LinkFigures, now: MonotonicTime) -> UInt64 {
    let nanoseconds = UInt64(clamping: max(now &- since, 1))
    let rate = bytes.multipliedReportingOverflow(by: 8_000_000_000)
    let present = rate.overflow ? Self.range.upperBound : rate.partialValue / nanoseconds
    let (received, lost) = (figures.received &- before.received, figures.lost &- before.lost)
    (bytes, since, before) = (0, now, figures)
    // As senders judge loss themselves: above a tenth is too much, below a fiftieth there is room.
    if lost &* 10 > received {
      told = present / 10 &* 8
    } else if lost &* 50 <= received {
      told = max(told, min(present &+ present / 2, told &+ told / 4))
    }
    told = min(max(told, Self.range.lowerBound), Self.range.upperBound)
    return told
  }
}
