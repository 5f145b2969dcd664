internal import FMP4

/// Bits that a constant-rate encoder has output ahead of its rate. The next encoder of the rung begins with them.
/// Otherwise each new encoder would assume a full buffer, and spend a second's bits on its first frame. A publisher
/// that keeps changing its video size would cause that every time. A value type.
struct VBVCarryOver: Sendable, Hashable {
  private(set) var bits: Int64 = 0
  private let bitRate: Int64
  private var last: MediaTime?

  /// - Parameter bitRate: bits per second.
  init(bitRate: UInt32) { self.bitRate = Int64(bitRate) }

  /// Continues after another encoder of the same rung.
  mutating func goOn(after other: VBVCarryOver) { (bits, last) = (other.bits, other.last) }

  /// Counts a frame that was output.
  mutating func add(bytes: Int, at time: MediaTime) {
    if let last {
      let passed = min(max(0, (time - last).nanoseconds), 60_000_000_000)
      bits = max(0, bits - bitRate * (passed / 1000) / 1_000_000)
    }
    last = time
    bits += Int64(bytes) * 8
  }
}
