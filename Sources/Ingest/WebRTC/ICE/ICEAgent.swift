internal import NIOCore

/// The lite side of ICE (RFC 8445 §2.5): it answers checks, sends none, and is always controlled. So it never sends
/// anything to an address that an offer names; it learns addresses from requests that know its password.
struct ICEAgent {
  /// What becomes of a request.
  enum Outcome: Equatable {
    /// Not for this agent, or without the password: no answer.
    case ignored
    /// Answer, and nothing else.
    case refused(ByteBuffer)
    /// Answer. The address knows the password.
    case authenticated(ByteBuffer, nominates: Bool)
  }

  /// The agent's own (RFC 8839 §5.4). Long enough that a request that names it is not much shorter than the first message of
  /// DTLS.
  private(set) var fragment = HMACSHA1.randomText(16)
  private(set) var password = HMACSHA1.randomText(24)

  /// Begins again (RFC 8445 §9): requests with the old credentials are ignored.
  mutating func restart() {
    fragment = HMACSHA1.randomText(16)
    password = HMACSHA1.randomText(24)
  }

  /// The part of a user name that names the agent it is for.
  static func fragment(of username: String) -> Substring? {
    guard let colon = username.firstIndex(of: ":") else { return nil }
    return username[..<colon]
  }

  func receive(_ message: STUNMessage, from place: STUNResponse.Place, size: Int) -> Outcome {
    guard message.kind == .bindingRequest, Self.fragment(of: message.username).map({ $0 == fragment }) == true,
      message.isIntact(password: password)
    else { return .ignored }
    let outcome: Outcome
    if !message.unknown.isEmpty {
      outcome = .refused(
        STUNResponse.error(420, "", to: message, unknown: message.unknown, password: password))
    } else if message.isControlled {
      // Both sides controlled: the peer has to change (RFC 8445 §7.3.1.1), since a lite agent cannot.
      outcome = .refused(STUNResponse.error(487, "", to: message, password: password))
    } else {
      outcome = .authenticated(
        STUNResponse.success(to: message, from: place, password: password), nominates: message.usesCandidate)
    }
    // Nothing is amplified: an answer is no longer than its request.
    switch outcome {
    case .refused(let bytes), .authenticated(let bytes, _): return bytes.readableBytes <= size ? outcome : .ignored
    case .ignored: return outcome
    }
  }
}
