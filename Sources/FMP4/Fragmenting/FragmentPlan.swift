/// What one fragment of a stream's own picture came to: other renditions of the picture are cut at the same times.
package struct FragmentPlan: Sendable, Hashable {
  /// Names its segment, for whoever made the plan.
  package var segment: Int
  package var startsSegment: Bool
  /// Decoding of the source may start with it.
  package var isIndependent: Bool
  /// Decode times at which it begins and ends. Equal where the source has no picture in it.
  package var start: MediaTime
  package var end: MediaTime
  /// Earliest presentation time of the segment minus its first decode time.
  package var reorderDelay: MediaTime
  /// As `Fragment` has them.
  package var presentationStart: MediaTime
  package var presentationEnd: MediaTime
  package var isExpectedLast: Bool
  package var expectedSegmentDuration: MediaTime?

  /// The plan that a fragment of the source makes; nil where its leading track has none.
  ///
  /// - Parameters:
  ///   - segment: names the segment that it is in.
  ///   - former: the plan made of the fragment before, whose reorder delay holds for its whole segment.
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

  /// The plan for a track of audio: it begins with the source's own audio, or the fragment, and ends with the fragment as
  /// it is presented.
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
