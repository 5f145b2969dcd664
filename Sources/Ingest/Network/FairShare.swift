/// How many of the server's places an address may have, so that a few addresses never have all.
package enum FairShare {
  /// The last part of all places that no address has for its first few alone.
  private static let reserve = 16

  /// Whether an address with `own` of the `taken` places may have `more`. It holds at most half of what is left: of the free places
  /// and its own. Its first ones it may always have, and up to `least` as long as more than a sixteenth of `all` stays free.
  package static func allows(_ more: Int = 1, own: Int, taken: Int, of all: Int, least: Int = 0) -> Bool {
    let free = all - taken
    guard more <= free else { return false }
    if own == 0 || (own + more <= least && free - more >= all / reserve) { return true }
    return own + more <= (free + own) / 2
  }
}
