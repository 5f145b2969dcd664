/// When connections end because memory is missing. What they held comes back some looks later, so it rests between two times. Where
/// that does not help, something else has the memory: then it stops until some is there again.
struct MemoryRelief {
  /// Looks between two times, of half a second each.
  private static let rest = 4
  /// Times that may free nothing.
  private static let patience = 2

  private var resting = 0
  private var fruitless = 0
  /// The bytes that were missing the last time.
  private var before: Int?

  /// Takes the bytes that are missing at this look. Returns whether connections should end now.
  mutating func isDue(missing: Int) -> Bool {
    guard missing > 0 else {
      self = MemoryRelief()
      return false
    }
    guard resting == 0 else {
      resting -= 1
      return false
    }
    fruitless = before.map { missing >= $0 ? fruitless + 1 : 0 } ?? 0
    before = missing
    resting = Self.rest
    return fruitless < Self.patience
  }
}
