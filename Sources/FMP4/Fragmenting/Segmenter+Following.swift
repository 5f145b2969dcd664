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
      let lag = lag(of: queue)
      let isSilent = lag.map { $0 > queue.presence.longestLag }
      if isOver {
        // A track that keeps up with decode times is there: only this fragment does not wait for it any longer.
        if isSilent ?? true { queues[index].presence.fellSilent() }
      } else if policy.fragmentsWaitForFollowers, isSilent ?? false {
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
    return index != leaderIndex && !isGone(queue) && !isLeaving(queue.track) && !awaitsSync.contains(queue.track.id)
  }

  /// Whether a track has been absent for too long to be awaited. Where only the ends of segments wait, longer lags are
  /// awaited, since they can be learned.
  private func isGone(_ queue: SampleQueue) -> Bool {
    guard queue.presence.isAbsent else { return false }
    return policy.fragmentsWaitForFollowers || (lag(of: queue) ?? .max) > FollowerPresence.learnableLag
  }

  /// How far the samples of a track end behind the leading track, in microseconds. Nil before its first sample.
  func lag(of queue: SampleQueue) -> Int64? {
    guard let head = leader.reached, let reach = queue.reach else { return nil }
    let time = MediaTime(ticks: head, timescale: queues[leaderIndex].timescale).rescaled(to: 1_000_000)
    return time &- MediaTime(ticks: reach, timescale: queue.timescale).rescaled(to: 1_000_000)
  }

  /// Measures the leading track by decode times: presentation times depend on the publisher alone.
  private func patienceIsOver(for fragment: ClosingFragment, knownTime: MediaTime?) -> Bool {
    if let knownTime, knownTime > fragment.boundary + CutPolicy.followerPatience { return true }
    if closing.reduce(0, { $0 + $1.byteCount }) >= policy.waitingBytes { return true }
    let queue = queues[leaderIndex]
    let newest = max(queue.waiting?.decodeTime ?? queue.reach ?? .min, leader.reached ?? .min)
    return MediaTime(ticks: newest, timescale: queue.timescale) > fragment.decodeEnd + CutPolicy.followerPatience
  }

  /// Raises the lag of the other tracks, because they were later than expected. The next segments need not wait.
  mutating func learnLag(_ boundary: MediaTime) {
    guard let predicted, predicted.followersEnd < predicted.end else { return }
    let reached = queues.indices.filter(isAwaited).compactMap { index in
      queues[index].reach.map { MediaTime(ticks: $0, timescale: queues[index].timescale) }
    }
    guard let late = reached.map({ boundary.converted(to: 1_000_000) - $0 }).max() else { return }
    followerLag = min(
      CutPolicy.followerPatience, followerLag.converted(to: 1_000_000) + late + CutPolicy.followerLagMargin)
  }
}
