internal import Base

/// When the worker gives back the memory of connections that have ended: a while afterwards, as libsrt frees it later, and once
/// for many that end one after another. A value type; the caller gives it the time.
struct SRTLeftovers {
  private var first: MonotonicTime?
  private var last = MonotonicTime.zero

  /// A connection has ended.
  mutating func add(now: MonotonicTime) {
    first = first ?? now
    last = now
  }

  /// Whether it is to be given back now.
  mutating func areDue(now: MonotonicTime) -> Bool {
    guard let first, now &- last >= SRTLimits.freedAfter || now &- first >= SRTLimits.freedAtLast else { return false }
    // What ended a moment ago libsrt has not freed yet.
    self.first = now &- last >= SRTLimits.freedAfter ? nil : now
    return true
  }
}
