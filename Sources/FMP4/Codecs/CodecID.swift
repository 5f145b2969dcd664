/// Picture or audio.
package enum MediaKind: String, Sendable, Hashable {
  case video
  case audio
}

/// The codecs that weir carries, each with a file that says all of it. The set is closed: what a protocol's map leaves out
/// is seen where the map stands, never by a comparison of strings.
package enum CodecID: String, Sendable, Hashable, CaseIterable {
  case h264, hevc, av1, aac, opus

  /// For people.
  package var name: String { type.name }

  package var kind: MediaKind { type.kind }

  /// Nil where it is none of that kind.
  package init?(_ kind: MediaKind, rawValue: some StringProtocol) {
    self.init(rawValue: String(rawValue))
    if self.kind != kind { return nil }
  }
}
