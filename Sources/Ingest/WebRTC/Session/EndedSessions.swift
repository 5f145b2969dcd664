internal import Base
internal import Publishing

/// Why this side ended sessions. Browsers do not show the reason of an RTCP BYE, so peers ask for it by HTTP.
struct EndedSessions {
  private struct End {
    let session: String
    let stream: StreamName
    let purpose: WebRTCTransport.Purpose
    let reason: String
    let at: MonotonicTime
  }

  /// Oldest first.
  private var ends: [End] = []

  mutating func add(
    _ session: String, of stream: StreamName, _ purpose: WebRTCTransport.Purpose, because reason: String,
    now: MonotonicTime
  ) {
    ends.removeAll { now &- $0.at >= WebRTCLimits.endKept }
    if ends.count >= WebRTCLimits.endsKept { ends.removeFirst() }
    ends.append(End(session: session, stream: stream, purpose: purpose, reason: reason, at: now))
  }

  /// Nil of a session that is not over, ended by itself, or is over for long.
  func reason(
    of session: String, of stream: StreamName, _ purpose: WebRTCTransport.Purpose, now: MonotonicTime
  ) -> String? {
    ends.last {
      $0.session == session && $0.stream == stream && $0.purpose == purpose && now &- $0.at < WebRTCLimits.endKept
    }?.reason
  }
}
