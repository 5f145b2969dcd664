internal import NIOCore

/// The answer to an offer (RFC 9429 §5.3): as many media sections in the same order, each taken with one codec or refused.
/// Encodings of simulcast are named again. Where there is no such name the sender sends the first one (RFC 8853 §5.3).
struct SessionAnswer {
  let negotiation: Negotiation
  let agent: ICEAgent
  /// Of weir's certificate.
  let fingerprint: Fingerprint
  let candidates: [ICECandidate]
  /// A number for the `o=` line.
  let session: UInt64

  var text: String {
    let places = Set(negotiation.tracks.map(\.section)).sorted()
    var lines = Self.head(session, mids: places.compactMap { negotiation.offer.sections[$0].mid })
    for (index, section) in negotiation.offer.sections.enumerated() {
      if let track = negotiation.tracks.first(where: { $0.section == index }) {
        lines += taken(section, track)
      } else {
        lines += Self.inactive(section)
      }
    }
    return lines.joined(separator: "\r\n") + "\r\n"
  }

  private func taken(_ section: MediaSection, _ track: Negotiation.Track) -> [String] {
    let (format, type) = (track.format, track.format.payloadType)
    let types = "\(type)" + (track.repair.map { " \($0)" } ?? "")
    var lines = ["m=\(section.kind) 9 \(section.transport) \(types)", "c=IN IP4 0.0.0.0"]
    if let mid = track.mid { lines.append("a=mid:\(mid)") }
    lines += ["a=recvonly", "a=rtcp-mux"]
    // Browsers that send audio alone leave its channels out of the line.
    let channels = format.channels > 1 ? "/\(format.channels)" : ""
    lines.append("a=rtpmap:\(type) \(RTPCodec.name(track.coding))/\(format.clock)\(channels)")
    if let parameters = RTPCodec.parameters(track.coding, format) { lines.append("a=fmtp:\(type) \(parameters)") }
    lines += PayloadFormat.knownFeedback.filter { format.feedback.contains($0) }.map { "a=rtcp-fb:\(type) \($0)" }
    if let repair = track.repair {
      lines += ["a=rtpmap:\(repair) rtx/\(format.clock)", "a=fmtp:\(repair) apt=\(type)"]
    }
    let names = negotiation.tracks.filter { $0.section == track.section }.compactMap(\.rid)
    for (uri, number) in [
      (Negotiation.transportFeedback, negotiation.feedbackNumber), (Negotiation.midExtension, negotiation.midNumber),
      (Negotiation.ridExtension, names.isEmpty ? nil : negotiation.ridNumber),
      (Negotiation.repairedExtension, names.isEmpty || track.repair == nil ? nil : negotiation.repairedNumber),
    ] {
      if let number, section.extensions[number] == uri { lines.append("a=extmap:\(number) \(uri)") }
    }
    if !names.isEmpty {
      lines += names.map { "a=rid:\($0) recv" } + ["a=simulcast:recv \(names.joined(separator: ";"))"]
    }
    lines += Self.transport(agent, fingerprint, negotiation.role, candidates)
    return lines
  }

  /// The answer to a restart of ICE (RFC 9725 §4.3.3).
  var fragment: String { Self.fragment(agent, candidates) }
}

/// What answers to publishers and to viewers have in common.
extension SessionAnswer {
  static func head(_ session: UInt64, mids: [String]) -> [String] {
    [
      "v=0", "o=- \(session >> 1) 1 IN IP4 0.0.0.0", "s=-", "t=0 0", "a=ice-lite", "a=msid-semantic: WMS",
    ] + (mids.isEmpty ? [] : ["a=group:BUNDLE \(mids.joined(separator: " "))"])
  }

  /// A section that is not taken.
  static func inactive(_ section: MediaSection) -> [String] {
    ["m=\(section.kind) 0 \(section.transport) \(section.formatText)", "c=IN IP4 0.0.0.0"]
      + (section.mid.map { ["a=mid:\($0)"] } ?? []) + ["a=inactive"]
  }

  static func transport(
    _ agent: ICEAgent, _ fingerprint: Fingerprint, _ role: Negotiation.Role, _ candidates: [ICECandidate]
  ) -> [String] {
    [
      "a=ice-ufrag:\(agent.fragment)", "a=ice-pwd:\(agent.password)", "a=fingerprint:\(fingerprint.text)",
      "a=setup:\(role == .server ? "passive" : "active")",
    ] + candidates.map { "a=\($0.text)" } + ["a=end-of-candidates"]
  }

  static func fragment(_ agent: ICEAgent, _ candidates: [ICECandidate]) -> String {
    (["a=ice-lite", "a=ice-ufrag:\(agent.fragment)", "a=ice-pwd:\(agent.password)"]
      + candidates.map { "a=\($0.text)" } + ["a=end-of-candidates"]).joined(separator: "\r\n") + "\r\n"
  }
}

/// An address at which publishers reach weir (RFC 8839 §5.1).
struct ICECandidate: Hashable {
  enum Transport { case udp, tcp }

  var address: String
  var port: UInt16
  var transport: Transport
  /// Its place among the addresses; the first is preferred.
  var rank: Int

  var text: String {
    // RFC 8445 §5.1.2.1: a host address, UDP before TCP (RFC 6544 §4.2).
    let preference = UInt32(clamping: max(0, 8191 - rank))
    let local = transport == .udp ? 65_535 - UInt32(clamping: min(rank, 1000)) : 4 << 13 | preference
    let priority = UInt32(126) << 24 | local << 8 | 255
    let foundation = rank * 2 + (transport == .udp ? 1 : 2)
    switch transport {
    case .udp: return "candidate:\(foundation) 1 udp \(priority) \(address) \(port) typ host"
    case .tcp: return "candidate:\(foundation) 1 tcp \(priority) \(address) \(port) typ host tcptype passive"
    }
  }
}
