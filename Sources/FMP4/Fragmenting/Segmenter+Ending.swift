/// The end of a publication, and of the tracks that follow the leading one.
extension Segmenter {
  /// Ends the segment of a publisher that has gone. Where its audio goes on behind the video, the list does, too: hls.js goes back by
  /// seconds, again and again, when it has played beyond the end of a list that stands still.
  package mutating func interrupt() -> [FragmentEvent] {
    endsPublication = true
    defer { endsPublication = false }
    return receive(.discontinuity)
  }

  /// Where the last fragment of a publication ends if another track goes on behind the leading one: with that, as far as a part may
  /// last. Nil if none does. No segment goes on behind `end`.
  func longestEnd(after closed: ClosingFragment, within end: MediaTime) -> MediaTime? {
    guard endsPublication, let reach = followersReach(), reach > closed.boundary else { return nil }
    guard let limit = policy.partLimit else { return max(closed.boundary, min(reach, end)) }
    let start = newest.map { $0.longestEnd ?? $0.end } ?? closed.start
    var most = start + limit
    // The last sample, which lies in this part by its start, would end behind it: it has a part of its own.
    let sample = followersSample()
    if reach > most, reach < most + sample { most = most - sample }
    // A part has a sample at least.
    let least = closed.run == nil ? followersStart().map { $0 + CutPolicy.leastRest } : nil
    return max(closed.boundary, min(reach, max(most, least ?? start), end))
  }

  /// Where samples of the followers that go on behind the leading track no longer belong to the open segment: it is not longer than
  /// the target, as it is rounded, nor are tracks that are cut with it, wherever their samples lie.
  func longestSegmentEnd(of closed: ClosingFragment) -> MediaTime {
    let sample = followersSample()
    let longest = max(CutPolicy.leastRest, policy.segmentLimit - sample - sample)
    return max(closed.boundary, (newestStart ?? closed.start) + longest)
  }

  /// The longest newest sample of the followers.
  private func followersSample() -> MediaTime {
    var longest = MediaTime.zero
    for index in queues.indices where index != leaderIndex {
      guard let duration = queues[index].lastDuration else { continue }
      longest = max(longest, MediaTime(ticks: Int64(duration), timescale: queues[index].timescale))
    }
    return longest
  }

  // Loops, because lazy closures would copy the whole segmenter.
  func followersReach() -> MediaTime? {
    var furthest: MediaTime?
    for index in queues.indices where index != leaderIndex {
      guard let reach = queues[index].reach else { continue }
      let time = MediaTime(ticks: reach, timescale: queues[index].timescale)
      furthest = furthest.map { max($0, time) } ?? time
    }
    return furthest
  }

  func followersStart() -> MediaTime? {
    var earliest: MediaTime?
    for index in queues.indices where index != leaderIndex && !queues[index].ready.isEmpty {
      let time = MediaTime(ticks: queues[index].readyStart, timescale: queues[index].timescale)
      earliest = earliest.map { min($0, time) } ?? time
    }
    return earliest
  }
}
