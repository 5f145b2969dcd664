internal import Base

/// A server of STUN or TURN that publishers by WebRTC are told (RFC 9725 §4.6): `stun:HOST[:PORT]`, or
/// `turn:USER:CREDENTIAL@HOST[:PORT][?transport=udp|tcp]`; `stuns:` and `turns:` over TLS. Bytes of user and credential may be
/// percent-encoded, as in the user information of other URIs (RFC 3986 §3.2.1).
package struct ICEServerText: Sendable, Hashable {
  /// By RFC 7064 or RFC 7065, without a user.
  let address: String
  package let account: Account?

  package struct Account: Sendable, Hashable {
    let user: String
    let credential: String
  }

  /// The value of a `Link` field (RFC 8288).
  package var link: String {
    let address = "<\(address)>; rel=\"ice-server\""
    guard let account else { return address }
    return address
      + "; username=\(Self.quoted(account.user)); credential=\(Self.quoted(account.credential))"
      + "; credential-type=\"password\""
  }

  /// A quoted string (RFC 9110 §5.6.4).
  private static func quoted(_ text: String) -> String {
    "\"" + text.map { $0 == "\"" || $0 == "\\" ? "\\\($0)" : "\($0)" }.joined() + "\""
  }

  static func parse(_ text: String) throws(ValueError) -> ICEServerText {
    guard text.utf8.count <= longest, let colon = text.firstIndex(of: ":"),
      let scheme = Scheme(rawValue: text[..<colon].lowercased())
    else { throw refusal }
    let rest = text[text.index(after: colon)...]
    guard let at = rest.lastIndex(of: "@") else {
      guard !scheme.needsAccount else {
        throw ValueError(
          "a TURN server needs a user and a credential",
          advice: "write turn:USER:CREDENTIAL@HOST, a colon in USER as %3A")
      }
      return ICEServerText(address: try address(scheme, rest), account: nil)
    }
    let names = rest[..<at].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard scheme.needsAccount, names.count == 2, names.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy(isQuotable) })
    else { throw refusal }
    let decoded = names.map(\.percentDecoded)
    guard decoded.allSatisfy({ $0.utf8.allSatisfy { (0x20...0x7E).contains($0) } }) else {
      throw ValueError("user and credential of a TURN server are printable ASCII", advice: "give it others")
    }
    return ICEServerText(
      address: try address(scheme, rest[rest.index(after: at)...]),
      account: Account(user: decoded[0], credential: decoded[1]))
  }

  private enum Scheme: String {
    case stun, stuns, turn, turns
    var needsAccount: Bool { self == .turn || self == .turns }
  }

  /// Bytes of a text.
  private static let longest = 512
  private static let refusal = ValueError(
    "that is no server of STUN or TURN",
    advice: "write stun:HOST:3478 or turn:USER:CREDENTIAL@HOST:3478?transport=udp")

  /// Printable, and without meaning in a quoted string. Others are percent-encoded.
  private static func isQuotable(_ byte: UInt8) -> Bool {
    (0x21...0x7E).contains(byte) && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
  }

  private static func address(_ scheme: Scheme, _ text: Substring) throws(ValueError) -> String {
    let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    guard let place = parts.first else { throw refusal }
    if parts.count > 1 {
      guard scheme.needsAccount, ["transport=udp", "transport=tcp"].contains(parts[1]) else { throw refusal }
    }
    var (host, port) = (place, Substring?.none)
    if place.hasPrefix("[") {
      guard let end = place.firstIndex(of: "]") else { throw refusal }
      host = place[place.index(after: place.startIndex)..<end]
      let rest = place[place.index(after: end)...]
      guard rest.isEmpty || rest.hasPrefix(":") else { throw refusal }
      port = rest.isEmpty ? nil : rest.dropFirst()
      guard !host.isEmpty, host.allSatisfy({ $0.isASCII && ($0.isHexDigit || $0 == ":" || $0 == ".") }) else {
        throw refusal
      }
    } else {
      if let colon = place.lastIndex(of: ":") { (host, port) = (place[..<colon], place[place.index(after: colon)...]) }
      guard !host.isEmpty, host.utf8.count <= 253,
        host.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "." || $0 == "-") })
      else { throw refusal }
    }
    if let port {
      guard port.allSatisfy({ $0.isASCII && $0.isNumber }), UInt16(port) ?? 0 > 0 else { throw refusal }
    }
    return "\(scheme.rawValue):\(text)"
  }
}
