internal import NIOCore

/// Decides where fragments and segments end; `FragmentBoxes` writes them. The policy cuts the leading track (the video,
/// else the first audio), and the other tracks follow its boundaries. In a fragment, the default tracks come first,
/// then the additional tracks of a kind. A value type: media events go in, fragment events come out. It knows no clock,
/// file or playlist.
public struct Segmenter: Sendable {
  /// The rules by which it cuts, with the limit of fragments once it is known.
  public package(set) var policy: CutPolicy
  /// Segments that end shortly before this time or later wait for all their samples, so that all tracks are cut
  /// together.
  package var alignsFrom: MediaTime?
  /// The open segment ends before the next sample of the leading track, whatever its length. False again when it has ended.
  package private(set) var endsSegmentNext = false
  /// A segment of video was cut before a sample that is no sync sample: a group of pictures is longer than segments may be.
  package private(set) var cutsWithoutSync = false

  var tracks: [TrackDescription] = []
  var initVersion: Int
  var leader = LeadingTrack()
  var queues: [SampleQueue] = []
  var leaderIndex = 0
  /// How far the other tracks' samples may lag behind the leading track.
  var followerLag = CutPolicy.usualFollowerLag
  /// Set while the usual frame duration of a variable rate is measured.
  private var partRule: VariableRate?
  /// Predicted end of the segment whose fragments are being emitted.
  private(set) var predicted: PredictedSegment?
  /// Fragments with complete leading samples that wait for their audio.
  var closing: [ClosingFragment] = []
  var nextSequenceNumber: UInt32 = 1
  private var emittedInSegment = false
  /// No more samples of the publication come.
  var endsPublication = false
  /// The newest fragment of the open segment, without its samples.
  private(set) var newest: Fragment?
  /// Where that segment starts.
  private(set) var newestStart: MediaTime?
  private var longestGroup: MediaTime?
  /// Tracks that wait for the place at which players can take them.
  var deferred: DeferredTracks?
  /// Further videos that have joined and wait for a sync sample.
  var awaitsSync: Set<TrackID> = []
  /// Tracks with samples from before their first segment. Those follow its first fragment.
  var early: Set<TrackID> = []

  /// Presentation end of each track when the timeline last broke or the tracks changed.
  private var reached: [TrackID: MediaTime] = [:]

  /// A segmenter that has seen nothing. `lastInitVersion` is the version of the last init segment before its first one;
  /// 0 if there is none.
  public init(policy: CutPolicy = CutPolicy(), lastInitVersion: Int = 0) {
    self.policy = policy
    initVersion = lastInitVersion
  }

  /// Takes one event and returns what it completes. Samples of unknown tracks are ignored.
  public mutating func receive(_ event: MediaEvent) -> [FragmentEvent] {
    var output: [FragmentEvent] = []
    switch event {
    case .tracks(let newTracks):
      changeTracks(to: newTracks, &output)
    case .sample(let sample):
      take(sample, &output)
    case .clock(let anchor):
      output.append(.clock(anchor))
    case .progress(let time):
      release(knownTime: time, &output)
    case .discontinuity:
      breakTimeline(&output)
    case .end(let reason):
      finish(&output)
      if let waiting = deferred, !waiting.samples.isEmpty {
        apply(waiting.tracks, &output)
        finish(&output)
      }
      output.append(.end(reason))
    }
    return output
  }

  /// The latest known decode end of any track.
  package var mediaEnd: MediaTime? {
    queues.compactMap { queue in queue.reach.map { MediaTime(ticks: $0, timescale: queue.timescale) } }.max()
  }

  /// Bytes of samples that are in no fragment yet.
  public var pendingBytes: Int {
    var bytes = closing.reduce(deferred?.byteCount ?? 0) { $0 + $1.byteCount }
    for index in queues.indices { bytes += queues[index].byteCount }
    return bytes
  }

  /// Ends the open segment as soon as possible. Does nothing when its end is decided and only waits for other tracks.
  public mutating func endSegmentSoon() {
    if !closing.contains(where: \.endsSegment) { endsSegmentNext = true }
  }

  // MARK: Changes

