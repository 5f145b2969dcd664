package import FMP4
package import Storage

extension LiveWindow {
  /// A key frame in memory.
  package struct KeyFrame: Sendable {
    /// Media sequence number of the segment that it starts.
    package var segment: Int
    package var track: TrackDescription
    /// The sample's bytes.
    package var range: FileRange
  }

  /// The newest video frame that starts a segment and at which decoding can start.
  package var newestKeyFrame: KeyFrame? {
    for segment in segments.reversed() where segment.isIndependent {
      guard let track = inits[segment.initVersion]?.tracks.first(.video),
        let run = segment.fragments.first?.run(of: track.id), run.firstSampleLength > 0
      else { continue }
      return KeyFrame(
        segment: segment.sequenceNumber, track: track,
        range: FileRange(file: segment.memory.file, offset: run.mediaOffset, length: run.firstSampleLength))
    }
    return nil
  }
}
