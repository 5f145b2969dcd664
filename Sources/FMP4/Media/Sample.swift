package import NIOCore

/// One access unit of one track, complete at birth: nothing downstream re-derives or repairs its times.
package struct Sample: Sendable {
  package var track: TrackID
  /// Ticks of the track's timescale. The origin is the publication's: its earliest sample of any track is 0.
  package var decodeTime: Int64
  /// Presentation minus decode time, in ticks; may be negative.
  package var compositionOffset: Int32
  /// Ticks until the next sample, where the codec or a constant rate states it; else the next sample tells.
  package var duration: UInt32?
  /// Decoding may start here (an IDR of H.264, an IRAP of HEVC, a key frame of AV1, every sample of audio).
  package var isSync: Bool
  /// No other sample needs it to be decoded: a player that is short of time may leave it out.
  package var isDisposable: Bool
  /// The bytes as ISO BMFF stores them: NAL units behind four-byte lengths, a raw AAC frame, an AV1 temporal
  /// unit without its delimiter, an Opus packet. A buffer of exactly this size, never a slice of a read buffer.
  package var payload: ByteBuffer

  /// In ticks of the track's timescale.
  package var presentationTime: Int64 { decodeTime &+ Int64(compositionOffset) }

  package init(
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
