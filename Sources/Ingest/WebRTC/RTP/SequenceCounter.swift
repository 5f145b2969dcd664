/// Numbers of 16 bits without their wraps: each is taken as the one nearest to the highest before.
struct SequenceCounter {
  private(set) var highest: Int64?

  mutating func extend(_ number: UInt16) -> Int64 {
    guard let highest else {
      self.highest = Int64(number)
      return Int64(number)
    }
    let value = highest &+ Int64(Int16(bitPattern: number &- UInt16(truncatingIfNeeded: highest)))
    self.highest = max(highest, value)
    return value
  }
}
