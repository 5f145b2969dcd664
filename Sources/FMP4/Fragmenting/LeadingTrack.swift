internal import NIOCore

/// State of the leading track, and the rules for the end of its fragments and segments. Times are decode times in the
/// track's ticks.
struct LeadingTrack: Sendable {
  /// Decode times of the first sample of the open fragment and of the open segment. `fragmentStart` is nil before the
  /// first sync sample.
  var fragmentStart: Int64?
  var segmentStart: Int64 = 0
  var segmentBytes = 0
  /// Reorder delay: earliest presentation time of the segment minus its first decode time. Boundaries of the other
  /// tracks lie later than the leading decode times by this much.
  private(set) var reorderDelay: Int64 = 0
  /// The smallest reorder delay of a segment that began with a key frame.
  private var leastDelay = Int64.max
  /// Steps from one decode time to the next in the open segment: the longest, and their number.
  private var steps: (longest: Int64, count: Int64) = (0, 0)
  /// Mean step of the segment before.
  private var usualStep = Int64.max
  /// Decode time of the newest sample.
  private var newest: Int64 = 0
  /// Decode time that the media has reached: of the newest sample, or where a fragment was cut without one.
  var reached: Int64?
  /// Set while frames may still arrive that are shown before the segment's key frame.
  private(set) var openGroup: OpenGroup?
  var cadence = GOPCadence()
  /// Presentation time at which the latest frame so far ends.
  var presentationEnd = Int64.min
  /// The smallest composition offset so far.
  private var leastOffset = Int64.max
  /// A composition offset was not 0.
  private var hasOffsets = false
  /// Set while frames shown before the first key frame are dropped: the key frame's presentation time and the number of
  /// dropped frames.
  private var beginning: (shown: Int64, leftOut: Int)?
  var fragmentIsIndependent = false
  /// The open fragment has no sample of this track, because the last fragment was closed before its successor came.
  var fragmentIsEmpty = true
  /// The open fragment is the first of the stream, and is to be short.
  var isBeginning = false
  /// No sync sample has come yet. Samples are dropped until then, because they cannot be decoded.
  var awaitsSync = true
  /// The tracks that go on while this one joins a running stream: their samples from before its first frame are kept. Nil at
  /// the beginning of a timeline.
  var goingOn: Set<TrackID>?
  /// Presentation time at which the newest tracks that do not go on may begin; nil before the first segment.
  var joinStart: Int64?

  /// Opens a segment. `presentationStart` is its earliest presentation time, as far as it is known.
  mutating func openSegment(at decodeTime: Int64, presentationStart: Int64, isSync: Bool) {
    openFragment(at: decodeTime, isIndependent: isSync)
    if steps.count > 0 { usualStep = max(0, newest &- segmentStart) / steps.count }
    segmentStart = decodeTime
    segmentBytes = 0
    reorderDelay = presentationStart &- decodeTime
    joinStart = joinStart ?? presentationStart
    if isSync { leastDelay = min(leastDelay, reorderDelay) }
    (steps, newest) = ((0, 0), decodeTime)
    openGroup = nil
  }

  /// Presentation time, in ticks, at which the samples decoded before `decodeTime` end. `decodeTime` lies in the open
  /// segment. If a pause precedes a key frame, an encoder with B-frames puts it after the key frame in decode order.
  /// Such a segment begins with a longer reorder delay. The usual delay returns when the pause is over.
  func presentationTime(at decodeTime: Int64) -> Int64 {
    let time = decodeTime &+ reorderDelay
    guard steps.longest / 3 * 2 > usualStep else { return time }
    return time &- min(max(0, reorderDelay &- leastDelay), steps.longest &- usualStep)
  }

  /// Records the decode time of the next sample.
  mutating func note(_ decodeTime: Int64) {
    steps = (max(steps.longest, decodeTime &- newest), steps.count + 1)
    newest = decodeTime
    reached = max(reached ?? decodeTime, decodeTime)
  }

  mutating func openFragment(at decodeTime: Int64, isIndependent: Bool) {
    fragmentStart = decodeTime
    fragmentIsIndependent = isIndependent
    fragmentIsEmpty = true
  }

