internal import NIOCore

/// Where the leading track stands, and where by the policy its fragments and segments end. Times are decode times in
/// the track's ticks.
struct LeadingTrack: Sendable {
  /// Of the first sample of the open fragment and of the open segment; nil before the first sync sample.
  var fragmentStart: Int64?
  var segmentStart: Int64 = 0
  var segmentBytes = 0
  /// The segment's earliest presentation time minus its first decode time: the reorder delay, by which the other tracks'
  /// boundaries lie later than the leading decode times.
  private(set) var reorderDelay: Int64 = 0
  /// The least reorder delay of a segment that began with a key frame.
  private var leastDelay = Int64.max
  /// From one decode time to the next: the longest of the open segment, and how many there are of it.
  private var steps: (longest: Int64, count: Int64) = (0, 0)
  /// The mean one of the segment before.
  private var usualStep = Int64.max
  /// Decode time of its newest sample.
  private var newest: Int64 = 0
  /// While pictures may still come that are shown before the key frame with which the segment begins.
  private(set) var openGroup: OpenGroup?
  var rhythm = GOPCadence()
  /// Where the latest picture so far ends in presentation time.
  var presentationEnd = Int64.min
  /// The least presentation minus decode time so far.
  private var leastOffset = Int64.max
  /// What is shown before the first key frame is left out, as long as this is set.
  private var beginning: (shown: Int64, leftOut: Int)?
  var fragmentIsIndependent = false
  /// The open fragment has no sample of this track: the one before was closed before its successor was there.
  var fragmentIsEmpty = true
  /// The open fragment is the first of all, and a short one.
  var isBeginning = false
  /// Nothing can be decoded before the first sync sample, so nothing is taken.
  var awaitsSync = true
  /// What the other tracks have from before the first picture belongs to the stream: they joined it in its midst.
  var keepsEarlyFollowers = false

  /// `presentationStart` is the segment's earliest presentation time, as far as it is known.
  mutating func openSegment(at decodeTime: Int64, presentationStart: Int64, isSync: Bool) {
    openFragment(at: decodeTime, isIndependent: isSync)
    if steps.count > 0 { usualStep = max(0, newest &- segmentStart) / steps.count }
    segmentStart = decodeTime
    segmentBytes = 0
    reorderDelay = presentationStart &- decodeTime
    if isSync { leastDelay = min(leastDelay, reorderDelay) }
    (steps, newest) = ((0, 0), decodeTime)
    openGroup = nil
  }

  /// Presentation time, in ticks, at which the samples end that are decoded before a time of the open segment. An encoder that
  /// reorders lays a pause before the key frame behind it in decode times. Such a segment begins with a longer reorder
  /// delay, and has the usual one again when the pause is over.
  func presentationTime(at decodeTime: Int64) -> Int64 {
    let time = decodeTime &+ reorderDelay
    guard steps.longest / 3 * 2 > usualStep else { return time }
    return time &- min(max(0, reorderDelay &- leastDelay), steps.longest &- usualStep)
  }

  /// Takes note of when the next sample is decoded.
  mutating func note(_ decodeTime: Int64) {
    steps = (max(steps.longest, decodeTime &- newest), steps.count + 1)
    newest = decodeTime
  }

  mutating func openFragment(at decodeTime: Int64, isIndependent: Bool) {
    fragmentStart = decodeTime
    fragmentIsIndependent = isIndependent
    fragmentIsEmpty = true
  }

  /// Counts a sample that became part of the open fragment. `duration` is its length, or the likeliest one.
  mutating func add(_ sample: Sample, duration: Int64) {
    fragmentIsEmpty = false
    segmentBytes += sample.payload.readableBytes
    leastOffset = min(leastOffset, Int64(sample.compositionOffset))
    presentationEnd = max(presentationEnd, sample.presentationTime &+ duration)
  }

  // MARK: Open groups of pictures

  /// A segment whose key frame other pictures may precede in presentation though they follow it in decoding order.
  struct OpenGroup: Sendable {
    /// Presentation time of the key frame.
    let keyFrame: Int64
    /// Earliest presentation time so far.
    var earliest: Int64
  }

  /// Whether pictures that follow this sync sample may be shown before it: there is room for them before it in
  /// presentation, and between the times at which it is decoded and shown. `duration` is its length, or the likeliest one.
  func mayOpenGroup(_ sample: Sample, duration: Int64) -> Bool {
    sample.presentationTime &- presentationEnd >= max(1, duration / 2) && Int64(sample.compositionOffset) > leastOffset
  }

  /// The segment that has just been opened with this sample may be such a one.
  mutating func openGroup(_ sample: Sample) {
    openGroup = OpenGroup(keyFrame: sample.presentationTime, earliest: sample.presentationTime)
  }

  /// Takes the next sample of the segment; false once all that is shown before the key frame has come. It comes before all that
  /// is shown later (ITU-T H.265 §7.4.2.2: leading pictures precede trailing pictures).
  mutating func staysOpen(with sample: Sample) -> Bool {
    guard let group = openGroup, !sample.isSync, sample.presentationTime < group.keyFrame else { return false }
    openGroup?.earliest = min(group.earliest, sample.presentationTime)
    return true
  }