  private mutating func changeTracks(to newTracks: [TrackDescription], _ output: inout [FragmentEvent]) {
    guard !newTracks.isEmpty else { return }
    let newTracks = newTracks.defaultsFirst
    guard newTracks != tracks else {
      noteReturn()
      deferred = nil
      return
    }
    if !tracks.isEmpty, leader.fragmentStart != nil, newTracks.contains(tracks[leaderIndex]),
      let place = place(of: newTracks)
    {
      deferred = DeferredTracks(newTracks, at: place, after: deferred)
      return
    }
    // With the silence of what changes with the leading track.
    if deferred?.place == .syncSample { finish(&output) }
    apply(newTracks, beforeSync: newTracks.leader?.kind == .video, &output)
  }

  /// `beforeSync`: the sync sample of the leading track that the other tracks begin with comes next.
  mutating func apply(
    _ newTracks: [TrackDescription], beforeSync: Bool = false, _ output: inout [FragmentEvent]
  ) {
    // What they have of tracks that are other ones now is dropped.
    let waiting = deferred.map { DeferredTracks(newTracks, at: $0.place, after: $0).samples } ?? []
    deferred = nil
    let goingOn = newTracks.filter { new in tracks.contains { new.isDecoded(like: $0) } }.map(\.id)
    let isFirst = tracks.isEmpty
    if !isFirst { breakTimeline(&output) }
    tracks = newTracks
    queues = newTracks.map { SampleQueue(track: $0) }
    leaderIndex = newTracks.firstIndex { $0.id == newTracks.leader?.id } ?? 0
    if policy.partLimit == nil {
      let others = newTracks.filter { $0.id != newTracks[leaderIndex].id }
      policy.partLimit = policy.partLimit(for: newTracks[leaderIndex], others: others)
      partRule = policy.partLimit == nil ? VariableRate() : nil
    }
    leader = LeadingTrack()
    leader.goingOn = isFirst ? nil : Set(goingOn)
    initVersion += 1
    output.append(.initialization(InitSegment(version: initVersion, tracks: newTracks)))
    for sample in waiting {
      // Nothing is cut without the leading track, however much has waited.
      if beforeSync, let index = queues.firstIndex(where: { $0.track.id == sample.track }), index != leaderIndex {
        follow(sample, at: index)
      } else {
        take(sample, &output)
      }
    }
  }

  /// Ends the open segment. The media after it starts with a sync sample.
  private mutating func breakTimeline(_ output: inout [FragmentEvent]) {
    finish(&output)
    if let waiting = deferred {
      // The awaited sync sample does not come. The deferred tracks join here, and their samples form a segment.
      apply(waiting.tracks, &output)
      finish(&output)
    }
    for queue in queues { noteReach(of: queue) }
    queues = tracks.map { SampleQueue(track: $0) }
    (awaitsSync, early) = ([], [])
    leader = LeadingTrack()
    endsSegmentNext = false
    if case .discontinuity = output.last { return }
    if nextSequenceNumber > 1 { output.append(.discontinuity) }
  }

  mutating func noteReach(of queue: SampleQueue) {
    guard let reach = queue.reach else { return }
    reached[queue.track.id] = MediaTime(ticks: reach, timescale: queue.timescale)
  }

  /// Emits all samples that are left.
  private mutating func finish(_ output: inout [FragmentEvent]) {
    guard !queues.isEmpty else { return }
    for index in queues.indices { queues[index].resolveWaitingWithoutSuccessor() }
    if leader.fragmentStart != nil, let end = queues[leaderIndex].reach {
      closeFragment(
        at: end, endsSegment: true, presentationEnd: max(leader.presentationEnd, end &+ leader.reorderDelay))
    } else if leader.goingOn != nil, let start = followersStart(), let end = followersReach() {
      let timescale = queues[leaderIndex].timescale
      let time = start.rescaled(to: timescale)
      leader.openSegment(at: time, presentationStart: time, isSync: true)
      closeFragment(at: end.rescaled(to: timescale), endsSegment: true)
    }
    release(everything: true, &output)
    endSegment(&output)
  }

  // MARK: Samples

  private mutating func take(_ sample: Sample, _ output: inout [FragmentEvent]) {
    if deferred != nil, takeDeferred(sample, &output) { return }
    guard let index = queues.firstIndex(where: { $0.track.id == sample.track }) else { return }
    if index == leaderIndex {
      lead(sample, &output)
    } else {
      // Nothing can be cut before the leading track starts. Earlier samples wait in their queue.
      guard follow(sample, at: index) else { return }
      cutWithoutLeader(&output)
    }
    release(knownTime: nil, &output)
  }