  /// Adds a sample to the open fragment. `duration` is its duration, or the most likely one.
  mutating func add(_ sample: Sample, duration: Int64) {
    fragmentIsEmpty = false
    segmentBytes += sample.payload.readableBytes
    leastOffset = min(leastOffset, Int64(sample.compositionOffset))
    if sample.compositionOffset != 0 { hasOffsets = true }
    presentationEnd = max(presentationEnd, sample.presentationTime &+ duration)
  }

  // MARK: Open groups of pictures

  /// A segment whose key frame may be followed in decode order by frames that are shown before it.
  struct OpenGroup: Sendable {
    /// Presentation time of the key frame.
    let keyFrame: Int64
    /// Earliest presentation time so far.
    var earliest: Int64
  }

  /// Whether frames after this sync sample may be shown before it. That needs room before it in presentation time, and
  /// room between its decode and presentation times. `duration` is the sample's duration, or the most likely one.
  func mayOpenGroup(_ sample: Sample, duration: Int64) -> Bool {
    sample.presentationTime &- presentationEnd >= max(1, duration / 2) && Int64(sample.compositionOffset) > leastOffset
  }

  /// Marks the segment that this sample opened as one with a possible open GOP.
  mutating func openGroup(_ sample: Sample) {
    openGroup = OpenGroup(keyFrame: sample.presentationTime, earliest: sample.presentationTime)
  }

  /// Takes the next sample of the segment. False once all frames shown before the key frame have come. They precede all
  /// frames that are shown after it (ITU-T H.265 §7.4.2.2: leading pictures precede trailing pictures).
  mutating func staysOpen(with sample: Sample) -> Bool {
    guard let group = openGroup, !sample.isSync, sample.presentationTime < group.keyFrame else { return false }
    openGroup?.earliest = min(group.earliest, sample.presentationTime)
    return true
  }

  /// Fixes where the segment's presentation begins, and returns that time. Nil if it was already fixed.
  mutating func closeGroup() -> Int64? {
    guard let group = openGroup else { return nil }
    openGroup = nil
    reorderDelay = group.earliest &- segmentStart
    leastDelay = min(leastDelay, reorderDelay)
    return group.earliest
  }

  /// Most frames that are shown before a key frame.
  private static let leadingLimit = 64

  /// Whether a sample at the beginning of a timeline is shown before the first key frame. It refers to frames that were
  /// never received (RASL pictures of H.265 §8.1.3, the same in H.264), so it cannot be decoded.
  mutating func precedesBeginning(_ sample: Sample) -> Bool {
    if awaitsSync {
      beginning = (sample.presentationTime, 0)
      return false
    }
    guard let first = beginning else { return false }
    guard !sample.isSync, sample.presentationTime < first.shown, first.leftOut < Self.leadingLimit else {
      beginning = nil
      return false
    }
    beginning?.leftOut += 1
    return true
  }

  // MARK: Segments

  /// Whether the open segment ends before a sample at `decodeTime`.
  func segmentEnds(before sample: Sample, at decodeTime: Int64, in queue: SampleQueue, _ policy: CutPolicy) -> Bool {
    if segmentBytes >= policy.segmentBytes { return true }
    if sample.isSync, segmentEnds(atSync: decodeTime, in: queue, policy) { return true }
    let elapsed = decodeTime &- segmentStart
    let limit = policy.segmentLimit.rescaled(to: queue.timescale)
    let reach = elapsed &+ Int64(queue.lastDuration ?? 0)
    if reach > limit { return true }
    // Without a sync sample the cut is made where no frame of the next segment is shown before one of this segment.
    guard !sample.isSync, reach > policy.nominalLimit.rescaled(to: queue.timescale) else { return false }
    let longest = longestGroup(queue.timescale, policy)
    let nextSync = cadence.lastSync.map { $0 &+ longest &- segmentStart }
    if let nextSync, longest > 0, nextSync > elapsed, nextSync <= limit { return false }
    return isInOrder(sample) || sample.presentationTime >= presentationEnd
  }

