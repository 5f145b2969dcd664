/// A media section of an offer (RFC 8866 §5.14), with what it inherits from the session.
struct MediaSection {
  enum Setup: String { case actpass, active, passive, holdconn }
  enum Direction: String { case sendrecv, sendonly, recvonly, inactive }

  /// `audio`, `video`, `application` …
  let kind: String
  /// `UDP/TLS/RTP/SAVPF`.
  let transport: String
  /// Its port is 0.
  private let hasNoPort: Bool
  /// It has no port because it is sent by the transport of its bundle, whose attributes it does not repeat (RFC 9143 §6).
  private(set) var isBundleOnly = false
  /// The sender has turned it off.
  var isRejected: Bool { hasNoPort && !isBundleOnly }
  /// The line's own text of formats, to be said again.
  let formatText: String
  var mid: String?
  var formats: [PayloadFormat]
  var direction = Direction.sendrecv
  var multiplexesRTCP = false
  var setup: Setup?
  var fingerprint: Fingerprint?
  var fragment: String?
  var password: String?
  /// Header extensions by their numbers (RFC 8285 §5).
  var extensions: [UInt8: String] = [:]
  /// Senders that the section names (RFC 5576).
  var sources: [UInt32] = []
  /// Encodings that are sent, as `a=rid` and `a=simulcast` name them.
  private var streams: [OfferedEncoding] = []
  private var simulcast: [[String]] = []

  /// Reads the value of an `m=` line.
  init(line: Substring) throws(OfferError) {
    let words = line.split(separator: " ")
    guard words.count >= 4, let port = words[1].split(separator: "/").first.flatMap({ UInt16($0) }) else {
      throw OfferError(.malformed, "an m= line without port, protocol and formats")
    }
    guard words.count - 3 <= WebRTCLimits.formats else {
      throw OfferError(.malformed, "a media section of \(words.count - 3) formats; \(WebRTCLimits.formats) are read")
    }
    kind = String(words[0])
    hasNoPort = port == 0
    transport = words[2].uppercased()
    formatText = words[3...].joined(separator: " ")
    formats = words[3...].compactMap { UInt8($0) }.filter { $0 < 128 }.map { PayloadFormat($0) }
  }

  /// Attributes of the session that count for its sections.
  static let inherited: Set<Substring> = [
    "setup", "fingerprint", "ice-ufrag", "ice-pwd", "rtcp-mux", "extmap", "sendrecv", "sendonly", "recvonly",
    "inactive",
  ]

  /// Takes an attribute of the section, or of the session for all sections.
  mutating func receive(_ name: Substring, _ value: Substring) {
    switch name {
    case "mid": mid = String(value)
    case "bundle-only": isBundleOnly = true
    case "rtcp-mux": multiplexesRTCP = true
    case "setup": setup = Setup(rawValue: String(value)) ?? setup
    case "fingerprint": fingerprint = Fingerprint(value) ?? fingerprint
    case "ice-ufrag": fragment = String(value)
    case "ice-pwd": password = String(value)
    case "sendrecv", "sendonly", "recvonly", "inactive": direction = Direction(rawValue: String(name)) ?? direction
    case "rtpmap": format(value) { $0.readMap($1) }
    case "fmtp": format(value) { $0.parameters = String($1) }
    case "rtcp-fb":
      if value.hasPrefix("*") {
        let rest = value.dropFirst().drop { $0 == " " }
        for index in formats.indices { formats[index].readFeedback(rest) }
      } else {
        format(value) { $0.readFeedback($1) }
      }
    case "extmap":
      let words = value.split(separator: " ")
      // Only numbers that fit the short form.
      guard words.count >= 2, let id = words[0].split(separator: "/").first.flatMap({ UInt8($0) }),
        (1...14).contains(id)
      else { return }
      extensions[id] = String(words[1])
    case "ssrc":
      guard let id = value.split(separator: " ").first.flatMap({ UInt32($0) }), !sources.contains(id) else { return }
      if sources.count < WebRTCLimits.sources { sources.append(id) }
    case "rid":
      if streams.count < WebRTCLimits.offeredEncodings, let one = OfferedEncoding(value) { streams.append(one) }
    case "simulcast": simulcast = OfferedEncoding.simulcast(value)
    default: break
    }
  }

  private mutating func format(_ value: Substring, _ change: (inout PayloadFormat, Substring) -> Void) {
    let parts = value.split(separator: " ", maxSplits: 1)
    guard parts.count == 2, let type = UInt8(parts[0]),
      let index = formats.firstIndex(where: { $0.payloadType == type })
    else { return }
    change(&formats[index], parts[1])
  }

  /// The encodings of simulcast that may be sent with a payload type, in the sender's order.
  func encodings(of type: UInt8) -> [String] {
    var names: [String] = []
    for alternatives in simulcast {
      let name = alternatives.first { name in
        !names.contains(name) && streams.contains { $0.name == name && $0.allows(type) }
      }
      if let name { names.append(name) }
    }
    return names
  }

  /// The number of a header extension.
  func number(of uri: String) -> UInt8? { extensions.filter { $0.value == uri }.map(\.key).min() }
}

/// The digest of a certificate (RFC 8122 §5).
struct Fingerprint: Hashable {
  /// In lower case: `sha-256`.
  let algorithm: String
  let digest: [UInt8]

  /// Nil for algorithms that are too weak or unknown, and for a digest of the wrong length.
  init?(_ text: Substring) {
    let words = text.split(separator: " ")
    guard words.count == 2 else { return nil }
    algorithm = words[0].lowercased()
    let size: Int
    switch algorithm {
    case "sha-256": size = 32
    case "sha-384": size = 48
    case "sha-512": size = 64
    default: return nil
    }
    let parts = words[1].split(separator: ":", omittingEmptySubsequences: false)
    // Two digits each. A sign in front of one is read by the number's own parser.
    digest = parts.compactMap {
      $0.utf8.count == 2 && $0.allSatisfy(\.isHexDigit) ? UInt8($0, radix: 16) : nil
    }
    guard parts.count == size, digest.count == size else { return nil }
  }

  init(sha256 digest: [UInt8]) { (algorithm, self.digest) = ("sha-256", digest) }

  var text: String {
    algorithm + " "
      + digest.map { ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: true) }.joined(separator: ":")
  }
}
