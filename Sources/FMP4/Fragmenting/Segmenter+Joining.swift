/// Tracks that come, go or change while the leading track goes on.
extension Segmenter {
  /// Where new tracks beside the same leading track begin. Nil: at once.
  func place(of newTracks: [TrackDescription]) -> DeferredTracks.Place? {
    let leads = newTracks.leader?.id == tracks[leaderIndex].id
    // Tracks that are delivered one by one can change one by one.
    if leads, tracks.hasFurther || newTracks.hasFurther { return .segment }
    return tracks[leaderIndex].kind == .video ? .syncSample : nil
  }

  /// Lets the deferred tracks begin with the segment that follows. The tracks that stay the same go on.
  mutating func join(at boundary: MediaTime, _ output: inout [FragmentEvent]) {
    guard let waiting = deferred else { return }
    deferred = nil
    let before = queues
    for queue in before where !waiting.tracks.contains(queue.track) { noteReach(of: queue) }
    tracks = waiting.tracks
    queues = tracks.map { track in before.first { $0.track == track } ?? SampleQueue(track: track) }
    leaderIndex = tracks.firstIndex { $0.id == tracks.leader?.id } ?? 0
    leader.joinStart = boundary.rescaled(to: queues[leaderIndex].timescale)
    initVersion += 1
    output.append(.initialization(InitSegment(version: initVersion, tracks: tracks, continues: true)))
    let changed = tracks.filter { track in !before.contains { $0.track == track } }
    awaitsSync = awaitsSync.intersection(tracks.map(\.id)).union(changed.filter { $0.kind == .video }.map(\.id))
    early = Set(changed.map(\.id)).intersection(before.map(\.track.id))
    for sample in waiting.samples {
      guard let index = queues.firstIndex(where: { $0.track.id == sample.track }), index != leaderIndex else {
        continue
      }
      // Nobody misses a track that is new before it begins.
      let middle = sample.presentationTime &+ Int64((sample.duration ?? 0) / 2)
      let isBefore = MediaTime(ticks: middle, timescale: queues[index].timescale) < boundary
      if early.contains(sample.track) || !isBefore { follow(sample, at: index) }
    }
  }

  /// Keeps a sample of a deferred track. If the tracks wait for it, a sync sample of the leading track brings them in.
  /// True if the sample needs no further handling.
  mutating func takeDeferred(_ sample: Sample, _ output: inout [FragmentEvent]) -> Bool {
    guard let waiting = deferred, let track = waiting.tracks.first(where: { $0.id == sample.track }) else {
      return false
    }
    if sample.track == tracks[leaderIndex].id {
      guard sample.isSync, waiting.place == .syncSample else { return false }
      // Its distance is known before the segment ends.
      noteSync(sample, at: sample.decodeTime, &output)
      let timescale = queues[leaderIndex].timescale
      let end = MediaTime(ticks: sample.presentationTime, timescale: timescale)
      let open = leader.fragmentStart.map { MediaTime(ticks: leader.presentationTime(at: $0), timescale: timescale) }
      fillWithSilence(from: closing.first?.start ?? open ?? end, until: end)
      apply(waiting.tracks, beforeSync: true, &output)
      return false
    }
    guard !tracks.contains(where: { waiting.continues($0, as: track) }) else { return false }
    deferred?.keep(sample)
    guard deferred?.isFull == true else { return true }
    switch waiting.place {
    case .syncSample: apply(waiting.tracks, &output)
    case .segment: deferred?.dropOlder()
    }
    return true
  }

  /// The deferred tracks begin after the fragment that was closed just now.
  mutating func bringTracks() {
    guard deferred?.place == .segment, let last = closing.indices.last else { return }
    closing[last].bringsTracks = true
  }

  /// A deferred change replaces the track or ends it: nothing more of it comes.
  func isLeaving(_ track: TrackDescription) -> Bool {
    deferred.map { waiting in !waiting.tracks.contains { waiting.continues(track, as: $0) } } ?? false
  }

  /// Lets tracks that wait for a sync sample to end or change be silent up to `end` (presentation time), in whole frames from
  /// where they ended: they may lag behind the leading track, as those of a decoder do. After a pause it is from `start` on.
  /// Players stop where a track of the segment has nothing.
  mutating func fillWithSilence(from start: MediaTime, until end: MediaTime) {
    guard deferred?.place == .syncSample else { return }
    for index in queues.indices where index != leaderIndex && isLeaving(queues[index].track) {
      guard let reach = queues[index].reach else { continue }
      let timescale = queues[index].timescale
      let next = min(start, nextStart(of: queues[index].track) ?? start).rescaled(to: timescale)
      let isPause = next &- reach > policy.segmentTarget.rescaled(to: timescale)
      queues[index].addSilence(from: isPause ? start.rescaled(to: timescale) : reach, until: end)
    }
  }

  /// Tracks that waited to change are back as they were: what they missed of the open fragment is silent, too.
  mutating func noteReturn() {
    guard deferred?.place == .syncSample else { return }
    for index in queues.indices where index != leaderIndex && isLeaving(queues[index].track) {
      queues[index].isReturning = true
    }
  }

