/// Times of one fragment of the stream's own video. Other renditions of the video are cut at the same times.
package struct FragmentPlan: Sendable, Hashable {
  /// Identifies its segment; the maker of the plan chooses the number.
  package var segment: Int
  package var startsSegment: Bool
  /// Decoding of the source can start with this fragment.
  package var isIndependent: Bool
  /// Decode times at which the fragment begins and ends. Equal if the source has no frame in it.
  package var start: MediaTime
  package var end: MediaTime
  /// Earliest presentation time of the segment minus its first decode time.
  package var reorderDelay: MediaTime
  /// The same values as in `Fragment`.
  package var presentationStart: MediaTime
  package var presentationEnd: MediaTime
  package var isExpectedLast: Bool
  package var expectedSegmentDuration: MediaTime?

  /// Makes the plan of a fragment of the source. Nil if its leading track has no run in it.
  ///
  /// - Parameters:
  ///   - segment: identifies the fragment's segment.
  ///   - former: the plan of the fragment before. Its reorder delay holds for its whole segment.
  package init?(_ fragment: Fragment, segment: Int, after former: FragmentPlan?) {
    guard let run = fragment.run(of: fragment.leader) else { return nil }
    self.segment = segment
    startsSegment = former?.segment != segment
    isIndependent = fragment.isIndependent
    start = MediaTime(ticks: run.baseDecodeTime, timescale: run.timescale)
    end = MediaTime(ticks: run.endDecodeTime, timescale: run.timescale)
    if !startsSegment, let former {
      reorderDelay = former.reorderDelay
    } else {
      reorderDelay = fragment.start - start
    }
    presentationStart = fragment.start
    presentationEnd = fragment.end
    isExpectedLast = fragment.isExpectedLast
    expectedSegmentDuration = fragment.expectedSegmentDuration
  }

  /// The plan for an audio track. It begins with the source's own audio, or with the fragment if that is earlier. It
  /// ends with the fragment, in presentation time.
  package init(audio track: TrackID, of fragment: Fragment, segment: Int) {
    self.segment = segment
    startsSegment = fragment.startsSegment
    isIndependent = true
    start = fragment.start
    if let run = fragment.run(of: track) {
      start = min(start, MediaTime(ticks: run.baseDecodeTime, timescale: run.timescale))
    }
    end = fragment.end
    reorderDelay = .zero
    presentationStart = fragment.start
    presentationEnd = fragment.end
    isExpectedLast = fragment.isExpectedLast
    expectedSegmentDuration = fragment.expectedSegmentDuration
  }
}
