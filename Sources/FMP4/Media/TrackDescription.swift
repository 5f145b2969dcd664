/// Description of a track; it holds until the next parameter change. Two equal descriptions share an init segment.
package struct TrackDescription: Sendable, Hashable {
  package var id: TrackID
  package var codec: Codec
  /// Ticks per second of the track's times. Audio: the sample rate. Video: the numerator of a recognised frame rate
  /// (24000, 30000, 60000 …), else 90000.
  package var timescale: UInt32
  /// Ticks between two frames at a constant rate. Nil if the rate is variable or unknown.
  package var frameDuration: UInt32?
  /// ISO 639-2/T code of three letters. "und" if unknown.
  package var language: String
  package var rotation: Rotation
  /// Colours stated outside of the parameter sets. Nil if there are none, and for audio.
  package var statedColor: VideoColor?

  package init(
    id: TrackID, codec: Codec, timescale: UInt32, frameDuration: UInt32? = nil, language: String = "und",
    rotation: Rotation = .none, statedColor: VideoColor? = nil
  ) {
    self.id = id
    self.codec = codec
    self.timescale = max(timescale, 1)
    self.frameDuration = frameDuration
    self.language = language
    self.rotation = rotation
    self.statedColor = statedColor
  }

  package var kind: MediaKind { codec.kind }

  /// The same track, turned further; audio as it is.
  package func turned(by rotation: Rotation) -> TrackDescription {
    var turned = self
    if kind == .video { turned.rotation = self.rotation.followed(by: rotation) }
    return turned
  }

  /// Ticks of each sample if all have the same duration: by the codec, else by the frame rate.
  package var sampleDuration: UInt32? { codec.configuration.frameDuration ?? frameDuration }
}

extension [TrackDescription] {
  /// The first track of a kind.
  package func first(_ kind: MediaKind) -> TrackDescription? { first { $0.kind == kind } }

  /// The track by which fragments are cut: the first video track, else the first track.
  package var leader: TrackDescription? { first(.video) ?? first }

  /// The default tracks: the first of each kind. A player plays them unless the viewer chooses others.
  package var defaults: [TrackDescription] { filter { first($0.kind)?.id == $0.id } }

  /// The same tracks with the default tracks first.
  package var defaultsFirst: [TrackDescription] {
    let defaults = defaults
    return defaults + filter { !defaults.contains($0) }
  }
}