  /// Takes a sample of another track than the leading one. False if it is dropped.
  @discardableResult
  mutating func follow(_ sample: Sample, at index: Int) -> Bool {
    if awaitsSync.contains(sample.track), !sample.isSync { return false }
    // They wait for the leading track.
    guard queues[index].readyBytes < CutPolicy.alwaysWaitingBytes || pendingBytes < 2 * policy.waitingBytes else {
      if queues[index].track.kind == .video { awaitsSync.insert(sample.track) }
      return false
    }
    guard !overlaps(sample, in: queues[index]), !precedesJoin(sample, in: queues[index]) else { return false }
    // What was dropped before it is a pause.
    let pause = awaitsSync.remove(sample.track) == nil ? policy.segmentTarget : .zero
    queues[index].fillReturn(until: sample.decodeTime, pause: pause)
    if let lag = lag(of: queues[index]) { queues[index].presence.came(after: lag) }
    queues[index].endBeforePause(until: sample.decodeTime, longerThan: pause)
    _ = queues[index].append(sample)
    return true
  }

  /// Whether audio of a new encoder begins before the old encoder's audio ended, or audio that is back before the silence in its
  /// place did. It cannot be played beside it.
  private func overlaps(_ sample: Sample, in queue: SampleQueue) -> Bool {
    let middle = sample.decodeTime &+ Int64((sample.duration ?? 0) / 2)
    if let end = queue.silentUntil, middle < end { return true }
    guard queue.isEmpty, queue.reach == nil, let end = reached[sample.track] else { return false }
    return MediaTime(ticks: middle, timescale: queue.timescale) < end
  }

  private mutating func lead(_ sample: Sample, _ output: inout [FragmentEvent]) {
    guard sample.isSync || !leader.awaitsSync, !leader.precedesBeginning(sample) else { return }
    if !leader.staysOpen(with: sample) { closeGroup() }
    closeBeforePause(until: sample.decodeTime)
    // The queue may move the sample; the boundary is its final decode time.
    let decodeTime = queues[leaderIndex].append(sample)
    leader.note(decodeTime)
    let expected = Int64(sample.duration ?? queues[leaderIndex].lastDuration ?? 0)
    if leader.fragmentStart == nil {
      noteSync(sample, at: decodeTime, &output)
      leader.isBeginning = policy.startsEarly && nextSequenceNumber == 1 && sample.isSync
      leader.openSegment(at: decodeTime, presentationStart: sample.presentationTime, isSync: sample.isSync)
      dropFollowers(endingBefore: sample.presentationTime)
    } else {
      noteSync(sample, at: decodeTime, &output)
      // The first video frame after audio alone starts a segment, so that players can join there.
      let endsSegment =
        leader.awaitsSync || endsSegmentNext
        || leader.segmentEnds(before: sample, at: decodeTime, in: queues[leaderIndex], policy)
      if endsSegment {
        let next = sample.isSync || leader.isInOrder(sample) ? sample.presentationTime : leader.presentationEnd
        let mayOpenGroup = sample.isSync && leader.mayOpenGroup(sample, duration: expected)
        closeFragment(at: decodeTime, endsSegment: true, presentationEnd: next, awaitsGroup: mayOpenGroup)
        // A recording that goes on in another file begins with a key frame.
        if sample.isSync || tracks[leaderIndex].kind != .video || deferred?.isOverdue == true { bringTracks() }
        leader.openSegment(at: decodeTime, presentationStart: next, isSync: sample.isSync)
        if mayOpenGroup { leader.openGroup(sample) }
        noteCut(before: sample, at: decodeTime, &output)
      } else if leader.fragmentIsEmpty {
        leader.openFragment(at: decodeTime, isIndependent: sample.isSync)
      } else if leader.fragmentEnds(at: decodeTime, next: expected, in: queues[leaderIndex], policy) {
        closeFragment(at: decodeTime, endsSegment: false)
        leader.openFragment(at: decodeTime, isIndependent: sample.isSync)
      }
    }
    leader.awaitsSync = false
    leader.add(sample, duration: expected)
    closeAtPredictedEnd()
  }

