/// Description of a track; it holds until the next parameter change. Two equal descriptions share an init segment.
public struct TrackDescription: Sendable, Hashable {
  /// Its number within the stream, and in boxes.
  public var id: TrackID
  /// The codec of its samples, with its configuration.
  public var codec: Codec
  /// Ticks per second of the track's times. Audio: the sample rate. Video: the numerator of a recognised frame rate
  /// (24000, 30000, 60000 …), else 90000.
  public var timescale: UInt32
  /// Ticks between two frames at a constant rate. Nil if the rate is variable or unknown.
  public var frameDuration: UInt32?
  /// ISO 639-2/T code of three letters. "und" if unknown.
  public var language: String
  /// What it is for.
  public var role: TrackRole
  /// How players turn the video.
  public var rotation: Rotation
  /// Colours stated outside of the parameter sets. Nil if there are none, and for audio.
  package var statedColor: VideoColor?

  /// A track. Its timescale is at least 1. Colours are those that the parameter sets state.
  public init(
    id: TrackID, codec: Codec, timescale: UInt32, frameDuration: UInt32? = nil, language: String = "und",
    role: TrackRole = .main, rotation: Rotation = .none
  ) {
    self.init(
      id: id, codec: codec, timescale: timescale, frameDuration: frameDuration, language: language, role: role,
      rotation: rotation, statedColor: nil)
  }

  /// The same with colours that are stated outside of the parameter sets.
  package init(
    id: TrackID, codec: Codec, timescale: UInt32, frameDuration: UInt32? = nil, language: String = "und",
    role: TrackRole = .main, rotation: Rotation = .none, statedColor: VideoColor?
  ) {
    self.id = id
    self.codec = codec
    self.timescale = max(timescale, 1)
    self.frameDuration = frameDuration
    self.language = language
    self.role = role
    self.rotation = rotation
    self.statedColor = statedColor
  }

  /// Video or audio, by its codec.
  public var kind: MediaKind { codec.kind }

  /// The same track, turned further; audio as it is.
  package func turned(by rotation: Rotation) -> TrackDescription {
    var turned = self
    if kind == .video { turned.rotation = self.rotation.followed(by: rotation) }
    return turned
  }

  /// Samples of the other one can be decoded as its own: it may only be described otherwise.
  func isDecoded(like other: TrackDescription) -> Bool {
    id == other.id && codec == other.codec && timescale == other.timescale
  }

  /// Its number among the tracks of its kind, from 1, as `TrackID(_:_:)` gives it. 1 for an ID of the other kind.
  package var number: Int {
    id.rawValue % 2 == (kind == .video ? 1 : 0) ? Int((max(id.rawValue, 1) - 1) / 2) + 1 : 1
  }

  /// Ticks of each sample if all have the same duration: by the codec, else by the frame rate.
  package var sampleDuration: UInt32? { codec.configuration.frameDuration ?? frameDuration }
}

extension [TrackDescription] {
  /// A track by its number among those of its kind.
  package func track(_ kind: MediaKind, _ number: Int) -> TrackDescription? {
    first { $0.kind == kind && $0.number == number }
  }

  /// There are several tracks of a kind.
  package var hasFurther: Bool { defaults.count < count }

  /// The first track of a kind.
  package func first(_ kind: MediaKind) -> TrackDescription? { first { $0.kind == kind } }

  /// The track by which fragments are cut: the first video track, else the first track.
  package var leader: TrackDescription? { first(.video) ?? first }

  /// The default tracks: the first of each kind. A player plays them unless the viewer chooses others.
  package var defaults: [TrackDescription] { filter { first($0.kind)?.id == $0.id } }

  /// The default tracks, with another audio instead of the default one. Nil: the default tracks.
  package func defaults(withAudio audio: TrackID?) -> [TrackDescription] {
    guard let chosen = first(where: { $0.id == audio && $0.kind == .audio }) else { return defaults }
    return (first(.video).map { [$0] } ?? []) + [chosen]
  }

  /// The audio track that a viewer asks for: by its number, its rendition (`audio-2`), or its language (`de`, `deu`).
  package func audio(_ asked: String) -> TrackDescription? {
    let number = asked == "audio" ? 1 : Int(asked.hasPrefix("audio-") ? String(asked.dropFirst(6)) : asked)
    if let number { return track(.audio, number) }
    return LanguageCode.three(asked).flatMap { code in first { $0.kind == .audio && $0.language == code } }
  }

  /// The same tracks with the default tracks first.
  package var defaultsFirst: [TrackDescription] {
    let defaults = defaults
    return defaults + filter { !defaults.contains($0) }
  }
}
