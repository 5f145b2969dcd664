/// How much of what the server has an address may have, of places or bytes, so that a few addresses never have all.
package enum FairShare {
  /// An address has for its first few alone no more than this part of all places, and the last part is no such place.
  private static let (mostOfFew, reserve) = (4, 16)

  /// Whether an address with `own` of the `taken` places may have `more`. It holds at most half of what is left: of the free places
  /// and its own. Its first ones it may always have. Up to `least`, and a quarter of `all`, it may have as long as a sixteenth stays free, and one.
  package static func allows(_ more: Int = 1, own: Int, taken: Int, of all: Int, least: Int = 0) -> Bool {
    let free = all - taken
    guard more <= free else { return false }
    if own == 0 || (own + more <= min(least, all / mostOfFew) && free - more >= max(1, all / reserve)) { return true }
    return more <= room(own: own, taken: taken, of: all)
  }

  /// How many more an address with `own` of the `taken` places may have: it holds at most half of what is left, of the free places
  /// and its own. Negative where it has more than that.
  package static func room(own: Int, taken: Int, of all: Int) -> Int { (all - taken + own) / 2 - own }
}
