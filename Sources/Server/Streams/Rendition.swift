internal import FMP4
internal import Ingest

/// A selection and layout of a stream's tracks, with its own path in URLs.
enum Rendition: Sendable, Hashable, CaseIterable {
  /// The first track of each kind, interleaved: HLS, progressive fMP4.
  case interleaved
  /// Video only: DASH, HLS in the separate layout.
  case video
  /// Audio only.
  case audio
  /// The video of a rung of the ladder, by the rung's name.
  case rung(String)
  /// The audio in another codec than the source's.
  case transcodedAudio(CodecID)

  /// The renditions that any stream can have.
  static let allCases: [Rendition] = [.interleaved, .video, .audio]

  /// The path segment in URLs.
  var rawValue: String {
    switch self {
    case .interleaved: "av"
    case .video: "video"
    case .audio: "audio"
    case .rung(let name): name
    case .transcodedAudio(let coding): coding.rawValue
    }
  }

  /// From the path segment of a rendition that any stream can have.
  init?(rawValue: String) {
    guard let rendition = Self.allCases.first(where: { $0.rawValue == rawValue }) else { return nil }
    self = rendition
  }

  /// From the path segment of any rendition.
  init?(pathSegment: String) {
    if let rendition = Rendition(rawValue: pathSegment) {
      self = rendition
    } else if let coding = CodecID(.audio, rawValue: pathSegment) {
      self = .transcodedAudio(coding)
    } else {
      let digits = pathSegment.utf8.dropLast()
      guard pathSegment.utf8.last == UInt8(ascii: "p"), (1...5).contains(digits.count),
        digits.allSatisfy({ (0x30...0x39).contains($0) })
      else { return nil }
      self = .rung(pathSegment)
    }
  }

  /// The kind of its track; nil for the interleaved layout.
  var kind: MediaKind? {
    switch self {
    case .interleaved: nil
    case .video, .rung: .video
    case .audio, .transcodedAudio: .audio
    }
  }

  /// Transcoded, with its own window.
  var isRung: Bool {
    switch self {
    case .rung, .transcodedAudio: true
    case .interleaved, .video, .audio: false
    }
  }
}
