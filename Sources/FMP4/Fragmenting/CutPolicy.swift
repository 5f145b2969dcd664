/// Rules for the end of fragments and segments. Durations are media time of the leading track.
public struct CutPolicy: Sendable, Hashable {
  /// A fragment ends with the first sample that makes it at least this long.
  public var partTarget: MediaTime
  /// Longest fragment, as far as the samples allow it. Nil until the leading track is known. At a variable frame rate
  /// it also stays nil until the usual frame duration is known.
  public package(set) var partLimit: MediaTime?
  /// Every fragment waits for the other tracks to reach its end, not only the last of a segment. Parts of all tracks
  /// are then equally long, as needed when tracks are delivered one by one.
  public var fragmentsWaitForFollowers: Bool
  /// Makes the first fragment of the stream short, so that a waiting viewer gets a frame at once. That fragment starts
  /// with a sync sample, so it may be shorter than the others.
  public var startsEarly: Bool
  /// A segment ends before the first sync sample that makes it at least this long.
  public var segmentTarget: MediaTime
  /// Longest segment in seconds, after rounding to whole seconds. Without a sync sample in time, the segment is cut at
  /// another sample. Nil: the first GOP sets the limit, which then admits that GOP.
  public var wholeSecondLimit: Int?
  /// Distance of sync samples, where it is certain in advance. Nil: only those that have come tell it.
  package var syncDistance: MediaTime?
  /// A segment of this many bytes is cut whatever its duration. At most `segmentByteLimit`.
  package var segmentBytes = Self.segmentByteLimit {
    didSet { segmentBytes = min(segmentBytes, Self.segmentByteLimit) }
  }

  /// Duration of the first fragment if `startsEarly` is set.
  package static let firstFragmentTarget = MediaTime(milliseconds: 50)
  /// Most bytes of a segment.
  package static let segmentByteLimit = 64 << 20
  /// A fragment of this many bytes is cut whatever its duration.
  package static let fragmentByteLimit = 8 << 20
  /// A fragment with this many samples of one track is cut whatever its duration. This bounds the fragment when a
  /// publisher's clock hardly advances.
  package static let fragmentSampleLimit = 2048
  /// Most bytes of closed fragments that wait for another track (`waitingBytes`).
  package static let waitingByteLimit = 32 << 20
  /// Samples of a track that have fewer bytes may always wait for the leading track.
  static let alwaysWaitingBytes = 1 << 20
  /// How far the leading track may run ahead while the end of a segment waits for its audio.
  package static let followerPatience = MediaTime(milliseconds: 300)
  /// The same for a track that usually lags far less: after this much silence fragments no longer wait for it.
  package static let leastFollowerPatience = MediaTime(milliseconds: 200)
  /// How far audio may lag behind the video without delaying the end of a segment of known duration. `Segmenter` raises
  /// it to what the stream's audio needs.
  package static let usualFollowerLag = MediaTime(milliseconds: 60)
  /// Added to the lag each time audio arrived later than expected.
  package static let followerLagMargin = MediaTime(milliseconds: 20)
  /// How far the other tracks may run ahead of a leading track without samples, beyond one segment. After that,
  /// fragments are cut without it.
  package static let leaderPatience = MediaTime(milliseconds: 1000)
  /// A sync sample this much too early still ends a segment. A rounded clock makes a GOP of 2 s last 1.9997 s.
  package static let segmentTolerance = MediaTime(milliseconds: 5)

  /// A sync sample this much before the target ends a segment: more than `segmentTolerance` where they come as they are
  /// asked for.
  package var syncTolerance = Self.segmentTolerance

  /// How early sync samples that are asked for may come: a quarter of a segment.
  package static func syncTolerance(ofTarget target: MediaTime) -> MediaTime {
    MediaTime(milliseconds: target.rescaled(to: 1000) / 4)
  }

  /// The longest distance of sync samples with which each segment begins with one.
  ///
  /// - Parameter targetDuration: in seconds; nil while it is undecided.
  package static func keyFrameDistance(_ segmentTarget: MediaTime, _ targetDuration: Int?) -> MediaTime {
    min(segmentTarget, targetDuration.map { MediaTime(milliseconds: Int64($0) * 1000) } ?? longestFirstSegment)
  }
  /// A duration up to this much above whole seconds rounds down to them.
  package static let roundingMargin = MediaTime(milliseconds: 499)
  /// What is left of a track behind the leading one is cut this much behind its beginning at least: one sample belongs to it.
  static let leastRest = MediaTime(milliseconds: 1)
  /// Most samples, and bytes of them, kept of tracks that joined in mid-GOP and wait for the next sync sample.
  package static let deferredSampleLimit = 4096
  package static let deferredByteLimit = 16 << 20
  /// Longest first GOP that is waited for while the real GOP duration is unknown.
  package static let longestFirstSegment = MediaTime(milliseconds: 10_000)

