/// Video or audio.
package enum MediaKind: String, Sendable, Hashable {
  case video
  case audio
}

/// The codecs that weir supports, each implemented in one file. The set is closed, so that a protocol's map shows what
/// it leaves out. Codecs are never compared as strings.
package enum CodecID: String, Sendable, Hashable, CaseIterable {
  case h264, hevc, av1, aac, opus, ac3, eac3

  /// Name for display.
  package var name: String { type.name }

  package var kind: MediaKind { type.kind }

  /// Nil if there is no such codec of that kind.
  package init?(_ kind: MediaKind, rawValue: some StringProtocol) {
    self.init(rawValue: String(rawValue))
    if self.kind != kind { return nil }
  }
}
