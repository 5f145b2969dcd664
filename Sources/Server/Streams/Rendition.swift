package import FMP4

/// A selection and layout of a stream's tracks, with its own path in URLs.
package enum Rendition: Sendable, Hashable, CaseIterable {
  /// The first track of each kind, interleaved: HLS, progressive fMP4.
  case interleaved
  /// The first video alone: DASH, HLS in the separate layout.
  case video
  /// The first audio alone.
  case audio
  /// A further track of a kind alone, by its number: 2 or more.
  case further(MediaKind, Int)
  /// The video of a rung of the ladder, by the rung's name.
  case rung(String)
  /// The audio in another codec than the source's.
  case transcodedAudio(CodecID)

  /// The renditions that any stream can have.
  package static let allCases: [Rendition] = [.interleaved, .video, .audio]

  /// The path segment in URLs.
  package var rawValue: String {
    switch self {
    case .interleaved: "av"
    case .video: "video"
    case .audio: "audio"
    case .further(let kind, let number): "\(kind.rawValue)-\(number)"
    case .rung(let name): name
    case .transcodedAudio(let coding): coding.rawValue
    }
  }

  /// The rendition of a track of the source.
  package init(_ track: TrackDescription) {
    switch (track.kind, track.number) {
    case (.video, 1): self = .video
    case (.audio, 1): self = .audio
    case (let kind, let number): self = .further(kind, number)
    }
  }

  /// From the path segment of a rendition of the source.
  package init?(rawValue: String) {
    if let rendition = Self.allCases.first(where: { $0.rawValue == rawValue }) {
      self = rendition
    } else {
      let parts = rawValue.split(separator: "-", omittingEmptySubsequences: false)
      guard parts.count == 2, let kind = MediaKind(rawValue: String(parts[0])), let number = Int(parts[1]),
        (2...Self.mostTracks).contains(number), rawValue == "\(kind.rawValue)-\(number)"
      else { return nil }
      self = .further(kind, number)
    }
  }

  /// Most numbers of tracks of one kind. `TrackPlaces` gives no more.
  package static let mostTracks = 32

  /// From the path segment of any rendition.
  package init?(pathSegment: String) {
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
  package var kind: MediaKind? {
    switch self {
    case .interleaved: nil
    case .video, .rung: .video
    case .audio, .transcodedAudio: .audio
    case .further(let kind, _): kind
    }
  }

  /// The number of its track among the source's tracks of the kind; nil for other renditions.
  private var number: Int? {
    switch self {
    case .video, .audio: 1
    case .further(_, let number): number
    case .interleaved, .rung, .transcodedAudio: nil
    }
  }

  /// Its track among those of its window. Nil for the interleaved layout, and if there is none.
  package func track(in tracks: [TrackDescription]) -> TrackDescription? {
    kind.flatMap { kind in number.map { tracks.track(kind, $0) } ?? tracks.first(kind) }
  }

  /// Transcoded, with its own window.
  package var isRung: Bool {
    switch self {
    case .rung, .transcodedAudio: true
    case .interleaved, .video, .audio, .further: false
    }
  }
}
