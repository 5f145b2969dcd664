package import Streams

/// The first list that a player takes.
///
/// A playlist of parts without a whole segment is there a part after the first key frame. Some players take it for broken
/// (libavformat, GStreamer, hls.js), so only who asks by `?start=parts` gets it. Once a whole segment is listed, and where the
/// distance of key frames is not known, the query makes no difference.
package enum HLSStart: Sendable, Hashable {
  case wholeSegment
  case parts
  /// Parts behind a segment without media (EXT-X-GAP), which is as long as a part: hls.js asks for a list without any segment
  /// again a second later. It takes Media Sequence Number 0 for none, so that of each segment is one higher than in other lists.
  case gap

  /// As it stands in addresses.
  var query: String {
    switch self {
    case .wholeSegment: ""
    case .parts: "?start=parts"
    case .gap: "?start=gap"
    }
  }

  /// - Parameter value: Returns the query's value of a name.
  package init(_ value: (String) -> String?) {
    switch value("start") {
    case "parts": self = .parts
    case "gap": self = .gap
    default: self = .wholeSegment
    }
  }

  /// Whether it makes a difference now.
  package func isEarly(_ window: LiveWindow) -> Bool { self != .wholeSegment && window.listsPartsAlone }

  /// Media Sequence Numbers less the numbers of segments.
  package var offset: Int { self == .gap ? 1 : 0 }
}
