internal import Base

/// How long a sender takes to send a missing packet again. One request at a time is followed.
struct AnswerTime {
  private var pending: (number: Int64, at: MonotonicTime)?
  /// Nanoseconds, smoothed. Nil before the first answer.
  private(set) var usual: Int64?

  /// Nanoseconds after which a request has no answer.
  private static let longest: Int64 = 2_000_000_000

  /// A packet is asked for, for the first time.
  mutating func asked(for number: Int64, _ now: MonotonicTime) {
    if let pending, now &- pending.at < Self.longest { return }
    pending = (number, now)
  }

  /// A packet came, also one that is waited for no longer.
  mutating func came(_ number: Int64, _ now: MonotonicTime) {
    guard let asked = pending, asked.number == number else { return }
    pending = nil
    let time = min(now &- asked.at, Self.longest)
    // An answer to a repeated request counts from the first one, so times rise slowly and fall fast.
    usual = usual.map { $0 &+ (time &- $0) / (time < $0 ? 2 : 16) } ?? time
  }

  /// Numbers begin anew, or time has passed in which nothing was read.
  mutating func forget() { pending = nil }
}
