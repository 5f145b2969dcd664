/// How long fragments wait for tracks that follow the leading one.
extension Segmenter {
  /// Whether a fragment goes on waiting for samples of other tracks before `boundary` (presentation time). A track that
  /// has fallen silent is not waited for.
  mutating func awaitsFollowers(
    until boundary: MediaTime, for fragment: ClosingFragment, knownTime: MediaTime?
  ) -> Bool {
    let isOver = patienceIsOver(for: fragment, knownTime: knownTime)
    var awaits = false
    for index in queues.indices where isAwaited(index) {
      let queue = queues[index]
      if let reach = queue.reach, reach >= queue.boundary(at: boundary) { continue }
      if isOver || lag(of: queue).map({ $0 > queue.presence.longestLag }) ?? false {
        queues[index].presence.fellSilent()
      } else {
        awaits = true
      }
    }
    return awaits
  }

  /// Fragments wait for the track: it is there, and nothing says that no sample of it comes.
  private func isAwaited(_ index: Int) -> Bool {
    let queue = queues[index]
    return index != leaderIndex && !queue.presence.isAbsent && !isLeaving(queue.track)
      && !awaitsSync.contains(queue.track.id)
  }

  /// How far the samples of a track end behind the leading track, in microseconds. Nil before its first sample.
  func lag(of queue: SampleQueue) -> Int64? {
    guard let head = leader.reached, let reach = queue.reach else { return nil }
    let time = MediaTime(ticks: head, timescale: queues[leaderIndex].track.timescale).rescaled(to: 1_000_000)
    return time &- MediaTime(ticks: reach, timescale: queue.track.timescale).rescaled(to: 1_000_000)
  }

  /// Measures the leading track by decode times: presentation times depend on the publisher alone.
  private func patienceIsOver(for fragment: ClosingFragment, knownTime: MediaTime?) -> Bool {
    if let knownTime, knownTime > fragment.boundary + CutPolicy.followerPatience { return true }
    let queue = queues[leaderIndex]
    let newest = max(queue.waiting?.decodeTime ?? queue.reach ?? .min, leader.reached ?? .min)
    return MediaTime(ticks: newest, timescale: queue.track.timescale) > fragment.decodeEnd + CutPolicy.followerPatience
  }

  /// Raises the lag of the other tracks, because they were later than expected. The next segments need not wait.
  mutating func learnLag(_ boundary: MediaTime) {
    guard let predicted, predicted.followersEnd < predicted.end else { return }
    let reached = queues.indices.filter(isAwaited).compactMap { index in
      queues[index].reach.map { MediaTime(ticks: $0, timescale: queues[index].track.timescale) }
    }
    guard let late = reached.map({ boundary.converted(to: 1_000_000) - $0 }).max() else { return }
    followerLag = min(
      CutPolicy.followerPatience, followerLag.converted(to: 1_000_000) + late + CutPolicy.followerLagMargin)
  }
}
