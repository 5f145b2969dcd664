internal import Base
internal import FMP4
internal import Glibc
internal import Logging
internal import NIOCore
internal import Publishing
internal import RecordingFiles
internal import Storage
internal import Streams

/// The part of a recorder that works with the disk. It handles events in order, on one thread at a time, and may wait for the
/// disk in every call. After a disk error it finishes the file as well as possible and goes on in another one.
final class RecordingWriter: RecorderWriter {
  let library: RecordingSettings
  let stream: StreamName
  private let give: @Sendable (RecordingOutput) -> Void

  private var state = RecordingState.idle
  private var initSegment: InitSegment?
  /// Nil where all tracks are recorded.
  private var chosen: ChosenTracks?
  /// The tracks of the file that go on in it. Set where the tracks changed and no key frame has begun another file since.
  private var kept: ChosenTracks?
  private var waiting: RecordingWait? {
    didSet {
      guard waiting != oldValue else { return }
      give(.waits(waiting?.description))
      if let waiting { library.logger.of(stream).warning("\(waiting)") }
    }
  }
  private var anchor: WallClockAnchor?
  private var current: RecordingInProgress?
  /// The error that prevents recording, and the time until which nothing is tried.
  private var trouble: (error: RecordingError, until: MonotonicTime)?
  /// Why there may be a gap before the next fragment.
  private var missing: String?
  /// End of what was written last: in media time and by the wall clock.
  private var written: (until: MediaTime, wall: WallTime?)?
  /// Frames that the stream had lost when recording began, and at the newest fragment that was written.
  private var lost = LostMeanwhile()
  /// End of the media received since then and not recorded.
  private var leftOutUntil: WallTime?
  /// Totals of the earlier files of this recording.
  private var earlier: (seconds: Double, bytes: UInt64) = (0, 0)
  /// The stream has ended, or the recording was stopped or has reached its limit.
  private(set) var isOver = false
  private let epoch: String?

  /// `epoch` is the epoch of the stream being recorded.
  init(
    library: RecordingSettings, stream: StreamName, epoch: String?, give: @escaping @Sendable (RecordingOutput) -> Void
  ) {
    self.library = library
    chosen = ChosenTracks(library.tracks)
    (self.stream, self.epoch, self.give) = (stream, epoch, give)
  }

  func handle(_ work: RecorderQueue.Work) {
    switch work {
    case .item(.event(let event)): receive(event)
    case .item(.segmentEnd(let end)):
      attempt { () throws(RecordingError) in try current?.complete((kept ?? chosen)?.end(end) ?? end) }
    case .item(.shed): noteMissing(GapReason.tooSlow)
    case .item(.shedUntil(let end)): leaveOut(until: end)
    case .item(.keyless(let isLong)):
      noteMissing(RecordingWait.reason)
      if isLong, current == nil, !isOver { waiting = .everything }
    case .item(.stop): stop()
    case .item(.cancel): cancel()
    case .tick: tick()
    }
  }

  private func receive(_ event: StoredEvent) {
    guard !isOver else { return }
    do throws(RecordingError) {
      switch event {
      case .initialization(let initSegment): try change(to: initSegment)
      case .fragment(let fragment): try record(fragment)
      case .clock(let anchor): self.anchor = anchor
      case .redated(let anchor):
        self.anchor = anchor
        current?.replay?.redate(by: anchor)
      case .end(let reason): try finish(reason == .shutdown ? .shutdown : .streamEnded)
      // The media goes on under other dates.
      case .discontinuity(.clock): current?.replay?.breakTimeline()
      // Samples carry their own times, so the tables go on. No media may arrive for a while, so sync now.
      case .discontinuity(let cause):
        noteMissing(GapReason.of(cause))
        current?.replay?.breakTimeline()
        try current?.sync(now)
      case .segmentEnd: break
      }
    } catch {
      suspend(error)
    }
  }

  /// Fragments are left out at this place.
  private func noteMissing(_ reason: String) {
    if missing == nil { missing = reason }
  }

  /// Fragments are left out up to this media time.
  private func leaveOut(until end: MediaTime) {
    leftOutUntil = anchor?.wallTime(at: end)
  }

