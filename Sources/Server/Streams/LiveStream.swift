package import Base
internal import Control
package import FMP4
internal import Logging
package import NIOCore
package import Publishing
internal import Storage
package import Synchronization
internal import Transcode

/// A stream, identified by its name; it outlives its publishers. One lock protects all state. It is held for microseconds: by
/// the publisher's thread to store an event, and by viewers to take a view. The state consists of six independent values;
/// this class passes information between them.
package final class LiveStream: Sendable {
  package let name: StreamName
  /// Those of the current epoch. They change with the next one.
  private let currentSettings: Reloadable<StreamSettings>
  package let clock: SteadyClock
  let logger: Logger
  private let epochIDs: EpochID
  /// Starts the workers of the ladder.
  let workers: WorkerLauncher
  /// For a worker that the settings do not tell of: one room for all streams.
  let room: WorkerRoom
  /// For a worker that makes media for viewers by WebRTC.
  let roomForViewers: WorkerRoom
  /// For one of these that encodes video.
  let encoders: WorkerRoom
  /// Stores the epoch for the next process; nil when no process resumes it.
  let stateStore: StreamStateStore?
  /// Where changes of the phase are told before they are made.
  let events: EventLog?
  /// Limits the memory.
  let memory: WindowBudget
  /// Nil where nobody stands in for publishers.
  let standIns: StandIns?
  /// Holds the bytes of all epochs.
  private let store: SegmentStore
  let state: RankedMutex<State>
  /// Changes, under the lock, with everything that a response to a viewer can depend on.
  package let stamp = Generation()
  /// The number of playlists rendered for this name.
  package let renders = Atomic(0)
  private let target = Atomic(0)

  struct State {
    var publisher: PublisherSlot
    var life: EpochLife
    var subscribers = Subscribers()
    var warnings = StreamWarnings()
    var turns = StreamTurns()
    var cues = StreamCues()
    var air = OnAir()
    /// Bytes of media that had come when the memory was last counted.
    var countedIntake = 0
    /// What the publisher's stop does, as the settings have it now, and whether they are those of this name alone.
    var end: (rule: StreamSettings.EndRule, isOfOneName: Bool)
    /// When its media last needed more memory than they may have.
    var outgrewAt: MonotonicTime?
  }

  init(
    name: StreamName, settings: StreamSettings, clock: SteadyClock, epochIDs: EpochID, logger: Logger,
    knownGroup: MediaTime?, promisedGroup: MediaTime? = nil, workers: WorkerLauncher, room: WorkerRoom = .unlimited,
    roomForViewers: WorkerRoom = .unlimited, encoders: WorkerRoom = .unlimited, stateStore: StreamStateStore? = nil,
    events: EventLog? = nil,
    memory: WindowBudget = .unlimited, standIns: StandIns? = nil,
    store: SegmentStore = SegmentStore(name: SegmentStore.ofStreams), resuming record: EpochRecord? = nil
  ) {
    self.name = name
    self.store = store
    currentSettings = Reloadable(settings)
    self.clock = clock
    self.epochIDs = epochIDs
    self.workers = workers
    self.room = room
    self.roomForViewers = roomForViewers
    self.encoders = encoders
    self.stateStore = stateStore
    self.events = events
    self.memory = memory
    self.standIns = standIns
    self.logger = logger.of(name)
    let wall = clock.wallTime
    let epoch =
      record.map { Epoch(resuming: $0, settings: settings, store: store) }
      ?? Epoch(
        id: epochIDs.next(at: wall), settings: settings, store: store, knownGroup: promisedGroup ?? knownGroup)
    target.store(epoch.window.targetDuration ?? 0, ordering: .relaxed)
    let life = EpochLife(
      epoch, record == nil ? .starting : .reconnecting, startedAt: record?.startedAt ?? wall,
      knownGroup: record?.longestGroup ?? knownGroup, now: clock.monotonic())
    state = RankedMutex(
      .stream, State(publisher: PublisherSlot(settings.bounds), life: life, end: (settings.end, settings.isOfOneName)))
    if let record {
      state.withLock { ($0.turns.begunEpoch, $0.life.isHeld) = (record.epoch, record.isHeld) }
    }
  }

  /// The settings of the current epoch.
  package var settings: StreamSettings { currentSettings.now }

  /// The next publisher begins a new epoch.
  var hasEnded: Bool {
    state.withLock { state in
      if case .ended? = state.turns.pending?.turn { return true }
      return state.life.phase == .ended
    }
  }

  // MARK: Publishers

  /// Gives the name to a publisher, as `PublisherSlot.admit` does. The caller evicts the former publisher, without the stream's
  /// lock. `settings` are those of a new epoch; `makeSinks` is as in `Subscribers`.
  func admit(
    _ request: PublishRequest, _ proof: Authorizer.Proof, takeover rule: PublisherRule.Takeover = .newest,
    settings: StreamSettings,
    makeSinks: (_ epoch: String, _ isNew: Bool) -> [any FragmentSink]
  ) throws(PublishRefusal) -> PublisherSlot.Change {
    let now = clock.monotonic()
    return try state.withLock { state throws(PublishRefusal) in
      stamp.change()
      let admitted = try state.publisher.admit(request, proof, takeover: rule, now: now)
      makeTurns(&state)
      if let former = admitted.former {
        logger.warning(
          "\(request.protocolName) publisher \(request.remoteAddress) takes over from \(former.remoteAddress)")
        tell(
          .streamInterrupted, because: EndReason.replaced.text, by: former.remoteAddress, of: former.link, state)
        if !state.air.isStoodIn { interrupt(&state) }
        tellRelays(.end(.replaced), &state)
      }
      if state.life.phase == .ended { renewEpoch(settings, request.keyFrames, &state, now: now) }
      state.life.isHeld = proof.right != .anonymous || request.origin == .server
      if !state.subscribers.makeSinks(of: state.life.epoch, makeSinks) {
        let count = state.subscribers.closing.count()
        logger.error(
          "this publication is not recorded: the files of \(count) earlier ones are still being written; look at the disk's speed"
        )
      }
      state.warnings.beginPublication()
      state.cues.beginPublication()
      // Its media follow those of the stand-in, with its first key frame.
      if !state.air.isStoodIn { state.life.epoch.startPublication(request.keyFrames) }
      state.air.beginPublication()
      begin(&state)
      return admitted
    }
  }

  private func renewEpoch(
    _ settings: StreamSettings, _ keyFrames: PublishRequest.KeyFrames, _ state: inout State, now: MonotonicTime
  ) {
    currentSettings.now = settings
    state.end = (settings.end, settings.isOfOneName)
    state.publisher.limit(by: settings.bounds)
    let wall = clock.wallTime
    let last = state.life.epoch
    let measured = state.life.knownGroup
    let epoch = Epoch(
      id: epochIDs.next(at: wall), settings: settings, store: store,
      knownGroup: keyFrames.promised(for: settings, measured: measured) ?? measured,
      mayPromiseIndependence: last.window.keepsIndependence)
    state.life.renew(with: epoch, startedAt: wall, now: now)
    state.subscribers.beginEpoch()
    state.warnings.beginEpoch()
    change(state.life)
  }

  /// To be called after each change that a viewer may see.
  func change(_ life: EpochLife) {
    target.store(life.epoch.window.targetDuration ?? 0, ordering: .relaxed)
    stamp.change()
  }

  /// Takes an event of a publication. Returns `.closed` when the publication no longer holds the name.
  func receive(_ event: MediaEvent, from token: PublicationToken) -> SinkVerdict {
    let now = clock.monotonic()
    var over: (any FallbackRun)?
    defer { over?.stop() }
    return state.withLock { state in
      guard state.publisher.holder?.token == token else {
        if let reason = state.publisher.dismissal(of: token) { return .closed(reason) }
        return .closed(state.life.phase == .ended || state.life.isLeaving ? .shutdown : .replaced)
      }
      state.publisher.count(event, now: now)
      switch event {
      case .tracks(let tracks): state.warnings.withdraw(missing: tracks)
      case .end(let reason):
        state.publisher.release()
        tellRelays(event, &state)
        switch reason {
        case .finished where state.life.isLeaving, .shutdown where state.life.isLeaving: turn(.lost(reason), &state)
        case .finished where endRule(state) != .publisher && !state.life.isWithoutMedia: turn(.stopped(reason), &state)
        case .finished, .shutdown: turn(.ended(reason), &state)
        case .connectionLost, .failed, .replaced: turn(.lost(reason), &state)
        }
        return .accepted
      case .sample, .clock, .progress, .discontinuity: break
      }
      if let violation = state.publisher.violation(about: event, now: now) {
        logger.warning("the publication is ended: \(violation)")
        state.publisher.release()
        turn(.lost(.failed(violation)), &state)
        return .closed(.failed(violation))
      }
      if case .sample = event {
        judgePace(&state)
        state.life.epoch.noteArrival(of: state.publisher.lastStep, now: now)
      }
      do {
        tellRelays(event, &state)
        let passed = passOnAir(event, &state)
        over = passed.over
        for event in passed.events { try feed(event, &state) }
        return .accepted
      } catch {
        logger.error("the stream ends, because its media cannot be stored: \(error)")
        state.publisher.release()
        turn(.ended(.failed("\(error)")), &state)
        return .closed(.failed("the server has no memory for this stream: \(error)"))
      }
    }
  }

  /// Gives an event of what is on air to everybody.
  func feed(_ event: MediaEvent, _ state: inout State) throws(StorageError) {
    let version = state.life.epoch.window.version
    let rungs = state.life.epoch.rungs.versions
    let shifted = state.life.epoch.shift(event)
    addPlayableAudio(for: shifted, &state)
    let stored = try state.life.epoch.take(shifted)
    feedLadder(shifted, &state)
    state.subscribers.samples.receive(shifted)
    _ = state.subscribers.feed(state.life.epoch.rungs, since: rungs)
    guard !stored.isEmpty else {
      boundPending(&state)
      if state.life.epoch.window.version != version { change(state.life) }
      return
    }
    boundMemory(&state)
    if state.life.wantsKeyFrame(
      after: state.life.epoch.settings.segmentTarget, isAwaited: state.subscribers.waiting.isAwaited(.release),
      of: state.air.isStoodIn ? nil : state.publisher.holder?.keyFrames)
    {
      if !state.air.isStoodIn { state.publisher.holder?.askForKeyFrame?() }
    }
    publish(stored, &state)
  }

  /// The publisher is connected.
  func connected(_ token: PublicationToken) {
    state.withLock { if $0.publisher.holder?.token == token { $0.publisher.connect() } }
  }

  /// Counts the unfinished messages of a publication with the stream's media.
  func hold(unfinished bytes: Int, of token: PublicationToken) {
    state.withLock { state in
      guard state.publisher.holder?.token == token else { return }
      state.publisher.holds(unfinished: bytes)
      if boundMemory(&state) { stamp.change() }
    }
  }

  /// Keeps the figures of the publisher's connection.
  func measured(_ figures: LinkFigures, from token: PublicationToken) {
    state.withLock { if $0.publisher.holder?.token == token { $0.publisher.measured(figures) } }
  }

  /// Stores the pending media of the publication; the epoch continues.
  func interrupt(_ state: inout State) {
    state.life.transcoded = []
    state.life.transcoder?.drain()
    state.life.audioTranscoder?.drain()
    let rungs = state.life.epoch.rungs.versions
    do {
      publish(try state.life.epoch.interrupt(), &state)
    } catch {
      logger.error("cannot store the last fragment before the interruption: \(error)")
    }
    _ = state.subscribers.feed(state.life.epoch.rungs, since: rungs)
  }

  /// What happens when the publisher stops.
  private func endRule(_ state: borrowing State) -> StreamSettings.EndRule {
    state.end.rule.holding(isOfOneName: state.end.isOfOneName, isHeld: state.life.isHeld)
  }

  /// Ends the stream when its publisher has not returned in time. The registry calls it regularly. Returns false when the
  /// stream has ended and nothing of it is available any more. `present` are the name's settings now: a stream that waits may have
  /// had its own for months.
  func tend(by present: StreamSettings? = nil) -> Bool {
    let now = clock.monotonic()
    return state.withLock { state in
      if let present { state.end = (present.end, present.isOfOneName) }
      if state.life.forgetPrevious(now: now) { stamp.change() }
      state.subscribers.waiting.giveUp(now: now) { state.life.view() }
      let age = now &- state.life.phaseSince
      switch state.life.phase {
      case .starting, .live: return true
      case .reconnecting:
        if age >= LiveWindow.firstGapAfter.nanoseconds, !state.air.isStoodIn { beginOutage(&state) }
        if age >= settings.reconnectWindow.nanoseconds, state.turns.pending == nil {
          let reason = EndReason.connectionLost("the publisher did not return in time")
          if endRule(state) == .publisher {
            logger.notice("ended, because its publisher did not return in time")
            turn(.ended(reason), &state)
          } else {
            turn(.stopped(reason), &state)
          }
        }
        return true
      case .offAir:
        if age >= LiveWindow.firstGapAfter.nanoseconds, !state.air.isStoodIn { beginOutage(&state) }
        let reason: String? =
          switch endRule(state) {
          case .publisher: "nothing lets it wait any longer: its settings or its key have changed"
          case .linger(let time):
            now &- (state.life.offAirSince ?? now) >= time.nanoseconds ? "no publisher came in time" : nil
          case .never: nil
          }
        if let reason, state.turns.pending == nil {
          logger.notice("ended: \(reason)")
          turn(.ended(.connectionLost(reason)), &state)
        }
        return true
      case .ended:
        let isOver = age >= StreamSettings.endedAvailability.nanoseconds
        if isOver { stamp.change() }
        return !isOver
      }
    }
  }

  private func beginOutage(_ state: inout State) {
    let rungs = state.life.epoch.rungs.versions
    guard state.life.epoch.beginOutage() else { return }
    publish([], &state)
    _ = state.subscribers.feed(state.life.epoch.rungs, since: rungs)
  }

  /// Ends a publication whose key no longer gives the right to the name. The stream waits for another publisher.
  func endRevoked(unless isValid: (Secret) -> Bool) {
    state.withLock { state in
      // A stream that waits does so because of its last publisher's key.
      if state.publisher.holder == nil, let key = state.publisher.lastKey, !isValid(key) { state.life.isHeld = false }
    }
    let isOver = dismiss(.failed("the key that it was published with has been revoked")) { holder in
      holder.key.map { !isValid($0) } ?? false
    }
    if let isOver { logger.notice("the publication of \(isOver.remoteAddress) is ended: its key has been revoked") }
  }

  /// Ends a publication for a reason of the server's, if it is still the stream's. The stream waits for another publisher.
  func end(_ token: PublicationToken, because reason: String) -> Bool {
    guard dismiss(.failed(reason), where: { $0.token == token }) != nil else { return false }
    logger.warning("the publication is ended: \(reason)")
    return true
  }

  private func dismiss(
    _ reason: EndReason, where applies: (PublisherSlot.Holder) -> Bool
  ) -> PublisherSlot.Holder? {
    let former = state.withLock { state -> PublisherSlot.Holder? in
      guard let holder = state.publisher.holder, applies(holder) else { return nil }
      let former = state.publisher.dismiss(reason)
      tellRelays(.end(reason), &state)
      turn(.lost(reason), &state)
      return former
    }
    former?.evict(reason)
    return former
  }

  /// Ends the stream and its publication now.
  func shutDown() {
    let former = state.withLock { state in
      let former = state.publisher.release()
      turn(.ended(.shutdown), &state)
      makeTurns(&state)
      return former
    }
    former?.evict(.shutdown)
  }

  func end(_ reason: EndReason, _ state: inout State) {
    guard state.life.phase != .ended else { return }
    stamp.change()
    let rungs = state.life.epoch.rungs.versions
    do {
      publish(try state.life.epoch.end(reason), &state)
    } catch {
      logger.error("cannot store the last fragment: \(error)")
      state.subscribers.deliver(.end(reason))
    }
    // After the last events, which are recorded like all others.
    stateStore?.forget(name)
    state.subscribers.samples.receive(.end(reason))
    state.subscribers.end()
    _ = state.subscribers.feed(state.life.epoch.rungs, since: rungs)
    finishLadder(&state)
    state.life.enter(.ended, now: clock.monotonic())
    tellRelays(.end(reason), &state)
    // Its next event is answered by the end.
    state.dropStandIn()
    wake(&state)
  }

  // MARK: Sinks and subscribers

  private func publish(_ events: [StoredEvent], _ state: inout State) {
    change(state.life)
    remember(events, state.life)
    for event in events {
      state.subscribers.deliver(event)
      switch event {
      case .fragment(let fragment):
        if !fragment.fragment.isAside {
          state.publisher.counters.shortParts.take(
            fragment.fragment.end - fragment.fragment.start, segment: fragment.sequenceNumberOfSegment,
            target: state.life.epoch.window.partTarget)
        }
        guard let due = state.life.epoch.anchor?.wallTime(at: fragment.fragment.end) else { continue }
        state.publisher.counters.partDelay.add(nanoseconds: clock.wallTime &- due)
      case .segmentEnd:
        state.life.epoch.alignTracks(at: state.subscribers.sinks.compactMap(\.splitsAt).min())
        if state.subscribers.sinks.contains(where: \.tellsDates) { state.life.epoch.isDated = true }
      case .initialization, .clock, .redated, .discontinuity, .end: break
      }
    }
    state.subscribers.feed(state.life.epoch.window)
    if state.life.phase == .starting, state.life.epoch.window.hasBegun {
      state.life.enter(.live, now: clock.monotonic())
    }
    let target = state.life.epoch.settings.segmentTarget
    if let warning = state.warnings.judge(state.life.epoch, segmentTarget: target, of: state.publisher.keyFrames) {
      logger.warning("\(warning)")
      tell(warning, state)
    }
    wake(&state)
  }

  func wake(_ state: inout State) {
    guard !state.subscribers.waiting.isEmpty else { return }
    let expected = state.life.expectedRungs
    state.subscribers.waiting.wake(now: clock.monotonic(), with: { state.life.view() }) {
      state.life.isMet($0, expecting: expected) || state.life.isOver($0)
    }
  }

  // MARK: Views

  package var view: StreamView { state.withLock { $0.life.view() } }

  /// The view of an epoch that is still available.
  package func view(ofEpoch id: String) -> StreamView? { state.withLock { $0.life.view(ofEpoch: id) } }

  /// The view when the condition holds, nothing more can come, or the time is over. At once when there is nothing to wait for.
  package func wait(
    for condition: WaitQueue.Condition, on eventLoop: any EventLoop, atMost time: MediaTime
  ) -> Eventual<StreamView> {
    let now = clock.monotonic()
    return state.withLock { state in
      guard !state.life.isOver(condition), !state.life.hasLetGo,
        !state.life.isMet(condition, expecting: state.life.expectedRungs)
      else { return .now(state.life.view()) }
      return .later(
        state.subscribers.waiting.add(condition, on: eventLoop, now: now, deadline: now &+ time.nanoseconds))
    }
  }

  /// EXT-X-TARGETDURATION of the current epoch, in seconds; nil until it is decided. Read without the lock, because each response
  /// to a viewer needs it.
  package var targetDuration: Int? {
    let target = target.load(ordering: .relaxed)
    return target == 0 ? nil : target
  }
}
