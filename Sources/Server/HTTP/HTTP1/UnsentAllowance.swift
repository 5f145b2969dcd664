/// How many bytes that it has not sent the kernel may hold for a client over TCP. Without a limit it holds megabytes for each client
/// that reads nothing, and those of two thousand slow down all. Few for a client that has shown nothing, more for one that
/// takes them: waiting less often costs less.
struct UnsentAllowance {
  /// In bytes.
  static let first = 32 * 1024
  static let most = 256 * 1024
  /// A client that takes so many times its allowance within a tick gets twice as much.
  private static let proof = 8

  /// In bytes.
  private(set) var bytes = first
  private var taken = 0
  private var tick = 0

  /// The kernel took `count` bytes in this tick. Returns whether the allowance has changed.
  mutating func took(_ count: Int, at tick: Int, limit: Int) -> Bool {
    if bytes > limit {
      bytes = limit
      return true
    }
    if tick != self.tick { (taken, self.tick) = (0, tick) }
    taken &+= count
    guard bytes < limit, taken >= bytes &* Self.proof else { return false }
    bytes = min(bytes &* 2, limit)
    return true
  }

  /// The client takes nothing. Returns whether the allowance has shrunk.
  mutating func stalled() -> Bool {
    defer { bytes = Self.first }
    return bytes > Self.first
  }
}