  /// Does the work that depends on time alone.
  private func tick() { attempt { () throws(RecordingError) in try syncIfDue() } }

  private func attempt(_ work: () throws(RecordingError) -> Void) {
    do throws(RecordingError) {
      try work()
    } catch {
      suspend(error)
    }
  }

  /// Completes the recording at a client's request, while the stream goes on.
  private func stop() {
    guard !isOver else { return }
    attempt { () throws(RecordingError) in try finish(.asked) }
  }

  /// Cancels the recording and removes its file.
  private func cancel() {
    guard !isOver, state.cancel() == .done else { return }
    (isOver, waiting) = (true, nil)
    library.logger.of(stream).notice("recording is thrown away: a client cancelled it")
    if let current {
      discard(current)
      announce(.cancelled, current.facts)
    }
    current = nil
    give(.state(state))
  }

  private var now: MonotonicTime { library.clock.monotonic() }

  private func announce(_ kind: RecordingEvent.Kind, _ facts: RecordingFacts) {
    var facts = facts
    facts.visibility = library.visibility
    give(.event(RecordingEvent(kind: kind, facts: facts)))
  }

  // MARK: Writing

  private func change(to all: InitSegment) throws(RecordingError) {
    initSegment = chosen == nil ? all : chosen?.change(to: all)
    guard let initSegment else {
      if state.fail(GapReason.noTrack) == .done { give(.state(state)) }
      return noteMissing(GapReason.noTrack)
    }
    guard let current else { return }
    kept = nil
    if current.tables.canContinue(with: initSegment.tracks) {
      waiting = nil
      try self.current?.change(to: initSegment)
    } else {
      // Another file begins with a key frame, which may be far away.
      kept = ChosenTracks(keeping: current.tracks, of: initSegment)
      if kept == nil { try close(.anotherFormat) }
    }
  }

  /// Whether a file can begin with that fragment: decoding can.
  private func beginsFile(_ fragment: Fragment) -> Bool {
    fragment.isIndependent || (chosen?.hasVideo == false && fragment.startsSegment)
  }

  private func record(_ published: PublishedFragment) throws(RecordingError) {
    let fragment = published.fragment
    leaveOut(until: fragment.end)
    guard let initSegment else { return }
    if let trouble, now < trouble.until {
      return noteMissing(trouble.error.description)
    }
    if kept != nil {
      if beginsFile(fragment) { try close(.anotherFormat) } else { waiting = .changedTracks }
    }
    if let stop = split(before: fragment) { try close(stop) }
    if current == nil {
      // A file begins with a whole group of pictures. Where key frames are usual, segments begin with them.
      guard beginsFile(fragment) else {
        if fragment.startsSegment { waiting = .everything }
        return noteMissing(RecordingWait.reason)
      }
      waiting = nil
      // What was lost in a gap before a file belongs to none.
      if missing != nil { lost.first = nil }
      try begin(with: fragment, initSegment)
    } else if let folder = current?.file.folder {
      try library.checkFreeSpace(folder)
    }
    let cut = try cut(published)
    if (kept ?? chosen) != nil, cut == nil {
      if kept != nil { missing = RecordingWait.reason }
      // Nothing is missing from the recording.
      if missing == nil { leftOutUntil = nil }
      return
    }
    let published = cut?.published ?? published
    if try completes(before: published, cut?.bytes.readableBytes ?? published.range.length) { return }
    try noteGap(before: published)
    let isFirst = current?.tables.sampleCount == 0
    try current?.write(published, bytes: cut?.bytes, anchor: anchor)
    trouble = nil
    written = (fragment.end, anchor?.wallTime(at: fragment.end))
    lost.seen = published.lostBefore
    lost.first = lost.first ?? published.lostBefore
    leftOutUntil = nil
    if isFirst, let current { announce(.started, current.facts) }
    try syncIfDue()
    report()
  }

  /// The fragment with the chosen tracks alone; nil where all are recorded, and if it has none of them.
  private func cut(_ published: PublishedFragment) throws(RecordingError) -> ChosenTracks.Cut? {
    do throws(StorageError) {
      if kept != nil { return try kept?.cut(published, anchor: anchor) }
      return try chosen?.cut(published, anchor: anchor)
    } catch {
      throw .system("read a fragment of", LogText.escaped(stream.description), errno: error.errno)
    }
  }

