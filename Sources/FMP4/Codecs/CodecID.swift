/// Video or audio.
public enum MediaKind: String, Sendable, Hashable {
  /// Moving pictures.
  case video
  /// Sound.
  case audio
}

/// The supported codecs, each implemented in one file. The set is closed, so that a protocol's map shows what
/// it leaves out. Codecs are never compared as strings.
public enum CodecID: String, Sendable, Hashable, CaseIterable {
  /// Video: ITU-T H.264 and H.265, AV1, VP9 and VP8.
  case h264, hevc, av1, vp9, vp8
  /// Audio: AAC, Opus, AC-3 and E-AC-3.
  case aac, opus, ac3, eac3
  /// MPEG audio of layers I to III.
  case mpegAudio = "mp3"
  /// Telephone audio, ITU-T G.711.
  case alaw, mulaw

  /// Whether MP4 carries it here. What it does not carry is decoded and encoded in another codec first.
  public var isCarried: Bool { type.sampleEntry != nil }

  /// Whether outputs carry it and most browsers cannot play it.
  package var isRarelyPlayed: Bool { self == .ac3 || self == .eac3 }

  /// Name for display.
  public var name: String { type.name }

  /// Video or audio.
  public var kind: MediaKind { type.kind }

  /// Nil if there is no such codec of that kind.
  package init?(_ kind: MediaKind, rawValue: some StringProtocol) {
    self.init(rawValue: String(rawValue))
    if self.kind != kind { return nil }
  }
}