  /// Whether frames are shown in decoding order, up to this one. The presentation of the frame before it then ends where this one
  /// begins; until it came that end was a guess.
  func isInOrder(_ sample: Sample) -> Bool { !hasOffsets && sample.compositionOffset == 0 && reorderDelay == 0 }

  /// Whether a sync sample at `decodeTime` would begin the next segment.
  private func segmentEnds(atSync decodeTime: Int64, in queue: SampleQueue, _ policy: CutPolicy) -> Bool {
    let timescale = queue.timescale
    let elapsed = decodeTime &- segmentStart
    let target = policy.segmentTarget.rescaled(to: timescale)
    if elapsed &+ policy.syncTolerance.rescaled(to: timescale) >= target { return true }
    // Another GOP would not fit: the segment would be cut within it.
    return elapsed &+ longestGroup(timescale, policy) > policy.segmentLimit.rescaled(to: timescale)
  }

  /// The longest distance of sync samples, in ticks: of those that have come, or as it is certain in advance. 0 while it is
  /// unknown.
  private func longestGroup(_ timescale: UInt32, _ policy: CutPolicy) -> Int64 {
    max(cadence.longest, policy.syncDistance?.rescaled(to: timescale) ?? 0)
  }

  /// Expected duration of the segment that begins now, in ticks. Nil if the distance of sync samples is not steady.
  func expectedSegmentLength(timescale: UInt32, _ policy: CutPolicy) -> Int64? {
    guard let group = cadence.steadyGroup else { return nil }
    let target = policy.segmentTarget.rescaled(to: timescale) &- policy.syncTolerance.rescaled(to: timescale)
    let limit = policy.segmentLimit.rescaled(to: timescale)
    let groups = max(1, (target &+ group &- 1) / group)
    let length = group &* groups
    return length <= limit ? length : group &* max(1, limit / group)
  }

  // MARK: Fragments

  /// Whether the open fragment ends at `decodeTime`. `next` is the likely duration of the sample there.
  func fragmentEnds(at decodeTime: Int64, next: Int64, in queue: SampleQueue, _ policy: CutPolicy) -> Bool {
    guard let fragmentStart, !fragmentIsEmpty else { return false }
    let timescale = queue.timescale
    let elapsed = decodeTime &- fragmentStart
    let target = isBeginning ? min(policy.partTarget, CutPolicy.firstFragmentTarget) : policy.partTarget
    if elapsed >= target.rescaled(to: timescale) { return true }
    if elapsed > 0, elapsed &+ next > policy.fragmentLimit.rescaled(to: timescale) { return true }
    return queue.readyBytes >= policy.fragmentBytes || queue.ready.count >= CutPolicy.fragmentSampleLimit
  }

  /// What is known about the end of the open fragment before the next sample has come.
  enum PredictedEnd {
    /// The fragment continues, or only the next sample shows whether it is the segment's last.
    case unknown
    case fragmentEnds
    /// No more samples are expected in the segment.
    case segmentEnds
  }

  /// Whether the open fragment is complete with the queue's samples, all of known duration.
  func predictedEnd(in queue: SampleQueue, _ policy: CutPolicy) -> PredictedEnd {
    guard queue.waiting == nil, let end = queue.reach, let last = queue.lastDuration.map(Int64.init),
      fragmentEnds(at: end, next: last, in: queue, policy)
    else { return .unknown }
    // If a segment may have to be cut without a sync sample, the frame order decides.
    let nominal = policy.nominalLimit.rescaled(to: queue.timescale)
    guard end &- segmentStart &+ last <= nominal, segmentBytes < policy.segmentBytes else {
      return predictsSync(at: end, queue) ? .segmentEnds : .unknown
    }
    guard segmentEnds(atSync: end, in: queue, policy) else { return .fragmentEnds }
    guard cadence.nextSync != nil else { return .unknown }
    return predictsSync(at: end, queue) ? .segmentEnds : .fragmentEnds
  }

  private func predictsSync(at time: Int64, _ queue: SampleQueue) -> Bool {
    guard let next = cadence.nextSync else { return false }
    return (next &- time).magnitude <= UInt64(queue.timescale / 1000)
  }
}
