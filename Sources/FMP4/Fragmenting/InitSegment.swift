package import NIOCore

/// An init segment in every layout: `ftyp` and `moov` without media (ISO/IEC 14496-12 §8.2, 23000-19 §7.3).
package struct InitSegment: Sendable {
  /// 1 for the first of an epoch, then counting up with each parameter change.
  package let version: Int
  package let tracks: [TrackDescription]
  /// All tracks in one: for HLS, progressive fMP4 and recordings.
  package let interleaved: ByteBuffer

  package init(version: Int, tracks: [TrackDescription]) {
    self.version = version
    self.tracks = tracks
    interleaved = InitBoxes.initSegment(of: tracks)
  }

  /// The one-track CMAF init segment of a track.
  package func single(_ track: TrackDescription) -> ByteBuffer {
    InitBoxes.initSegment(of: [track])
  }
}
