/// A format that an offer describes for a payload type (RFC 8866 §6.6, §6.15; RFC 4585 §4.2).
struct PayloadFormat: Hashable {
  let payloadType: UInt8
  /// In lower case; empty before its `rtpmap`.
  var name = ""
  /// Ticks per second.
  var clock: UInt32 = 0
  var channels: UInt8 = 1
  /// The text of `fmtp`.
  var parameters = ""
  /// Texts of `rtcp-fb` behind the payload type, of those that an answer may have: `nack`, `nack pli`.
  private(set) var feedback: Set<String> = []

  /// What weir sends to senders that understand it.
  static let knownFeedback = ["nack", "nack pli", "ccm fir", "transport-cc", "goog-remb"]

  init(_ payloadType: UInt8) {
    self.payloadType = payloadType
    // RFC 3551 §6: those that need no rtpmap.
    switch payloadType {
    case 0: (name, clock) = ("pcmu", 8000)
    case 8: (name, clock) = ("pcma", 8000)
    default: break
    }
  }

  /// A parameter of `fmtp` by its name, in lower case.
  func parameter(_ name: String) -> String? {
    for item in parameters.split(separator: ";") {
      let parts = item.split(separator: "=", maxSplits: 1).map { $0.filter { $0 != " " } }
      if parts.count == 2, parts[0].lowercased() == name { return parts[1].lowercased() }
    }
    return nil
  }

  /// Reads the value of an `rtcp-fb` behind its payload type. Others than those of answers are not kept: an offer could
  /// have thousands, for each of its formats.
  mutating func readFeedback(_ text: Substring) {
    if let known = Self.knownFeedback.first(where: { $0 == text }) { feedback.insert(known) }
  }

  /// Reads the value of an `rtpmap` behind its payload type: `opus/48000/2`.
  mutating func readMap(_ text: Substring) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count >= 2, let clock = UInt32(parts[1]) else { return }
    name = parts[0].lowercased()
    self.clock = clock
    channels = parts.count > 2 ? UInt8(parts[2]) ?? 1 : 1
  }
}
