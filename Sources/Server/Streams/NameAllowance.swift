internal import Ingest

/// How many names the addresses may take that show no key: a name costs a window, a recording and a place in the API. A
/// value, told what time it is.
struct NameAllowance: Sendable {
  /// What may be set.
  struct Limits: Sendable, Hashable {
    /// Names of all streams that are known at a time.
    var streams = 1000
    /// New names that an address without a key may take at once.
    var names = 64
    /// How many more it may take in a minute.
    var namesPerMinute = 16
  }

  private struct Address: Sendable {
    var tokens: TokenBucket
    /// When each name was last taken.
    var names: [StreamName: Int64] = [:]
    var seen: Int64
  }

  /// A name that an address had within this time is not new to it, in nanoseconds.
  private static let memory: Int64 = 86_400_000_000_000
  /// Names that are remembered of an address, and addresses in all; the oldest are forgotten first.
  private static let rememberedNames = 2048
  private static let rememberedAddresses = 256

  let limits: Limits
  private var addresses: [String: Address] = [:]

  init(_ limits: Limits) {
    self.limits = limits
  }

  /// An address takes a name, at a time in monotonic nanoseconds. Gives the seconds until it may take a new one; nil where it
  /// may now.
  mutating func take(_ name: StreamName, by address: String, now: Int64) -> Int? {
    var entry =
      addresses[address]
      ?? Address(
        tokens: TokenBucket(burst: Double(limits.names), perSecond: Double(limits.namesPerMinute) / 60), seen: now)
    entry.seen = now
    defer {
      addresses[address] = entry
      if addresses.count > Self.rememberedAddresses { forgetOldest() }
    }
    let isKnown = entry.names[name].map { now &- $0 < Self.memory } ?? false
    guard isKnown || entry.tokens.take(now: now) else {
      return max(1, Int(entry.tokens.secondsUntilToken.rounded(.up)))
    }
    entry.names[name] = now
    if entry.names.count > Self.rememberedNames {
      entry.names = entry.names.filter { now &- $0.value < Self.memory }
      let many = max(0, entry.names.count - Self.rememberedNames / 2)
      let oldest = entry.names.sorted { $0.value < $1.value }.prefix(many)
      for (name, _) in oldest { entry.names[name] = nil }
    }
    return nil
  }

  /// An address still has a name that it took before.
  mutating func keep(_ name: StreamName, by address: String, now: Int64) {
    guard addresses[address]?.names[name] != nil else { return }
    addresses[address]?.names[name] = now
    addresses[address]?.seen = now
  }

  private mutating func forgetOldest() {
    let oldest = addresses.sorted { $0.value.seen < $1.value.seen }.prefix(Self.rememberedAddresses / 8)
    for (address, _) in oldest { addresses[address] = nil }
  }
}
