package import Publishing

/// What the worker knows about streams and keys, so that it can reject a caller within the handshake. The server keeps
/// it current. What it cannot say, the server decides when the caller is connected.
package struct SRTTable: Sendable, Hashable {
  /// The settings of the streams that a pattern matches.
  package struct Entry: Sendable, Hashable {
    package var names: NamePattern
    /// Empty for a stream without encryption.
    package var passphrase: SRTPassphrase?
    /// Milliseconds.
    package var latency: UInt16

    package init(names: NamePattern, passphrase: SRTPassphrase?, latency: UInt16) {
      (self.names, self.passphrase, self.latency) = (names, passphrase, latency)
    }
  }

  /// A publish key, and the names that it is for.
  package struct Key: Sendable, Hashable {
    package var names: NamePattern
    /// SHA-256 of its text.
    package var digest: [UInt8]

    package init(names: NamePattern, digest: [UInt8]) { (self.names, self.digest) = (names, digest) }
  }

  /// The most specific first; the first that matches holds.
  package var entries: [Entry] = []
  /// The keys of publishers. Nil if not all that is accepted is known here; empty if none is needed.
  package var keys: [Key]? = []
  /// The stream of callers whose stream IDs name none. Nil if they are rejected.
  package var defaultStream: StreamName?
  /// Names that a publisher holds, by its host (as `PublishRequest.host`).
  package var busy: [String: String] = [:]
  /// Connections of one host at a time; 0 for any number.
  package var connectionsPerAddress: UInt32 = 0
  /// Connections of all at a time. One host has at most half of what is left.
  package var connections = UInt32(SRTLimits.connections)

  package init() {}

  /// The settings for a stream. Throws if the caller is rejected for certain.
  ///
  /// - Parameters:
  ///   - host: as `PublishRequest.host`.
  ///   - judgesKeys: false if the server is to judge the key, after a delay.
  func admit(_ id: SRTStreamID, from host: String, judgesKeys: Bool) throws(SRTRejection) -> Entry {
    if let keys, judgesKeys, !keys.isEmpty { try judge(id, keys) }
    if let holder = busy[id.stream.description], !mayTakeOver(id, from: host, holder) {
      throw SRTRejection(.conflict, "this name is being published already; stop that publisher or choose another name")
    }
    return entries.first { $0.names.matches(id.stream) }
      ?? Entry(names: NamePattern("*"), passphrase: nil, latency: 120)
  }

  private static let all = NamePattern("*")

  private func judge(_ id: SRTStreamID, _ keys: [Key]) throws(SRTRejection) {
    guard let text = id.key else {
      guard !id.isDefault else {
        throw SRTRejection(
          .unauthorized,
          "callers without a stream ID publish \(id.stream) (--srt-default-stream), and that name needs a key; put both into"
            + " the stream ID: NAME?key=SECRET")
      }
      throw SRTRejection(
        .unauthorized, "the publish key is missing; put it into the stream ID: #!::r=NAME,m=publish,s=KEY")
    }
    let secret = Secret(text)
    // All keys are compared, so that the time does not show which one matched.
    let matching = keys.filter { Secret(digest: $0.digest).matches(secret) }
    guard !matching.isEmpty else { throw SRTRejection(.unauthorized, "the publish key is wrong") }
    guard matching.contains(where: { $0.names.matches(id.stream) }) else {
      throw SRTRejection(.forbidden, "the publish key is not for this stream")
    }
  }

  /// As the server decides about a name whose publisher still sends.
  private func mayTakeOver(_ id: SRTStreamID, from host: String, _ holder: String) -> Bool {
    guard let keys else { return true }
    guard !keys.isEmpty, let secret = id.key.map({ Secret($0) }) else { return false }
    let isOwn = keys.contains {
      $0.names != Self.all && $0.names.matches(id.stream) && Secret(digest: $0.digest).matches(secret)
    }
    return isOwn || host == holder
  }
}

/// A passphrase. Prints as `***`.
package struct SRTPassphrase: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible,
  CustomReflectable
{
  let text: String

  /// Bytes that libsrt takes.
  package static let lengths = 10...79

  /// Nil if libsrt takes no passphrase of that length.
  package init?(_ text: String) {
    guard Self.lengths.contains(text.utf8.count) else { return nil }
    self.text = text
  }

  package var description: String { "***" }
  package var debugDescription: String { "***" }
  package var customMirror: Mirror { Mirror(self, children: []) }
}