  private func begin(with fragment: Fragment, _ initSegment: InitSegment) throws(RecordingError) {
    try library.files.take(stream, limit: library.policy.mostFilesPerHour, now: now)
    let folder = try RecordingFolder.open(library.folder).folder(of: stream, ifAbsent: .make)
    try library.checkFreeSpace(folder, isResuming: trouble != nil)
    let wall = anchor?.wallTime(at: fragment.start) ?? library.clock.wallTime
    let start = UTCText(wall)
    let name = library.policy.naming.name(stream: stream, start: start) ?? RecordingName(start: start)
    let file = try RecordingFile.create(
      in: folder, name: name, moovReservation: library.policy.moovReservation, calls: library.calls)
    let replay = library.archive?.begin(stream: stream, epoch: epoch, file: file, library.visibility)
    current = RecordingInProgress(
      file: file, stream: stream, title: library.title, initSegment: initSegment, startedAt: wall, replay: replay,
      now: now)
    try current?.begin()
    give(.split(at: library.policy.split.distance(from: wall).map { fragment.start + MediaTime(nanoseconds: $0) }))
    library.logger.of(stream).notice("recording to \(file.path)")
  }

  /// Why this fragment begins another file; nil if it does not.
  private func split(before fragment: Fragment) -> RecordingStop? {
    guard let current, current.tables.sampleCount > 0, fragment.isIndependent else { return nil }
    // The first fragment after a hole may begin in the middle of a segment, so this check comes first.
    if let written, (fragment.start - written.until).seconds > Self.longestHole { return .hole }
    if current.tables.areFull(at: fragment.start) { return .hole }
    guard fragment.startsSegment, let wall = anchor?.wallTime(at: fragment.start) else { return nil }
    let isDue = library.policy.split.isDue(at: wall, fileStart: current.startedAt, seconds: current.tables.seconds)
    return isDue ? .split : nil
  }

  /// A longer hole in the media begins another file, because a player would show a still frame for all that time. In seconds.
  /// Outages of the publisher leave no hole in the media time.
  private static let longestHole = 10.0

  /// Whether the recording has reached its limit of length or size; it is finished in that case.
  private func completes(before published: PublishedFragment, _ length: Int) throws(RecordingError) -> Bool {
    guard let current else { return false }
    let seconds = earlier.seconds + current.tables.seconds + published.fragment.duration.seconds
    let bytes = earlier.bytes + current.expectedBytes + UInt64(length)
    let policy = library.policy
    // Media after the limit is not missing from the recording.
    if let limit = policy.maximumDuration, seconds * 1_000_000_000 > Double(limit) + 1_000_000 {
      leftOutUntil = nil
      try finish(.longest)
    } else if let limit = policy.maximumBytes, bytes > limit {
      leftOutUntil = nil
      try finish(.largest)
    } else {
      return false
    }
    return true
  }

  private func syncIfDue() throws(RecordingError) {
    guard try current?.syncIfDue(library.policy.syncInterval, now) == true, let current else { return }
    announce(.progressed, current.facts)
    report()
  }

  private func report() {
    guard let current else { return }
    if state.advance(to: current.progress) == .done { give(.state(state)) }
  }

  // MARK: Gaps

  private func noteGap(before published: PublishedFragment) throws(RecordingError) {
    let fragment = published.fragment
    guard let reason = missing else { return }
    missing = nil
    try noteGap(until: anchor?.wallTime(at: fragment.start), reason, published.lostBefore - lost.seen)
  }

  /// Notes the gap at the end of the recording, since no further fragment reports it.
  private func noteGapAtEnd() throws(RecordingError) {
    guard let end = leftOutUntil else { return }
    leftOutUntil = nil
    let noted = missing == GapReason.publisherAway ? nil : missing
    let waits = waiting.map { _ in RecordingWait.reason }
    try noteGap(until: end, trouble?.error.description ?? noted ?? waits ?? GapReason.tooSlow)
    report()
  }

