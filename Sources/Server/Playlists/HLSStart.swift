/// The first list that a player takes.
///
/// A playlist of parts without a whole segment is there a part after the first key frame. Some players take it for broken
/// (libavformat, GStreamer, hls.js), so only who asks by `?start=parts` gets it. Once a whole segment is listed, and where the
/// distance of key frames is not known, the query makes no difference.
enum HLSStart: Sendable {
  case wholeSegment
  case parts

  /// As it stands in addresses.
  static let query = "?start=parts"

  /// - Parameter value: Returns the query's value of a name.
  init(_ value: (String) -> String?) { self = value("start") == "parts" ? .parts : .wholeSegment }

  /// Whether it makes a difference now.
  func isEarly(_ window: LiveWindow) -> Bool { self == .parts && window.listsPartsAlone }
}