  /// Settles where the segment's presentation begins, and returns it; nil where that was settled.
  mutating func closeGroup() -> Int64? {
    guard let group = openGroup else { return nil }
    openGroup = nil
    reorderDelay = group.earliest &- segmentStart
    leastDelay = min(leastDelay, reorderDelay)
    return group.earliest
  }

  /// More pictures than this are shown before no key frame.
  private static let leadingLimit = 64

  /// Whether a sample of a timeline's beginning is shown before its first key frame: it refers to pictures that were never
  /// here (RASL pictures of H.265 §8.1.3, the same in H.264), so nobody can show it.
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
    let limit = policy.segmentLimit.rescaled(to: queue.track.timescale)
    let reach = elapsed &+ Int64(queue.lastDuration ?? 0)
    if reach > limit { return true }
    // Without a sync sample the cut is made where no picture of the next segment is shown before one of this.
    guard !sample.isSync, reach > policy.nominalLimit.rescaled(to: queue.track.timescale) else { return false }
    let nextSync = rhythm.lastSync.map { $0 &+ rhythm.longest &- segmentStart }
    if let nextSync, rhythm.longest > 0, nextSync > elapsed, nextSync <= limit { return false }
    return sample.presentationTime >= presentationEnd
  }

  /// Whether a sync sample at `decodeTime` would begin the next segment.
  private func segmentEnds(atSync decodeTime: Int64, in queue: SampleQueue, _ policy: CutPolicy) -> Bool {
    let timescale = queue.track.timescale
    let elapsed = decodeTime &- segmentStart
    let target = policy.segmentTarget.rescaled(to: timescale)
    let tolerance = CutPolicy.segmentTolerance.rescaled(to: timescale)
    if elapsed &+ tolerance >= target { return true }
    // One more group of pictures would not fit.
    return elapsed &+ rhythm.longest > policy.segmentLimit.rescaled(to: timescale) &+ tolerance
  }

  /// How long the segment that begins now will be, where the distance of sync samples is steady.
  func expectedSegmentLength(timescale: UInt32, _ policy: CutPolicy) -> Int64? {
    guard let group = rhythm.steadyGroup else { return nil }
    let tolerance = CutPolicy.segmentTolerance.rescaled(to: timescale)
    let target = policy.segmentTarget.rescaled(to: timescale) &- tolerance
    let limit = policy.segmentLimit.rescaled(to: timescale) &+ tolerance
    let groups = max(1, (target &+ group &- 1) / group)
    let length = group &* groups
    return length <= limit ? length : group &* max(1, limit / group)
  }

  // MARK: Fragments

  /// Whether the open fragment ends at `decodeTime`; `next` is how long the sample there is likely to last.
  func fragmentEnds(at decodeTime: Int64, next: Int64, in queue: SampleQueue, _ policy: CutPolicy) -> Bool {
    guard let fragmentStart, !fragmentIsEmpty else { return false }
    let timescale = queue.track.timescale
    let elapsed = decodeTime &- fragmentStart
    let target = isBeginning ? min(policy.partTarget, CutPolicy.firstFragmentTarget) : policy.partTarget
    if elapsed >= target.rescaled(to: timescale) { return true }
    if elapsed > 0, elapsed &+ next > policy.fragmentLimit.rescaled(to: timescale) { return true }
    return queue.readyBytes >= policy.fragmentBytes || queue.ready.count >= CutPolicy.fragmentSampleLimit
  }

  /// What is known of the end of the open fragment before its successor has come.
  enum Foresight {
    /// The fragment goes on, or only the next sample tells whether it is the segment's last.
    case unknown
    case fragmentEnds
    /// Nothing more is expected in the segment.
    case segmentEnds
  }

  /// Whether the open fragment is complete with what the queue holds, whose samples' durations are known.
  func foresee(in queue: SampleQueue, _ policy: CutPolicy) -> Foresight {
    guard queue.waiting == nil, let end = queue.reach, let last = queue.lastDuration.map(Int64.init),
      fragmentEnds(at: end, next: last, in: queue, policy)
    else { return .unknown }
    // Where a segment may have to be cut without a sync sample, the order of the pictures decides.
    let nominal = policy.nominalLimit.rescaled(to: queue.track.timescale)
    guard end &- segmentStart &+ last <= nominal, segmentBytes < policy.segmentBytes else {
      return foreseenSync(at: end, queue) ? .segmentEnds : .unknown
    }
    guard segmentEnds(atSync: end, in: queue, policy) else { return .fragmentEnds }
    guard rhythm.nextSync != nil else { return .unknown }
    return foreseenSync(at: end, queue) ? .segmentEnds : .fragmentEnds
  }

  private func foreseenSync(at time: Int64, _ queue: SampleQueue) -> Bool {
    guard let next = rhythm.nextSync else { return false }
    return (next &- time).magnitude <= UInt64(queue.track.timescale / 1000)
  }
}