  /// Gives a frame of a variable rate its own fragment if it lasts too long for the open one.
  private mutating func closeBeforePause(until decodeTime: Int64) {
    guard let start = leader.fragmentStart,
      decodeTime &- start > policy.fragmentLimit.rescaled(to: queues[leaderIndex].timescale),
      let last = queues[leaderIndex].newest, last.decodeTime > start
    else { return }
    closeFragment(at: last.decodeTime, endsSegment: false)
    leader.openFragment(at: last.decodeTime, isIndependent: last.isSync)
    leader.fragmentIsEmpty = false
  }

  /// Ends the last segment where the open one begins: all frames shown before its key frame have come.
  private mutating func closeGroup() {
    guard let start = leader.closeGroup(), let index = closing.lastIndex(where: \.awaitsGroup) else { return }
    closing[index].boundary = MediaTime(ticks: start, timescale: queues[leaderIndex].timescale)
    closing[index].awaitsGroup = false
  }

  /// Closes the open fragment before the next sample comes, if its end can be predicted. If the prediction is wrong,
  /// `SampleQueue` moves the next sample to the end of this fragment.
  private mutating func closeAtPredictedEnd() {
    let predictedEnd = leader.predictedEnd(in: queues[leaderIndex], policy)
    guard predictedEnd != .unknown, let end = queues[leaderIndex].reach else { return }
    closeFragment(at: end, endsSegment: false, isExpectedLast: predictedEnd == .segmentEnds)
    leader.openFragment(at: end, isIndependent: false)
  }

  mutating func noteSync(_ sample: Sample, at decodeTime: Int64, _ output: inout [FragmentEvent]) {
    guard sample.isSync else { return }
    guard tracks[leaderIndex].kind == .video else {
      leader.cadence.followsEverySample(at: decodeTime, duration: Int64(sample.duration ?? 0))
      return
    }
    let timescale = tracks[leaderIndex].timescale
    guard let group = leader.cadence.note(syncAt: decodeTime, timescale: timescale) else { return }
    let time = MediaTime(ticks: group, timescale: timescale)
    if policy.wholeSecondLimit == nil { policy.wholeSecondLimit = policy.wholeSeconds(for: time) }
    tell(group: time, &output)
  }

  /// Reports the GOP so far when a segment had to be cut without a sync sample, before that GOP is over.
  private mutating func noteCut(before sample: Sample, at decodeTime: Int64, _ output: inout [FragmentEvent]) {
    guard !sample.isSync, tracks[leaderIndex].kind == .video else { return }
    cutsWithoutSync = true
    guard let sync = leader.cadence.lastSync else { return }
    let time = MediaTime(ticks: decodeTime &- sync, timescale: tracks[leaderIndex].timescale)
    if time >= policy.segmentTarget { tell(group: time, &output) }
  }

  private mutating func tell(group: MediaTime, _ output: inout [FragmentEvent]) {
    guard longestGroup.map({ group > $0 }) ?? true else { return }
    longestGroup = group
    output.append(.groupOfPictures(group))
  }

  /// Cuts fragments by time when the leading track has no samples but others have. It waits for one segment plus
  /// `leaderPatience`. The last frame stays on screen until then.
  private mutating func cutWithoutLeader(_ output: inout [FragmentEvent]) {
    guard tracks.count > 1, let ahead = followersReach() else { return }
    let timescale = queues[leaderIndex].timescale
    let start = leader.fragmentStart ?? followersStart()?.rescaled(to: timescale) ?? 0
    let known = queues[leaderIndex].waiting?.decodeTime ?? queues[leaderIndex].reach ?? leader.fragmentStart ?? start
    let patience = (policy.segmentTarget + CutPolicy.leaderPatience).rescaled(to: timescale)
    let boundary = ahead.rescaled(to: timescale) &- leader.reorderDelay
    guard boundary &- known > patience, boundary &- start >= policy.partTarget.rescaled(to: timescale) else { return }
    closeGroup()
    if leader.fragmentStart == nil { leader.openSegment(at: start, presentationStart: start, isSync: false) }
    leader.reached = boundary
    queues[leaderIndex].resolveWaiting(until: boundary)
    let endsSegment =
      boundary &- leader.segmentStart >= policy.segmentTarget.rescaled(to: timescale)
    closeFragment(at: boundary, endsSegment: endsSegment)
    if endsSegment {
      bringTracks()
      leader.openSegment(at: boundary, presentationStart: boundary &+ leader.reorderDelay, isSync: false)
    } else {
      leader.openFragment(at: boundary, isIndependent: false)
    }
  }

