/// Turns a counter of 32 bits that wraps into one of 64 bits that does not: each value is taken for the one nearest
/// to the value before it (RTMP 5.3.1.3). One unwrapper serves all tracks of a publication, so that they wrap
/// together.
struct TimestampUnwrapper: Sendable {
  private var last: (wire: UInt32, value: Int64)?

  mutating func unwrap(_ wire: UInt32) -> Int64 {
    guard let last else {
      self.last = (wire, Int64(wire))
      return Int64(wire)
    }
    let value = last.value &+ Int64(Int32(bitPattern: wire &- last.wire))
    self.last = (wire, value)
    return value
  }
}
