internal import FMP4
internal import Ingest

/// One way of looking at a stream's bytes, with a place of its own in the URLs.
enum Rendition: Sendable, Hashable, CaseIterable {
  /// The first track of each kind, interleaved: HLS, progressive fMP4.
  case interleaved
  /// The picture alone: DASH, HLS in the separate layout.
  case video
  /// The audio alone.
  case audio
  /// The picture as a rung of the ladder has it, by the rung's name.
  case rung(String)
  /// The audio in another codec than the source's.
  case transcodedAudio(CodecID)

  /// Those that every stream may have.
  static let allCases: [Rendition] = [.interleaved, .video, .audio]

  /// Its place in the URLs.
  var rawValue: String {
    switch self {
    case .interleaved: "av"
    case .video: "video"
    case .audio: "audio"
    case .rung(let name): name
    case .transcodedAudio(let coding): coding.rawValue
    }
  }

  /// One of those that every stream may have.
  init?(rawValue: String) {
    guard let rendition = Self.allCases.first(where: { $0.rawValue == rawValue }) else { return nil }
    self = rendition
  }

  /// Any, by its place in a URL.
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

  /// Nil for the interleaved layout.
  var kind: MediaKind? {
    switch self {
    case .interleaved: nil
    case .video, .rung: .video
    case .audio, .transcodedAudio: .audio
    }
  }

  /// Transcoded: it has a window of its own.
  var isRung: Bool {
    switch self {
    case .rung, .transcodedAudio: true
    case .interleaved, .video, .audio: false
    }
  }
}
