package import FMP4

/// Lists a segment before it is complete, when its length is known: a player of chunks needs its address while it grows. The
/// listing is decided with the track's first samples and never changes.
extension LiveSegment {
  /// A track's part of a segment as manifests list it, in ticks of the track.
  package struct Listing: Sendable, Hashable {
    /// Earliest presentation time.
    package var start: Int64
    package var duration: Int64
  }

  /// The expected listing of a track. `run` holds its first samples in this segment; `first` is the first presentation time
  /// (ticks); `leads` marks the leading track. The leading track ends where the next GOP begins. Other tracks end with the last
  /// sample before their own end. Nil when the samples differ in length, since an exact length cannot be given then.
  func announcement(of run: TrackRun, from first: Int64, leads: Bool) -> Listing? {
    guard let expectedDuration, let sample = run.samples.first?.duration, sample > 0,
      run.samples.allSatisfy({ $0.duration == sample })
    else { return nil }
    let end = leads ? start + expectedDuration : expectedFollowersEnd ?? start + expectedDuration
    let length = end.rescaled(to: run.timescale) &- first
    guard length > 0 else { return nil }
    if leads { return Listing(start: first, duration: length) }
    // Audio has all samples that begin before the end. A frame of a video at the end belongs to the next segment.
    let part = furtherVideos.contains(run.track) ? Int64(sample) / 2 : Int64(sample) &- 1
    let count = max(1, (length &+ part) / Int64(sample))
    return Listing(start: first, duration: count &* Int64(sample))
  }

  /// The length differs from the announcement, so the next segment does not begin where the listing ends.
  var brokeItsAnnouncement: Bool {
    isComplete && spans.contains { $0.listed.start != $0.start || $0.listed.duration != $0.duration }
  }

  /// The announced length of the leading track, whose samples come first.
  package var announced: MediaTime? {
    spans.first.flatMap { span in
      span.announced.map { MediaTime(ticks: $0.duration, timescale: span.timescale) }
    }
  }
}

extension LiveSegment.TrackSpan {
  /// The listing in manifests: the announced one while the segment grows, the true one without an announcement.
  package var listed: LiveSegment.Listing { announced ?? LiveSegment.Listing(start: start, duration: duration) }
}

extension LiveWindow {
  /// The growing segment, when it can be listed already.
  package var announced: LiveSegment? {
    guard !isEnded, let newest = segments.last, !newest.isComplete, newest.announced != nil else { return nil }
    return newest
  }
}
