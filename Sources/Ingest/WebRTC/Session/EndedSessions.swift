/// Why this side ended sessions. Browsers do not show the reason of an RTCP BYE, so peers ask for it by HTTP.
struct EndedSessions {
  private struct End {
    let session: String
    let reason: String
    let at: MonotonicTime
  }

  /// Oldest first.
  private var ends: [End] = []

  mutating func add(_ session: String, because reason: String, now: MonotonicTime) {
    ends.removeAll { now &- $0.at >= WebRTCLimits.endKept }
    if ends.count >= WebRTCLimits.endsKept { ends.removeFirst() }
    ends.append(End(session: session, reason: reason, at: now))
  }

  /// Nil of a session that is not over, ended by itself, or is over for long.
  func reason(of session: String, now: MonotonicTime) -> String? {
    ends.last { $0.session == session && now &- $0.at < WebRTCLimits.endKept }?.reason
  }
}
