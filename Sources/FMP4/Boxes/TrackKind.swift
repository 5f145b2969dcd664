internal import NIOCore

/// `kind` in the `udta` of a `trak` (ISO/IEC 14496-12 §8.10.4): what a track is for, by DASH's scheme of roles
/// (ISO/IEC 23009-1 §5.8.5.5).
enum TrackKind {
  /// Most bytes that it takes.
  static let room = 96

  private static let scheme = "urn:mpeg:dash:role:2011"

  /// Says nothing of a track that is the only one of its kind and has no purpose of its own.
  static func write(_ out: inout OutputRawSpan, _ track: TrackDescription, _ place: MovieBoxes.Place) {
    guard let value = value(track.role, place) else { return }
    out.box("udta") { out in
      out.fullBox("kind") {
        $0.cString(scheme)
        $0.cString(value)
      }
    }
  }

  private static func value(_ role: TrackRole, _ place: MovieBoxes.Place) -> String? {
    switch (role, place) {
    case (.description, _): "description"
    case (.hearingImpaired, _): "enhanced-audio-intelligibility"
    case (.main, .alone): nil
    case (.main, .first): "main"
    case (.main, .further): "alternate"
    }
  }

  /// The role that a `trak` states first, `main` if it states none that is known.
  static func role(_ track: BoxView) -> TrackRole {
    guard let data = track.first("udta") else { return .main }
    for box in data.boxes() where box.type == "kind" {
      for role: TrackRole in [.description, .hearingImpaired] {
        guard let value = value(role, .alone) else { continue }
        // Version and flags, then both texts, each with a zero byte behind it.
        if box.payload.readableBytesView.dropFirst(4).elementsEqual("\(scheme)\0\(value)\0".utf8) { return role }
      }
    }
    return .main
  }
}
