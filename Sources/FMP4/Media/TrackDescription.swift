/// Clockwise turn that a player applies to the picture before it is shown (the matrix of ISO/IEC 14496-12 §8.3.2).
package enum Rotation: UInt16, Sendable, Hashable {
  case none = 0
  case clockwise90 = 90
  case clockwise180 = 180
  case clockwise270 = 270
}

/// What a track is, for as long as its parameters stay the same. Two equal descriptions need no new init segment.
package struct TrackDescription: Sendable, Hashable {
  package var id: TrackID
  package var codec: Codec
  /// Ticks a second of the track's times: the sample rate for audio; for picture the numerator of a recognised
  /// frame rate (24000, 30000, 60000 …), else 90000.
  package var timescale: UInt32
  /// Ticks between two pictures where the rate is known to be constant; nil for a variable or unknown rate.
  package var frameDuration: UInt32?
  /// ISO 639-2/T code of three letters; "und" when unknown.
  package var language: String
  package var rotation: Rotation
  /// Colours as stated beside the bitstream; nil when they were not, and for audio.
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

  /// Ticks of each sample where all are equally long: by the frame rate, or by the codec.
  package var sampleDuration: UInt32? { codec.configuration.frameDuration ?? frameDuration }
}

extension [TrackDescription] {
  /// The first track of a kind.
  package func first(_ kind: MediaKind) -> TrackDescription? { first { $0.kind == kind } }

  /// The track by which fragments are cut: the first video track, else the first of all.
  package var leader: TrackDescription? { first(.video) ?? first }

  /// The first track of each kind: what is played where nobody chooses.
  package var defaults: [TrackDescription] { filter { first($0.kind)?.id == $0.id } }

  /// The same tracks, those that are played where nobody chooses before the others.
  package var defaultsFirst: [TrackDescription] {
    let defaults = defaults
    return defaults + filter { !defaults.contains($0) }
  }
}