  /// Decode time of the first sample of what replaces a track.
  private func nextStart(of track: TrackDescription) -> MediaTime? {
    guard let sample = deferred?.samples.first(where: { $0.track == track.id }),
      let timescale = deferred?.tracks.first(where: { $0.id == track.id })?.timescale
    else { return nil }
    return MediaTime(ticks: sample.decodeTime, timescale: timescale)
  }

  /// Whether a track that has joined or changed would begin before its first segment. Nobody has seen or heard it yet. Later segments
  /// do not count: it may be more than one behind.
  func precedesJoin(_ sample: Sample, in queue: SampleQueue) -> Bool {
    guard let goingOn = leader.goingOn, let start = leader.joinStart, queue.isEmpty, queue.reach == nil,
      !goingOn.contains(sample.track), !early.contains(sample.track)
    else { return false }
    let end = MediaTime(ticks: sample.decodeTime &+ Int64(sample.duration ?? 0), timescale: queue.timescale)
    return end <= MediaTime(ticks: start, timescale: queues[leaderIndex].timescale)
  }

  /// Drops audio that ends before the first video frame, if it begins with that.
  mutating func dropFollowers(endingBefore presentationTime: Int64) {
    let start = MediaTime(ticks: presentationTime, timescale: queues[leaderIndex].timescale)
    for index in queues.indices where index != leaderIndex {
      if leader.goingOn?.contains(queues[index].track.id) == true { continue }
      queues[index].drop(endingBefore: start.rescaled(to: queues[index].timescale))
      // A track that joins has not begun then: what follows may come from before the segment, too.
      if leader.goingOn != nil, queues[index].isEmpty { queues[index] = SampleQueue(track: queues[index].track) }
    }
  }

  /// Gives the last sample of a track that ends a duration: the most likely one, but at most up to the first sample of
  /// what replaces the track.
  mutating func resolveLast(of index: Int) {
    let track = queues[index].track
    let next = nextStart(of: track).map { start in
      // Rounding may make it a tick too late.
      start.rescaled(to: track.timescale) &- (start.timescale == track.timescale ? 0 : 1)
    }
    queues[index].resolveWaitingWithoutSuccessor(before: next)
  }

  /// Emits what is left of the tracks that end with the open segment. Its last fragment was emitted before that was
  /// known.
  mutating func emitRest(_ output: inout [FragmentEvent]) {
    guard let newest else { return }
    for index in queues.indices where index != leaderIndex && isLeaving(queues[index].track) {
      resolveLast(of: index)
      emit(beside: newest, from: index, before: nil, &output)
    }
  }

  /// Emits the samples that are left from before the segment, in fragments that are no longer than others.
  mutating func emitEarly(beside first: Fragment, before boundary: MediaTime, _ output: inout [FragmentEvent]) {
    for index in queues.indices where early.contains(queues[index].track.id) {
      emit(beside: first, from: index, before: queues[index].boundary(at: boundary), &output)
    }
    early = []
  }

  /// Emits what the other tracks have beyond the part beside the leading track's, in further parts of allowed length: all
  /// of it where nothing follows, as far as the segment may go. Where a further track has fallen behind, whole parts, so that it
  /// catches up. The default tracks catch up part by part: their interleaved layout would get parts that are too short.
  mutating func emitBacklog(
    beside fragment: Fragment, of closed: ClosingFragment, takeRest: Bool, _ output: inout [FragmentEvent]
  ) {
    guard let limit = policy.partLimit else { return }
    let defaults = tracks.defaults
    for index in queues.indices where index != leaderIndex {
      let track = queues[index].track
      if takeRest || closed.bringsTracks && isLeaving(track) {
        let end = takeRest && track.kind == .audio ? longestSegmentEnd(of: closed) : nil
        emit(beside: fragment, from: index, before: end.map { queues[index].boundary(at: $0) }, &output)
      } else if closed.endsSegment || !closed.isExpectedLast, !defaults.contains(track) {
        let boundary = queues[index].boundary(at: followersBoundary(of: closed))
        emit(beside: fragment, from: index, before: boundary, atLeast: limit, &output)
      }
    }
  }

  /// Emits samples of one track with a decode time before `boundary`, or all of them, in fragments beside another one.
  /// Less than `least` of them stays.
  private mutating func emit(
    beside fragment: Fragment, from index: Int, before boundary: Int64?, atLeast least: MediaTime? = nil,
    _ output: inout [FragmentEvent]
  ) {
    let timescale = queues[index].timescale
    let (longest, least) = (policy.partLimit?.rescaled(to: timescale), least?.rescaled(to: timescale) ?? 0)
    while queues[index].length(before: boundary) >= least,
      let taken = queues[index].take(before: boundary, longest: longest)
    {
      var aside = fragment.beside(taken, sequenceNumber: nextSequenceNumber)
      // Parts do not grow once they are out: what came with an earlier sample is out.
      if case .fragment? = output.last { aside.joinsPart = true }
      output.append(.fragment(aside))
      nextSequenceNumber &+= 1
    }
  }
}
