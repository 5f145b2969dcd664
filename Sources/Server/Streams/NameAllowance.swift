internal import Base
internal import Publishing

/// Limits the number of names that addresses without a key can use: each name costs a window, a recording and an entry in the
/// API. A value type; the caller passes the time.
package struct NameAllowance: Sendable {
  /// The configurable limits.
  package struct Limits: Sendable, Hashable {
    /// Names of all known streams at a time.
    package var streams = 1000
    /// New names that an address without a key may take at once.
    package var names = 64
    /// New names that it may take per minute after that.
    package var namesPerMinute = 16

    package init(streams: Int = 1000, names: Int = 64, namesPerMinute: Int = 16) {
      (self.streams, self.names, self.namesPerMinute) = (streams, names, namesPerMinute)
    }
  }

  private struct Address: Sendable {
    var tokens: TokenBucket
    /// When each name was last used.
    var names: [StreamName: MonotonicTime] = [:]
    var seen: MonotonicTime
  }

  /// Nanoseconds. A name that an address used within this time is not new to it.
  private static let memory: Int64 = 86_400_000_000_000
  /// The most names per address, and the most addresses, that are remembered. The oldest are forgotten first.
  private static let rememberedNames = 2048
  private static let rememberedAddresses = 256

  /// A change holds for known addresses, too.
  var limits: Limits {
    didSet {
      for address in addresses.keys {
        addresses[address]?.tokens.change(burst: Double(limits.names), perSecond: Self.perSecond(limits))
      }
    }
  }
  private var addresses: [String: Address] = [:]

  init(_ limits: Limits) {
    self.limits = limits
  }

  /// An address takes a name at `now`. Returns the seconds until it may take a new one; nil when it may
  /// now.
  mutating func take(_ name: StreamName, by address: String, now: MonotonicTime) -> Int? {
    var entry =
      addresses[address]
      ?? Address(
        tokens: TokenBucket(burst: Double(limits.names), perSecond: Self.perSecond(limits)), seen: now)
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

  /// Records that an address still uses a name.
  mutating func keep(_ name: StreamName, by address: String, now: MonotonicTime) {
    guard addresses[address]?.names[name] != nil else { return }
    addresses[address]?.names[name] = now
    addresses[address]?.seen = now
  }

  private static func perSecond(_ limits: Limits) -> Double { Double(limits.namesPerMinute) / 60 }

  private mutating func forgetOldest() {
    let oldest = addresses.sorted { $0.value.seen < $1.value.seen }.prefix(Self.rememberedAddresses / 8)
    for (address, _) in oldest { addresses[address] = nil }
  }
}