  /// Notes the media missing from the end of what was written to `start`; nil where that is not known.
  ///
  /// - Parameter lost: frames that came meanwhile and could not be used.
  private func noteGap(
    until start: WallTime?, _ cause: String, _ lost: LostFrames = LostFrames()
  ) throws(RecordingError) {
    guard let end = written?.wall, let start else { return }
    let gap = Double(start &- end) / 1_000_000_000
    guard gap > GapReason.shortestGap else { return }
    let reason = GapReason.text(cause, lost)
    library.counters.lost(seconds: gap, GapReason.isPublishers(cause) ? .publisher : .disk)
    let place = current?.tables.seconds ?? 0
    try current?.note(RecordingGap(at: place, seconds: gap, reason: reason))
    let seconds = Decimals.fixed(seconds: gap, digits: 1)
    library.logger.of(stream).warning("\(seconds) s are missing in the recording: \(reason)")
  }

  // MARK: Disk errors

  /// Handles a disk error. The file is finished as far as it is known to be whole. Recording goes on in another file when the
  /// disk allows.
  private func suspend(_ error: RecordingError) {
    guard !isOver else { return }
    if trouble == nil || trouble?.error.code != error.code {
      library.logger.of(stream).error(
        "recording stops: \(error.description); the live stream goes on, and recording resumes as soon as it can"
      )
    }
    trouble = (error, now &+ RecordingSettings.retryInterval)
    noteMissing(error.description)
    let interrupted = current
    (current, kept) = (nil, nil)
    if state.fail(error.description) == .done { give(.state(state)) }
    guard let interrupted else { return }
    guard interrupted.tables.sampleCount > 0 else { return discard(interrupted) }
    count(interrupted)
    let reason = error.description
    announce(.failed(reason: reason), rescue(interrupted, reason, failure: reason).facts)
  }

  private enum Rescue {
    /// A movie exists, or a copy that makes one is queued.
    case done
    /// The disk prevented it; another attempt follows.
    case postponed
  }

  /// Makes a movie of the part known to be whole, and returns the facts of that. `reason` is the error. `failure` says why the
  /// recording ended early; nil where all of it has been written.
  private func rescue(
    _ interrupted: RecordingInProgress, _ reason: String, failure: String?
  ) -> (rescue: Rescue, facts: RecordingFacts) {
    // The file may become shorter: later readers must read it anew.
    leave(interrupted, .left)
    let keepsAll = interrupted.file.keepsAll
    if !keepsAll { interrupted.replay?.cut(at: interrupted.file.durableLength) }
    var facts = interrupted.facts
    facts.failure = keepsAll ? failure : reason
    do throws(RecordingError) {
      let start = now
      interrupted.file.beforeFinalName = { [give, facts] bytes in
        var facts = facts
        facts.bytes = bytes
        give(.prospect(.stored, facts))
      }
      let (outcome, seconds) = try interrupted.rescue(failure: facts.failure) { [give, facts] contents, bytes in
        var facts = facts
        (facts.seconds, facts.bytes) = (contents.seconds, bytes)
        give(.prospect(.stored, facts))
      }
      library.counters.finished(outcome, nanoseconds: now &- start)
      // Seconds that were cut off belong to the gap.
      let lost = Int64(max(0, facts.seconds - seconds) * 1_000_000_000)
      if let until = written {
        leftOutUntil = leftOutUntil ?? until.wall
        written = (until.until, until.wall.map { $0 &- lost })
      }
      facts.seconds = seconds
      facts.bytes = interrupted.file.length
      settle(interrupted.file, facts, outcome, index: keepsAll ? interrupted.replay?.stored : nil)
      return (.done, facts)
    } catch {
      library.logger.of(stream).error(
        "\(interrupted.file.path) cannot be finished and is tried again in a while: \(error)")
      if !interrupted.file.keepsAll, facts.failure == nil { facts.failure = error.description }
      postpone(interrupted, facts, reason, keepsAll: keepsAll && interrupted.file.keepsAll)
      return (.postponed, facts)
    }
  }