  // MARK: Fragments

  /// Ends the open fragment of the leading track at `decodeTime`. Samples of the other tracks join when it is released.
  /// `presentationEnd` is where the next segment's presentation begins, if known. With `awaitsGroup` it may still
  /// become earlier.
  private mutating func closeFragment(
    at decodeTime: Int64, endsSegment: Bool, isExpectedLast: Bool = false, presentationEnd: Int64? = nil,
    awaitsGroup: Bool = false
  ) {
    guard let start = leader.fragmentStart else { return }
    if endsSegment { endsSegmentNext = false }
    closeGroup()
    leader.isBeginning = false
    let timescale = queues[leaderIndex].timescale
    let taken = queues[leaderIndex].take(before: decodeTime)
    if let run = taken?.run { learnPartLimit(run, endsSegment: endsSegment) }
    let startsSegment = start == leader.segmentStart
    // The frame shown first in a segment may not be in the first fragment.
    let segmentStart = start &+ leader.reorderDelay
    let earliest = startsSegment ? segmentStart : taken?.run.earliestPresentationTime ?? segmentStart
    let length = startsSegment ? leader.expectedSegmentLength(timescale: timescale, policy) : nil
    let predicted = length.map { self.predicted(end: MediaTime(ticks: earliest &+ $0, timescale: timescale)) }
    let isEmpty = endsSegment && leader.fragmentIsEmpty && decodeTime == start
    closing.append(
      ClosingFragment(
        run: taken?.run, payloads: taken?.payloads ?? [], isIndependent: leader.fragmentIsIndependent,
        endsSegment: endsSegment, isExpectedLast: endsSegment || isExpectedLast,
        expectedSegmentDuration: length.map { MediaTime(ticks: $0, timescale: timescale) }, predicted: predicted,
        isEmpty: isEmpty, awaitsGroup: awaitsGroup && !isEmpty,
        boundary: MediaTime(ticks: presentationEnd ?? leader.presentationTime(at: decodeTime), timescale: timescale),
        decodeEnd: MediaTime(ticks: decodeTime, timescale: timescale),
        duration: MediaTime(ticks: max(0, decodeTime &- start), timescale: timescale),
        start: MediaTime(ticks: earliest, timescale: timescale)))
  }

  private mutating func learnPartLimit(_ run: TrackRun, endsSegment: Bool) {
    guard let (usual, longest) = partRule?.learn(run, endsSegment: endsSegment) else { return }
    partRule = nil
    let others = tracks.filter { $0.id != tracks[leaderIndex].id }
    policy.setPartLimit(usual: usual, sofar: longest, others: others)
  }

  /// The predicted ends of a segment on all tracks, so that its first fragment can state the others' end. The other
  /// tracks end a little earlier than the video: with samples that have surely arrived by then. So nothing waits for
  /// them.
  private func predicted(end: MediaTime) -> PredictedSegment {
    let isAligned = alignsFrom.map { end + policy.segmentTarget > $0 } ?? false
    if policy.fragmentsWaitForFollowers || isAligned { return PredictedSegment(end: end, followersEnd: end) }
    let last = Int64(queues[leaderIndex].lastDuration ?? queues[leaderIndex].track.frameDuration ?? 0)
    let early = MediaTime(ticks: leader.reorderDelay &+ last, timescale: end.timescale) + followerLag
    return PredictedSegment(end: end, followersEnd: end - early)
  }

  /// Presentation time at which the other tracks are cut for a fragment.
  func followersBoundary(of fragment: ClosingFragment) -> MediaTime {
    guard let predicted, fragment.boundary <= predicted.end else { return fragment.boundary }
    return min(fragment.boundary, predicted.followersEnd)
  }

