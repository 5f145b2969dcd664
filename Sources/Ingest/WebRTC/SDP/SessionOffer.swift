/// An offer (RFC 8866, RFC 9429 §5.8), read as far as an answer needs it. Also a fragment of one (RFC 8840 §9), which has
/// no `v=`.
struct SessionOffer {
  private(set) var sections: [MediaSection] = []
  /// As it came.
  let byteCount: Int
  /// The sections that share one transport (RFC 9143).
  private(set) var bundle: [String] = []

  /// Whether the section shares that transport.
  func bundles(_ section: MediaSection) -> Bool { section.mid.map(bundle.contains) ?? false }

  enum Form { case whole, fragment }

  init(_ text: String, _ form: Form = .whole) throws(OfferError) {
    guard text.utf8.count <= WebRTCLimits.offerBytes else {
      throw OfferError(.malformed, "an offer of \(text.utf8.count) bytes; \(WebRTCLimits.offerBytes) are read")
    }
    byteCount = text.utf8.count
    // "\r\n" is one character of Swift.
    let lines = text.split(maxSplits: WebRTCLimits.offerLines) { $0 == "\n" || $0 == "\r\n" || $0 == "\r" }
    guard lines.count <= WebRTCLimits.offerLines else {
      throw OfferError(.malformed, "an offer of more than \(WebRTCLimits.offerLines) lines")
    }
    guard form == .fragment || lines.first?.hasPrefix("v=0") == true else {
      throw OfferError(.malformed, "the body does not begin with v=0, so it is no session description")
    }
    var common: [(Substring, Substring)] = []
    for line in lines {
      guard line.utf8.count <= WebRTCLimits.lineBytes else {
        throw OfferError(.malformed, "a line of \(line.utf8.count) bytes; \(WebRTCLimits.lineBytes) are read")
      }
      if line.hasPrefix("m=") {
        guard sections.count < WebRTCLimits.mediaSections else {
          throw OfferError(.malformed, "more than \(WebRTCLimits.mediaSections) media sections")
        }
        var section = try MediaSection(line: line.dropFirst(2))
        for (name, value) in common { section.receive(name, value) }
        sections.append(section)
      } else if line.hasPrefix("a=") {
        let parts = line.dropFirst(2).split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let (name, value) = (parts.first ?? "", parts.count > 1 ? parts[1] : "")
        if sections.isEmpty {
          if name == "group" { readGroup(value) }
          if MediaSection.inherited.contains(name) { common.append((name, value)) }
        } else {
          sections[sections.count - 1].receive(name, value)
        }
      }
    }
    commonFragment = common.last { $0.0 == "ice-ufrag" }.map { String($0.1) }
    commonPassword = common.last { $0.0 == "ice-pwd" }.map { String($0.1) }
    guard sections.allSatisfy({ ($0.mid ?? "").utf8.count <= WebRTCLimits.credentialBytes }) else {
      throw OfferError(.malformed, "a name of a media section (mid) that is too long")
    }
  }

  /// Of a fragment without media sections.
  private var commonFragment: String?
  private var commonPassword: String?

  private mutating func readGroup(_ value: Substring) {
    let words = value.split(separator: " ").map(String.init)
    if words.first == "BUNDLE" { bundle = Array(words.dropFirst().prefix(WebRTCLimits.mediaSections)) }
  }

  /// The name of the peer's ICE agent; it changes with a restart.
  var fragment: String? { sections.lazy.compactMap(\.fragment).first ?? commonFragment }
  /// The password of that agent.
  var password: String? { sections.lazy.compactMap(\.password).first ?? commonPassword }
}