  /// Rules with these targets and limits. No limit of parts is known yet.
  public init(
    partTarget: MediaTime = MediaTime(milliseconds: 200), segmentTarget: MediaTime = MediaTime(milliseconds: 2000),
    wholeSecondLimit: Int? = nil, fragmentsWaitForFollowers: Bool = false, startsEarly: Bool = false
  ) {
    self.partTarget = partTarget
    self.segmentTarget = segmentTarget
    self.wholeSecondLimit = wholeSecondLimit
    self.fragmentsWaitForFollowers = fragmentsWaitForFollowers
    self.startsEarly = startsEarly
  }

  /// Limit at which fragments are cut. While no limit is set: the one of which the target is 85 %.
  var fragmentLimit: MediaTime { partLimit ?? usualLimit }

  /// A fragment of this many bytes is cut whatever its duration.
  var fragmentBytes: Int { min(Self.fragmentByteLimit, segmentBytes) }

  /// Closed fragments of this many bytes wait for no other track any longer, and samples that wait for the leading track may
  /// have no more than twice as many. Both bound what waits when the publisher's clock hardly advances.
  var waitingBytes: Int { min(Self.waitingByteLimit, segmentBytes) }

  private var usualLimit: MediaTime {
    MediaTime(ticks: partTarget.rescaled(to: 1_000_000) &* 100 / 85, timescale: 1_000_000)
  }

  /// The longest fragment of a leading track: the smallest whole number of its samples that reaches the target. If
  /// audio samples differ in duration, the limit is the one of which the target is 85 %. Nil for video of unknown frame
  /// rate; `VariableRate` finds the limit then.
  func partLimit(for leader: TrackDescription, others: [TrackDescription]) -> MediaTime? {
    var limit = usualLimit
    if let sample = leader.sampleDuration.map(Int64.init), sample > 0 {
      let target = partTarget.rescaled(to: leader.timescale)
      limit = MediaTime(ticks: max(1, (target &+ sample &- 1) / sample) &* sample, timescale: leader.timescale)
    } else if leader.kind == .video {
      return nil
    }
    return allowing(for: others, beside: leader, limit)
  }

  /// Sets the limit for a variable frame rate. At the usual frame duration a fragment can always end between 85 and 100
  /// % of the limit. `sofar` is the longest fragment so far.
  mutating func setPartLimit(usual: MediaTime, sofar: MediaTime, others: [TrackDescription]) {
    let distance = usual.rescaled(to: 1_000_000)
    let longest = max(partTarget, MediaTime(ticks: segmentTarget.rescaled(to: 1_000_000) / 2, timescale: 1_000_000))
    let wanted = MediaTime(ticks: distance &* 100 / 15, timescale: 1_000_000)
    let reached = MediaTime(ticks: sofar.rescaled(to: 1_000_000) &+ 1, timescale: 1_000_000)
    let limit = max(partTarget, min(wanted, longest), min(reached, usualLimit)).converted(to: 1_000_000)
    partTarget = MediaTime(ticks: limit.ticks &* 85 / 100, timescale: 1_000_000)
    partLimit = allowing(for: others, limit)
  }

  /// From now on every fragment waits for the other tracks. A limit that was decided before admits one more of their
  /// samples.
  package mutating func waitForFollowers(_ tracks: [TrackDescription]) {
    guard !fragmentsWaitForFollowers else { return }
    fragmentsWaitForFollowers = true
    let others = tracks.filter { $0.id != tracks.leader?.id }
    partLimit = partLimit.map { allowing(for: others, beside: tracks.leader, $0) }
  }

  /// Keeps a limit that was announced before. The target becomes 85 % of it if it was lower.
  package mutating func keep(partLimit limit: MediaTime) {
    partLimit = limit
    partTarget = max(partTarget, MediaTime(ticks: limit.rescaled(to: 1_000_000) &* 85 / 100, timescale: 1_000_000))
  }

  private func allowing(
    for others: [TrackDescription], beside leader: TrackDescription? = nil, _ limit: MediaTime
  ) -> MediaTime {
    guard fragmentsWaitForFollowers else { return limit }
    // The other tracks are cut at the same times, give or take one of their samples. A video of the same rate has as many.
    let own = leader.flatMap { Self.sample(of: $0) }
    let longest = others.compactMap { track in
      Self.sample(of: track).flatMap { track.kind == .video && $0 == own ? nil : $0 }
    }.max()
    return longest.map { limit.converted(to: 1_000_000) + $0 } ?? limit
  }

  private static func sample(of track: TrackDescription) -> MediaTime? {
    track.sampleDuration.map { MediaTime(ticks: Int64($0), timescale: track.timescale) }
  }

  /// From this duration on, a segment is cut without a sync sample if the frame order allows it.
  package var nominalLimit: MediaTime {
    wholeSecondLimit.map { MediaTime(milliseconds: Int64($0) * 1000) } ?? Self.longestFirstSegment
  }

  /// Longest segment: its duration rounds to the whole-second limit.
  package var segmentLimit: MediaTime { nominalLimit + Self.roundingMargin }

  /// The whole-second limit that admits GOPs of this duration and segments of the target.
  package func wholeSeconds(for group: MediaTime) -> Int {
    let milliseconds = max(group, segmentTarget).rescaled(to: 1000)
    let bounded = min(max(milliseconds, 500), Self.longestFirstSegment.rescaled(to: 1000))
    return Int((bounded + 500) / 1000)
  }
}