  /// Emits closed fragments in order, when their samples are complete or have been waited for long enough. Only the end
  /// of a segment waits, so that all tracks are cut at the same or the predicted time. A fragment within a segment
  /// carries the audio that has arrived.
  private mutating func release(
    knownTime: MediaTime? = nil, everything: Bool = false, _ output: inout [FragmentEvent]
  ) {
    while let next = closing.first {
      if next.awaitsGroup, !everything { return }
      if let predicted = next.predicted { self.predicted = predicted }
      let endsSegment = next.endsSegment || (next.isExpectedLast && predicted != nil)
      let mayWait = (endsSegment || policy.fragmentsWaitForFollowers) && !everything && !next.isEmpty
      let boundary = followersBoundary(of: next)
      if mayWait, awaitsFollowers(until: boundary, for: next, knownTime: knownTime) {
        if !next.hasWaited { learnLag(boundary) }
        closing[0].hasWaited = true
        return
      }
      closing.removeFirst()
      let isLast = everything && closing.isEmpty
      if !next.isEmpty || isLast {
        emit(next, takeRest: isLast, &output)
      } else {
        if next.bringsTracks { emitRest(&output) }
        endSegment(&output)
      }
      if next.bringsTracks, deferred?.place == .segment { join(at: next.boundary, &output) }
    }
  }

  private mutating func emit(_ closed: ClosingFragment, takeRest: Bool, _ output: inout [FragmentEvent]) {
    fillWithSilence(from: closed.start, until: takeRest ? closed.boundary : followersBoundary(of: closed))
    let most = longestSegmentEnd(of: closed)
    let lastEnd = takeRest ? longestEnd(after: closed, within: most) : nil
    // Where tracks are delivered one by one, what is too long for a part goes into parts of that track alone.
    let lastCut = !takeRest ? nil : policy.fragmentsWaitForFollowers ? most : lastEnd
    var runs: [TrackRun] = []
    var payloads = closed.payloads
    if let run = closed.run { runs.append(run) }
    for index in queues.indices where index != leaderIndex {
      let ends = closed.bringsTracks && isLeaving(queues[index].track)
      if ends { resolveLast(of: index) }
      let takesRest = takeRest || ends
      let until = takesRest ? queues[index].track.kind == .audio ? lastCut : nil : followersBoundary(of: closed)
      let boundary = until.map { queues[index].boundary(at: $0) }
      // If tracks are delivered one by one, their parts keep to the limit too. The rest goes into further parts.
      let longest = policy.fragmentsWaitForFollowers ? policy.partLimit : nil
      let timescale = queues[index].timescale
      if let taken = queues[index].take(before: boundary, longest: longest?.rescaled(to: timescale)) {
        runs.append(taken.run)
        payloads.append(contentsOf: taken.payloads)
      }
    }
    if !runs.isEmpty {
      let fragment = Fragment(
        sequenceNumber: nextSequenceNumber, startsSegment: !emittedInSegment, isIndependent: closed.isIndependent,
        leader: tracks[leaderIndex].id, isExpectedLast: closed.isExpectedLast,
        expectedSegmentDuration: closed.expectedSegmentDuration,
        expectedFollowersEnd: closed.predicted?.followersEnd, runs: runs, payloads: payloads, start: closed.start,
        duration: closed.duration, end: closed.boundary, longestEnd: lastEnd)
      output.append(.fragment(fragment))
      nextSequenceNumber &+= 1
      emittedInSegment = true
      newest = fragment.beside(nil, sequenceNumber: fragment.sequenceNumber)
      newestStart = newestStart ?? fragment.start
      if !early.isEmpty { emitEarly(beside: fragment, before: followersBoundary(of: closed), &output) }
      if policy.fragmentsWaitForFollowers { emitBacklog(beside: fragment, of: closed, takeRest: takeRest, &output) }
    }
    if takeRest, let next = followersStart() {
      var rest = closed.rest
      if next + CutPolicy.leastRest >= most {
        endSegment(&output)
        (rest.start, rest.boundary) = (next, next)
      }
      return emit(rest, takeRest: true, &output)
    }
    if closed.endsSegment { endSegment(&output) }
  }

  private mutating func endSegment(_ output: inout [FragmentEvent]) {
    predicted = nil
    guard emittedInSegment else { return }
    emittedInSegment = false
    (newest, newestStart) = (nil, nil)
    output.append(.segmentEnd)
  }
}
