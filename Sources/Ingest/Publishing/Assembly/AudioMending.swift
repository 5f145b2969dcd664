internal import Base
internal import FMP4

/// Counts how often audio is corrected (`AudioGrid`), and warns where listeners hear that: its clock and its samples do not keep
/// together. Gaps that missing frames leave say nothing of a clock.
struct AudioMending {
  /// So many corrections of a track are told if they make up more than that many milliseconds, one percent, of the last nanoseconds.
  static let (fewest, most, span): (Int, Int64, Int64) = (3, 600, 60_000_000_000)
  /// No more are kept of a track. Each takes a second, so hardly more come within the span.
  private static let kept = 64

  /// The newest corrections of each track, oldest first, by their times in nanoseconds on the timeline.
  private var corrections: [TrackID: [(time: Int64, milliseconds: Int64)]] = [:]
  private var told: Set<TrackID> = []

  /// Takes what was done with a frame of audio.
  mutating func saw(
    _ correction: AudioGrid.Correction?, _ track: TrackID, at time: Int64, to out: inout [PublicationAction]
  ) {
    if correction != nil { out.append(.inBand(.correctedAudio)) }
    guard let correction, !correction.fillsHole else {
      guard !told.isEmpty, told.contains(track) else { return }
      if recent(of: track, at: time).milliseconds <= Self.most / 2 { withdraw(track, to: &out) }
      return
    }
    corrections[track, default: []].append((time, Int64(clamping: correction.milliseconds.magnitude)))
    if corrections[track]?.count ?? 0 > Self.kept { corrections[track]?.removeFirst() }
    let recent = recent(of: track, at: time)
    guard recent.count >= Self.fewest, recent.milliseconds > Self.most else { return }
    if told.isEmpty { out.tell(.mendsAudio) }
    told.insert(track)
  }

  /// A track has ended.
  mutating func end(_ track: TrackID, to out: inout [PublicationAction]) {
    corrections[track] = nil
    withdraw(track, to: &out)
  }

  private mutating func withdraw(_ track: TrackID, to out: inout [PublicationAction]) {
    if told.remove(track) != nil, told.isEmpty { out.append(.withdraw(.mendsAudio)) }
  }

  private func recent(of track: TrackID, at time: Int64) -> (count: Int, milliseconds: Int64) {
    (corrections[track] ?? []).reduce(into: (0, 0)) { sum, one in
      if time &- one.time <= Self.span { sum = (sum.0 + 1, sum.1 &+ one.milliseconds) }
    }
  }
}
