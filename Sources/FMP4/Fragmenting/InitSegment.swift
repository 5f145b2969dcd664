/// The tracks of the fragments that follow. `Boxes` writes it as `ftyp` and `moov` without media, in every layout
/// (ISO/IEC 14496-12 §8.2, 23000-19 §7.3).
package struct InitSegment: Sendable {
  /// 1 for the first of an epoch. Each parameter change adds 1.
  package let version: Int
  package let tracks: [TrackDescription]

  package init(version: Int, tracks: [TrackDescription]) {
    self.version = version
    self.tracks = tracks
  }
}
