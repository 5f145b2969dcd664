/// Video or audio.
package enum MediaKind: String, Sendable, Hashable {
  case video
  case audio
}

/// The codecs that weir supports, each implemented in one file. The set is closed, so that a protocol's map shows what
/// it leaves out. Codecs are never compared as strings.
package enum CodecID: String, Sendable, Hashable, CaseIterable {
  case h264, hevc, av1, vp9, vp8, aac, opus, ac3, eac3
  /// Layers I to III.
  case mpegAudio = "mp3"
  case alaw, mulaw

  /// Whether outputs carry it. What they do not carry is decoded and encoded in another codec.
  package var isCarried: Bool { type.sampleEntry != nil }

  /// Whether outputs carry it and most browsers cannot play it.
  package var isRarelyPlayed: Bool { self == .ac3 || self == .eac3 }

  /// Name for display.
  package var name: String { type.name }

  package var kind: MediaKind { type.kind }

  /// Nil if there is no such codec of that kind.
  package init?(_ kind: MediaKind, rawValue: some StringProtocol) {
    self.init(rawValue: String(rawValue))
    if self.kind != kind { return nil }
  }
}
