/// When fragments and segments end. Lengths are of media time, on the leading track.
package struct CutPolicy: Sendable, Hashable {
  /// A fragment ends with the first sample that makes it at least this long.
  package var partTarget: MediaTime
  /// No fragment is longer than this where the samples allow it. Nil until the
  /// leading track is known, and of a variable rate the usual distance of its pictures.
  package var partLimit: MediaTime?
  /// Every fragment, not only the last of a segment, waits for the other tracks to reach its end, so that the tracks'
  /// parts are equally long where they are delivered one by one.
  package var fragmentsWaitForFollowers: Bool
  /// The first fragment of all is short, so that whoever waits for the stream has a picture at once: it starts with a sync
  /// sample, and such a one may be shorter than the others.
  package var startsEarly: Bool
  /// A segment ends before the first sync sample at which it is at least this long.
  package var segmentTarget: MediaTime
  /// A segment never grows longer than this, rounded to whole seconds; where no sync sample comes in time it is cut
  /// without one. Nil: the first group of pictures decides, and lets itself through.
  package var wholeSecondLimit: Int?
  /// A segment that reaches this many bytes is cut whatever its length; at most `segmentByteLimit`.
  package var segmentBytes = Self.segmentByteLimit {
    didSet { segmentBytes = min(segmentBytes, Self.segmentByteLimit) }
  }

  /// Where the first fragment of all ends that is to be early.
  package static let firstFragmentTarget = MediaTime(milliseconds: 50)
  /// No segment is let grow beyond this many bytes.
  package static let segmentByteLimit = 64 << 20
  /// A fragment that reaches this many bytes is cut whatever its length.
  package static let fragmentByteLimit = 8 << 20
  /// A fragment that holds this many samples of one track is cut whatever its length, so that a publisher whose
  /// clock hardly moves cannot make it grow.
  package static let fragmentSampleLimit = 2048
  /// How far the leading track may run ahead while the end of a segment waits for the audio that belongs to it.
  package static let followerPatience = MediaTime(milliseconds: 300)
  /// How much later than the picture before it audio may come without delaying the end of a segment whose length is
  /// known beforehand; grown by what the audio of the stream needs.
  package static let usualFollowerLag = MediaTime(milliseconds: 60)
  /// What is added to it each time that the audio was later.
  package static let followerLagMargin = MediaTime(milliseconds: 20)
  /// How far the other tracks may run ahead of a silent leading track, beyond one segment, before fragments are
  /// cut without it.
  package static let leaderPatience = MediaTime(milliseconds: 1000)
  /// A sync sample this much early still ends a segment: a rounded clock makes a GOP of 2 s 1.9997 s long.
  package static let segmentTolerance = MediaTime(milliseconds: 5)
  /// A length up to this above whole seconds rounds down to them.
  package static let roundingMargin = MediaTime(milliseconds: 499)
  /// Tracks that join in mid-group wait for the next sync sample, and as many of their samples as this.
  package static let deferredSampleLimit = 4096
  /// Longest first GOP that is waited for while the true one is still unknown.
  package static let longestFirstSegment = MediaTime(milliseconds: 10_000)

  package init(
    partTarget: MediaTime = MediaTime(milliseconds: 200), segmentTarget: MediaTime = MediaTime(milliseconds: 2000),
    wholeSecondLimit: Int? = nil, fragmentsWaitForFollowers: Bool = false, startsEarly: Bool = false
  ) {
    self.partTarget = partTarget
    self.segmentTarget = segmentTarget
    self.wholeSecondLimit = wholeSecondLimit
    self.fragmentsWaitForFollowers = fragmentsWaitForFollowers
    self.startsEarly = startsEarly
  }

  /// What fragments are cut by: as long as no limit is known, one of which the target is 85 %.
  var fragmentLimit: MediaTime { partLimit ?? usualLimit }

  /// A fragment that reaches this many bytes is cut whatever its length.
  var fragmentBytes: Int { min(Self.fragmentByteLimit, segmentBytes) }

  private var usualLimit: MediaTime {
    MediaTime(ticks: partTarget.rescaled(to: 1_000_000) &* 100 / 85, timescale: 1_000_000)
  }

  /// The longest fragment of a leading track: the smallest whole number of its samples that reaches the target. Of audio whose
  /// samples differ, such that a fragment of the target's length is 85 % of it. Nil for pictures of
  /// a rate that is not known: they tell (`VariableRate`).
  func partLimit(for leader: TrackDescription, others: [TrackDescription]) -> MediaTime? {
    var limit = usualLimit
    if let sample = leader.sampleDuration.map(Int64.init), sample > 0 {
      let target = partTarget.rescaled(to: leader.timescale)
      limit = MediaTime(ticks: max(1, (target &+ sample &- 1) / sample) &* sample, timescale: leader.timescale)
    } else if leader.kind == .video {
      return nil
    }
    return allowing(for: others, limit)
  }

  /// At a variable rate: at the usual distance of pictures a fragment can always end between 85 and 100 % of the limit.
  /// `sofar` is the longest that there has been.
  mutating func setPartLimit(usual: MediaTime, sofar: MediaTime, others: [TrackDescription]) {
    let distance = usual.rescaled(to: 1_000_000)
    let longest = max(partTarget, MediaTime(ticks: segmentTarget.rescaled(to: 1_000_000) / 2, timescale: 1_000_000))
    let wanted = MediaTime(ticks: distance &* 100 / 15, timescale: 1_000_000)
    let reached = MediaTime(ticks: sofar.rescaled(to: 1_000_000) &+ 1, timescale: 1_000_000)
    let limit = max(partTarget, min(wanted, longest), min(reached, usualLimit)).converted(to: 1_000_000)
    partTarget = MediaTime(ticks: limit.ticks &* 85 / 100, timescale: 1_000_000)
    partLimit = allowing(for: others, limit)
  }

  /// A limit that was promised before; fragments fill it as they did.
  package mutating func keep(partLimit limit: MediaTime) {
    partLimit = limit
    partTarget = max(partTarget, MediaTime(ticks: limit.rescaled(to: 1_000_000) &* 85 / 100, timescale: 1_000_000))
  }

  private func allowing(for others: [TrackDescription], _ limit: MediaTime) -> MediaTime {
    guard fragmentsWaitForFollowers else { return limit }
    // The others are cut at the same times within one of their samples.
    let longest = others.compactMap { track in
      track.sampleDuration.map { MediaTime(ticks: Int64($0), timescale: track.timescale) }
    }.max()
    return longest.map { limit.converted(to: 1_000_000) + $0 } ?? limit
  }

  /// From here on a segment is cut without a sync sample, where the order of the pictures allows it.
  package var nominalLimit: MediaTime {
    wholeSecondLimit.map { MediaTime(milliseconds: Int64($0) * 1000) } ?? Self.longestFirstSegment
  }

  /// What no segment is longer than: a length that rounds to the whole-second limit.
  package var segmentLimit: MediaTime { nominalLimit + Self.roundingMargin }

  /// The whole-second limit that lets groups of this length through, and segments of the target.
  package func wholeSeconds(for group: MediaTime) -> Int {
    let milliseconds = max(group, segmentTarget).rescaled(to: 1000)
    let bounded = min(max(milliseconds, 500), Self.longestFirstSegment.rescaled(to: 1000))
    return Int((bounded + 500) / 1000)
  }
}
