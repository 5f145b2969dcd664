internal import Base

extension SRTStreamID {
  /// Modes, in IDs that begin with one.
  private static let modes: Set<Substring> = ["publish", "read", "request", "play", "subscribe"]

  /// A stream ID as a refusal shows it: printable, with `***` in place of whatever may be a secret. Empty if none came.
  static func shown(_ text: String) -> String {
    var text = String(decoding: text.utf8.prefix(SRTLimits.streamIDBytes), as: UTF8.self)
    // A secret may hide behind escapes of escapes.
    while text.percentDecoded != text { text = text.percentDecoded }
    let shown = text.hasPrefix("#!::") ? "#!::" + self.shown(members: text.dropFirst(4)) : self.shown(plain: text[...])
    return PeerText.printable(shown, limit: SRTLimits.streamIDBytes)
  }

  private static func shown(members text: Substring) -> String {
    let members = text.split(separator: ",")
    // Elsewhere it is a user, and those who mistake it write their key there.
    let isNamedByUser = members.contains { $0.hasPrefix("bmd_") } && !members.contains { $0.hasPrefix("r=") }
    return members.map { shown(member: $0, isNamedByUser: isNamedByUser) }.joined(separator: ",")
  }

  private static func shown(member: Substring, isNamedByUser: Bool) -> String {
    guard let (label, value) = member.labelled else { return "***" }
    switch label {
    case "bmd_uuid", "bmd_name": return String(member)
    case "u" where isNamedByUser: return "u=" + shown(plain: value)
    case "r", "m", "t", "h", "program": return "\(label)=" + shown(plain: value)
    case "s", "u": return "\(label)=***"
    // A key with a comma ends in what looks like a label.
    default: return "***"
    }
  }

  private static func shown(plain text: Substring) -> String {
    let (scheme, text) = text.hasPrefix("srt://") ? ("srt://", text.dropFirst(6)) : ("", text)
    let (first, rest) = text.splitOnce(at: ":")
    // Elsewhere a secret may stand behind a colon.
    guard let rest, modes.contains(first) || text.beginsWithPort else { return scheme + harmless(text) }
    return scheme + harmless(first) + ":" + harmless(rest)
  }

  /// The text up to what names of streams and hosts do not have: a secret may begin there.
  private static func harmless(_ text: Substring) -> String {
    let open = text.prefix {
      $0.isASCII && ($0.isLetter || $0.isNumber) || $0 == "." || $0 == "_" || $0 == "-" || $0 == "/"
    }
    return String(open) + (open.endIndex < text.endIndex ? "***" : "")
  }
}
