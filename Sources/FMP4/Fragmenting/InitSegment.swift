/// The tracks of what follows: `Boxes` writes it, in every layout, as `ftyp` and `moov` without media (ISO/IEC 14496-12
/// §8.2, 23000-19 §7.3).
package struct InitSegment: Sendable {
  /// 1 for the first of an epoch, then counting up with each parameter change.
  package let version: Int
  package let tracks: [TrackDescription]

  package init(version: Int, tracks: [TrackDescription]) {
    self.version = version
    self.tracks = tracks
  }
}