  private func postpone(
    _ interrupted: RecordingInProgress, _ facts: RecordingFacts, _ reason: String, keepsAll: Bool
  ) {
    var unfinished = UnfinishedRecording(
      folder: interrupted.file.folder, name: interrupted.file.name, stream: stream, failure: facts.failure)
    if case .movie = interrupted.file.stage { unfinished.hasHead = true }
    // For the other files, the next attempt reads the facts from the file itself.
    if keepsAll || unfinished.hasHead { unfinished.facts = facts }
    // The state of a recording that is over changes in no other way.
    var late = state
    if isOver, facts.failure == nil, late.fail(reason) == .done, late.completeAfterAll() == .done {
      unfinished.whenStored = { [give, late] in give(.state(late)) }
    }
    give(.unfinished(unfinished, .attempt))
  }

  // MARK: Finishing

  private func finish(_ stop: RecordingStop) throws(RecordingError) {
    do throws(RecordingError) {
      try noteGapAtEnd()
    } catch {
      suspend(error)
    }
    (isOver, waiting) = (true, nil)
    do throws(RecordingError) {
      try close(stop)
      if state.complete() == .done { give(.state(state)) }
    } catch {
      if state.fail(error.description) == .done { give(.state(state)) }
    }
  }

  /// Makes a movie of the current file, if there is one.
  private func close(_ stop: RecordingStop) throws(RecordingError) {
    guard let closing = current else { return }
    (current, kept) = (nil, nil)
    guard closing.tables.sampleCount > 0 else { return discard(closing) }
    count(closing)
    library.logger.of(stream).notice("recording stops: \(stop)\(lost.text)")
    lost.first = lost.seen
    announce(.stopped(stop), closing.facts)
    do throws(RecordingError) {
      let start = now
      closing.file.beforeFinalName = { [give] bytes in
        var facts = closing.facts
        facts.bytes = bytes
        give(.prospect(.stored, facts))
      }
      defer { closing.file.beforeFinalName = { _ in } }
      let outcome = try closing.finish(effort: stop.effort == .atOnce ? .atOnce : .inPlace)
      library.counters.finished(outcome, nanoseconds: now &- start)
      leave(closing, outcome == .inserted || outcome == .filled ? .finished : .left)
      settle(closing.file, closing.facts, outcome, stop.effort, index: closing.replay?.stored)
    } catch {
      library.logger.of(stream).error("\(closing.file.path) cannot be finished: \(error)")
      let (rescue, facts) = rescue(closing, error.description, failure: nil)
      // The second attempt succeeded and nothing is missing.
      if rescue == .done, facts.failure == nil { return }
      announce(.failed(reason: error.description), facts)
      throw error
    }
  }

  private func discard(_ file: RecordingInProgress) {
    file.file.discard()
    leave(file, .discarded)
  }

  /// Nothing more is written to a file that viewers may be reading.
  private func leave(_ file: RecordingInProgress, _ end: RecordingArchive.End) {
    if let replay = file.replay { library.archive?.end(replay, end) }
  }

  private func count(_ file: RecordingInProgress) {
    earlier.seconds += file.tables.seconds
    earlier.bytes += file.expectedBytes
  }

  /// Logs and announces the result of finishing a file.
  private func settle(
    _ file: RecordingFile, _ facts: RecordingFacts, _ outcome: RecordingFile.Outcome,
    _ effort: RecordingFile.Effort = .whatItTakes, index: ByteBuffer? = nil
  ) {
    let seconds = Decimals.fixed(seconds: facts.seconds, digits: 1)
    switch (outcome, effort) {
    case (.filled, _), (.inserted, _), (.shared, _), (.copied, _):
      library.logger.of(stream).notice("recorded \(seconds) s to \(file.finishedPath)")
      var facts = facts
      facts.bytes = file.length
      announce(.stored, facts)
    case (.leftFragmented, .inPlace), (.leftFragmented, .atOnce):
      library.logger.of(stream).notice("recorded \(seconds) s to \(file.path), to be finished at the next start")
    case (.leftFragmented, .whatItTakes):
      library.logger.of(stream).notice("recorded \(seconds) s to \(file.path); finishing it needs a copy")
      let unfinished = UnfinishedRecording(
        folder: file.folder, name: file.name, stream: stream, facts: facts, index: index)
      give(.unfinished(unfinished, .copy))
    }
  }
}
