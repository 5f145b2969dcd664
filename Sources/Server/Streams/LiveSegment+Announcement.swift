internal import FMP4

/// A segment can be listed before it is complete, as long as it is known how long it will be: a player of chunks needs
/// its address while it is made. What is listed of it never changes again: it is decided with the track's first samples.
extension LiveSegment {
  /// A track's part of a segment as manifests list it, in ticks of the track.
  struct Listing: Sendable, Hashable {
    /// Earliest presentation time.
    var start: Int64
    var duration: Int64
  }

  /// What is foretold of a track whose first samples in this segment are `run`, shown from `first` on (ticks), the leading
  /// track's if it `leads`: the leading track ends where the next group of pictures begins, the others with the last sample before their own end.
  /// Nil where the samples are not equally long, since then nothing can be foretold to the tick.
  func announcement(of run: TrackRun, from first: Int64, leads: Bool) -> Listing? {
    guard let expectedDuration, let sample = run.samples.first?.duration, sample > 0,
      run.samples.allSatisfy({ $0.duration == sample })
    else { return nil }
    let end = leads ? start + expectedDuration : expectedFollowersEnd ?? start + expectedDuration
    let length = end.rescaled(to: run.timescale) &- first
    guard length > 0 else { return nil }
    if leads { return Listing(start: first, duration: length) }
    let count = (length &+ Int64(sample) &- 1) / Int64(sample)
    return Listing(start: first, duration: count &* Int64(sample))
  }

  /// It came to something else than was announced, so that what follows does not begin where its listing ends.
  var brokeItsAnnouncement: Bool {
    isComplete && spans.contains { $0.listed.start != $0.start || $0.listed.duration != $0.duration }
  }

  /// What was announced of its leading track, whose samples come first.
  var announced: MediaTime? {
    spans.first.flatMap { span in
      span.announced.map { MediaTime(ticks: $0.duration, timescale: span.timescale) }
    }
  }
}

extension LiveSegment.TrackSpan {
  /// As manifests list it: what was announced while it was made, else what it came to.
  var listed: LiveSegment.Listing { announced ?? LiveSegment.Listing(start: start, duration: duration) }
}

extension LiveWindow {
  /// The segment in the making, where it can be listed already.
  var announced: LiveSegment? {
    guard !isEnded, let newest = segments.last, !newest.isComplete, newest.announced != nil else { return nil }
    return newest
  }
}
