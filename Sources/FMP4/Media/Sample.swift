public import NIOCore

/// One access unit or audio frame of one track. Its times are final: no later stage changes or repairs them.
public struct Sample: Sendable {
  /// The track that it belongs to.
  public var track: TrackID
  /// Ticks of the track's timescale. The earliest sample of the publication, on any track, is at 0.
  public var decodeTime: Int64
  /// Presentation minus decode time, in ticks; may be negative.
  public var compositionOffset: Int32
  /// Ticks until the next sample, if the codec or a constant rate gives it. Otherwise the next sample's time shows it.
  public var duration: UInt32?
  /// Decoding can start here: an IDR of H.264, an IRAP of HEVC, a key frame of AV1 or VP9, every audio sample.
  public var isSync: Bool
  /// No other sample depends on it. A player that is too slow may skip it.
  public var isDisposable: Bool
  /// The bytes as ISO BMFF stores them: NAL units with four-byte lengths, a raw AAC frame, an AV1 temporal unit without
  /// its delimiter, or an Opus packet. The buffer has exactly this size and is never a slice of a read buffer.
  public var payload: ByteBuffer

  /// When it is shown or heard, in ticks of the track's timescale.
  public var presentationTime: Int64 { decodeTime &+ Int64(compositionOffset) }

  /// A sample of a track. Times and durations are ticks of the track's timescale.
  public init(
    track: TrackID, decodeTime: Int64, compositionOffset: Int32 = 0, duration: UInt32? = nil, isSync: Bool,
    isDisposable: Bool = false, payload: ByteBuffer
  ) {
    self.track = track
    self.decodeTime = decodeTime
    self.compositionOffset = compositionOffset
    self.duration = duration
    self.isSync = isSync
    self.isDisposable = isDisposable
    self.payload = payload
  }
}
