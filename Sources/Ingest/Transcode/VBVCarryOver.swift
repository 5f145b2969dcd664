internal import FMP4

/// What an encoder of a constant rate has given out ahead of its time, in bits. Whoever takes its place begins with that:
/// an encoder that believed its buffer to be full whenever a publisher changes the size of its pictures would spend a second's
/// bits on each first one. A value.
struct VBVCarryOver: Sendable, Hashable {
  private(set) var bits: Int64 = 0
  private let bitRate: Int64
  private var last: MediaTime?

  /// - Parameter bitRate: bits a second.
  init(bitRate: UInt32) { self.bitRate = Int64(bitRate) }

  /// Goes on after another encoder of the same rung.
  mutating func goOn(after other: VBVCarryOver) { (bits, last) = (other.bits, other.last) }

  /// A picture of that time was given out.
  mutating func add(bytes: Int, at time: MediaTime) {
    if let last {
      let passed = min(max(0, (time - last).nanoseconds), 60_000_000_000)
      bits = max(0, bits - bitRate * (passed / 1000) / 1_000_000)
    }
    last = time
    bits += Int64(bytes) * 8
  }
}
