internal import FMP4
internal import Ingest
internal import Logging
internal import NIOCore
internal import Synchronization

/// A stream by its name: it outlives its publishers. All of its state lies behind one lock, held for microseconds:
/// by the publisher's thread while an event is stored, by viewers while they copy the window's value.
final class LiveStream: Sendable {
  let name: StreamName
  let settings: StreamSettings
  let clock: SteadyClock
  let logger: Logger
  private let epochIDs: EpochID
  /// How workers come to life that make the ladder.
  let workers: WorkerLauncher
  /// Remembers the epoch for the next process; nil where none goes on with it.
  let ledger: StreamLedger?
  /// Bounds what it keeps in memory.
  let memory: WindowBudget
  /// Holds the bytes of all its epochs.
  private let store: SegmentStore
  let state: Mutex<State>
  /// Changes with whatever an answer to a viewer may depend on, while the lock is held.
  let stamp = ChangeStamp()

  /// Identifies one publication of this stream.
  struct PublicationToken: Hashable, Sendable {
    fileprivate let number: Int
  }

  struct Holder {
    var token: PublicationToken
    var protocolName: String
    var remoteAddress: String
    /// As `PublishRequest.host`.
    var host: String?
    var evict: @Sendable (EndReason) -> Void
    var askForKeyFrame: (@Sendable () -> Void)?
    var lastReceived: Int64
  }

  struct State {
    var epoch: Epoch
    /// The epoch before, while it is still available.
    var previous: (epoch: Epoch, until: Int64)?
    var phase = StreamPhase.starting
    var phaseSince: Int64
    var startedAt: Int64
    /// When its last publisher left, once it has ended; monotonic, in nanoseconds.
    var offAirSince: Int64?
    var holder: Holder?
    var lastHolder: (protocolName: String, remoteAddress: String)
    /// As `PublishRequest.host`, of the last publisher.
    var lastHost: String?
    /// The same where that showed no key.
    var unprovenHost: String?
    var lastTakeover: Int64?
    var publications = 0
    var bounds: PublicationBounds
    var sinks: [any FragmentSink] = []
    /// Those of epochs that are over.
    var closing = ClosingSinks()
    /// The epoch that `sinks` were made for: whoever was detached since then stays away.
    var sinksEpoch = ""
    var recordingWish = PublishRequest.RecordingWish.asConfigured
    /// The fragments of the newest segment, if decoding can start with it, for a recording that begins now.
    var newestSegment: [PublishedFragment] = []
    var audiences: [ObjectIdentifier: (audience: LoopAudience, count: Int)] = [:]
    /// By event loop, of each window.
    var followers: [FollowerKey: Followed] = [:]
    /// Counts fragments for those who join between two of them.
    var position = 0
    var waiting = WaitingRoom()
    /// What has come since the name came up, and how far it reaches now.
    var counters = StreamCounters()
    var ends = TrackEnds()
    var warnings: [String] = []
    /// The distance of key frames that was warned of, and whether segments were cut without one then.
    var toldGroup: (length: MediaTime, isCut: Bool)?
    /// What is wrong with the present publication.
    var publicationWarnings: [PublicationWarning] = []
    var knownGroup: MediaTime?
    /// What whoever renders has made of `epoch`; nil until somebody did.
    var renderings: (any EpochRenderings)?
    /// Makes the rungs of the current epoch, from its first picture on.
    var transcoder: LadderTranscoder?
    /// Makes its sound in another codec. A worker of its own: what ends the picture's leaves the sound alone.
    var soundTranscoder: LadderTranscoder?
    /// The rungs are interrupted, and can begin again with the source's next segment.
    var awaitsSegment = false
    /// The segment in which its encoder was asked for a key frame.
    var hastenedSegment = 0
    /// This process goes; the next one goes on with the epoch.
    var isLeaving = false
    /// Nobody is kept waiting any more.
    var hasLetGo = false
    /// The version of the first init segment since this process has the epoch.
    var firstInit: Int?

    /// The epoch of that name, if it is still available.
    func epoch(_ id: String) -> Epoch? {
      if epoch.id == id { return epoch }
      return previous.flatMap { $0.epoch.id == id ? $0.epoch : nil }
    }

    mutating func enter(_ phase: StreamPhase, now: Int64) {
      guard self.phase != phase else { return }
      offAirSince = phase != .ended ? nil : self.phase == .reconnecting ? phaseSince : now
      self.phase = phase
      phaseSince = now
    }
  }

  init(
    name: StreamName, settings: StreamSettings, clock: SteadyClock, epochIDs: EpochID, logger: Logger,
    knownGroup: MediaTime?, workers: WorkerLauncher, ledger: StreamLedger? = nil, memory: WindowBudget = .unlimited,
    store: SegmentStore = SegmentStore(name: SegmentStore.ofStreams), resuming record: EpochRecord? = nil
  ) {
    self.name = name
    self.store = store
    self.settings = settings
    self.clock = clock
    self.epochIDs = epochIDs
    self.workers = workers
    self.ledger = ledger
    self.memory = memory
    self.logger = logger.of(name)
    let wall = clock.wallNanoseconds
    let epoch =
      record.map { Epoch(resuming: $0, settings: settings, store: store) }
      ?? Epoch(id: epochIDs.next(wallNanoseconds: wall), settings: settings, store: store, knownGroup: knownGroup)
    state = Mutex(
      State(
        epoch: epoch, phase: record == nil ? .starting : .reconnecting, phaseSince: clock.monotonicNanoseconds(),
        startedAt: record?.startedAt ?? wall, lastHolder: ("", ""), bounds: PublicationBounds(settings.bounds),
        knownGroup: record?.longestGroup ?? knownGroup))
  }

  // MARK: Publishers

  /// What became of a publisher's wish to publish.
  enum Admission: Sendable {
    /// `evicted` is told that it was replaced, outside of the stream's lock.
    case admitted(PublicationToken, evicted: (@Sendable (EndReason) -> Void)?)
    case refused(PublishRefusal)
  }

  /// Gives the name to a publisher, by the rules of takeover: with the name's own key the newest wins, at most once in five
  /// seconds; else a holder that is still sending keeps the name, but against its own address with a key for all names.
  /// `makeSinks` is called with the epoch's name when the publisher begins one.
  func admit(
    _ request: PublishRequest, right: PublishRight, makeSinks: (_ epoch: String) -> [any FragmentSink]
  ) -> Admission {
    let now = clock.monotonicNanoseconds()
    return state.withLock { state in
      stamp.change()
      let evicted = state.holder?.evict
      if let holder = state.holder {
        let refusal = refusal(
          of: request, right: right, holder: holder, lastTakeover: state.lastTakeover, now: now)
        if let refusal { return .refused(refusal) }
      }
      guard state.bounds.begin(now: now) else {
        return .refused(.tooManyBreaks(stream: name, retryAfterSeconds: state.bounds.secondsUntilBreak))
      }
      if let holder = state.holder {
        state.lastTakeover = now
        logger.warning(
          "\(request.protocolName) publisher \(request.remoteAddress) takes over from \(holder.remoteAddress)")
        interrupt(&state)
      }
      if state.phase == .ended { renewEpoch(&state, now: now) }
      state.recordingWish = request.recording
      if state.sinksEpoch != state.epoch.id {
        state.sinksEpoch = state.epoch.id
        state.sinks = canKeep(state.closing.count()) ? makeSinks(state.epoch.id) : []
      }
      state.publications += 1
      state.counters.begin(request.protocolName)
      state.publicationWarnings = []
      let token = PublicationToken(number: state.publications)
      state.epoch.startPublication()
      state.holder = Holder(
        token: token, protocolName: request.protocolName, remoteAddress: request.remoteAddress, host: request.host,
        evict: request.onEviction, askForKeyFrame: request.onKeyFrameWanted, lastReceived: now)
      state.lastHolder = (request.protocolName, request.remoteAddress)
      state.lastHost = request.host
      state.unprovenHost = right == .unproven ? request.host : nil
      state.enter(state.epoch.hasBegun ? .live : .starting, now: now)
      return .admitted(token, evicted: evicted)
    }
  }

  private func renewEpoch(_ state: inout State, now: Int64) {
    state.previous = (state.epoch, now &+ StreamSettings.endedAvailability.nanoseconds)
    let wall = clock.wallNanoseconds
    dismissRungs(&state)
    state.epoch = Epoch(
      id: epochIDs.next(wallNanoseconds: wall), settings: settings, store: store,
      knownGroup: state.epoch.longestGroup ?? state.knownGroup,
      mayPromiseIndependence: state.epoch.window.keepsIndependence)
    state.startedAt = wall
    state.warnings = []
    state.toldGroup = nil
    state.sinks = []
    state.hastenedSegment = 0
    state.firstInit = nil
    state.renderings = state.renderings?.next()
  }

  /// Takes an event of a publication. `.closed` once the publication no longer holds the name.
  func receive(_ event: MediaEvent, from token: PublicationToken) -> SinkVerdict {
    let now = clock.monotonicNanoseconds()
    return state.withLock { state in
      guard state.holder?.token == token else {
        return .closed(state.phase == .ended || state.isLeaving ? .shutdown : .replaced)
      }
      switch event {
      case .progress: break  // of the clock, not of the publisher
      case .sample(let sample):
        state.holder?.lastReceived = now
        state.count(sample)
      case .discontinuity:
        state.holder?.lastReceived = now
        state.counters.intake.jumps &+= 1
      case .tracks(let tracks):
        state.holder?.lastReceived = now
        state.ends.use(tracks)
        state.publicationWarnings.removeAll { warning in tracks.contains { warning == .neverCame($0.kind) } }
      default: state.holder?.lastReceived = now
      }
      if case .end(let reason) = event {
        state.holder = nil
        switch reason {
        case .finished, .shutdown:
          if state.isLeaving { lose(reason, &state, now: now) } else { end(reason, &state) }
        case .connectionLost, .failed, .replaced: lose(reason, &state, now: now)
        }
        return .accepted
      }
      if let complaint = state.bounds.complaint(about: event, end: state.ends.reach, now: now) {
        logger.warning("the publication is ended: \(complaint)")
        state.holder = nil
        lose(.failed(complaint), &state, now: now)
        return .closed(.failed(complaint))
      }
      if case .sample = event, state.bounds.pace.isNewSecond { judgePace(&state) }
      do {
        let version = state.epoch.window.version
        let rungs = state.epoch.rungs.map(\.window.version)
        let shifted = state.epoch.shift(event)
        let stored = try state.epoch.take(shifted)
        feedLadder(shifted, &state)
        _ = feedRungs(since: rungs, &state)
        if !stored.isEmpty { boundMemory(&state) }
        if !stored.isEmpty { hastenSegment(&state) }
        if !stored.isEmpty { publish(stored, &state) } else if state.epoch.window.version != version { stamp.change() }
        return .accepted
      } catch {
        logger.error("the stream ends: \(error)")
        state.holder = nil
        end(.failed("\(error)"), &state)
        return .closed(.failed("the server has no memory for this stream: \(error)"))
      }
    }
  }

  /// Takes note of what is wrong with a publication, for the API.
  func warn(_ warning: PublicationWarning, from token: PublicationToken) {
    state.withLock { state in
      guard state.holder?.token == token, !state.publicationWarnings.contains(warning) else { return }
      state.publicationWarnings.append(warning)
    }
  }

  /// What was wrong with a publication is over.
  func withdraw(_ warning: PublicationWarning, from token: PublicationToken) {
    state.withLock { state in
      guard state.holder?.token == token else { return }
      state.publicationWarnings.removeAll { $0 == warning }
    }
  }

  /// Takes note of a sample that came and could not be used.
  func lost(_ kind: MediaKind, from token: PublicationToken) {
    state.withLock { state in
      guard state.holder?.token == token else { return }
      switch kind {
      case .video: state.counters.intake.lostPictures &+= 1
      case .audio: state.counters.intake.lostSoundFrames &+= 1
      }
    }
  }

  private func lose(_ reason: EndReason, _ state: inout State, now: Int64) {
    stamp.change()
    interrupt(&state)
    guard state.epoch.initSegment != nil || state.epoch.window.isResumed else { return end(reason, &state) }
    state.enter(.reconnecting, now: now)
  }

  /// Brings out what the publication left inside; the epoch goes on.
  func interrupt(_ state: inout State) {
    state.transcoder?.drain()
    state.soundTranscoder?.drain()
    let rungs = state.epoch.rungs.map(\.window.version)
    do {
      publish(try state.epoch.interrupt(), &state)
    } catch {
      logger.error("the last fragment before the interruption is lost: \(error)")
    }
    _ = feedRungs(since: rungs, &state)
  }

  /// Ends the stream when its publisher has not come back in time. Called now and then by the registry.
  /// Returns false once the stream is over and nothing of it is available any more.
  func tend() -> Bool {
    let now = clock.monotonicNanoseconds()
    return state.withLock { state in
      if let previous = state.previous, previous.until <= now {
        state.previous = nil
        stamp.change()
      }
      state.waiting.giveUp(now: now)
      let age = now &- state.phaseSince
      switch state.phase {
      case .starting, .live: return true
      case .reconnecting:
        if age >= settings.reconnectWindow.nanoseconds {
          logger.notice("ended, its publisher did not come back")
          end(.connectionLost("the publisher did not come back"), &state)
        }
        return true
      case .ended:
        let isOver = age >= StreamSettings.endedAvailability.nanoseconds
        if isOver { stamp.change() }
        return !isOver
      }
    }
  }

  /// Ends the stream now, whoever publishes it.
  func shutDown() {
    let evict = state.withLock { state -> (@Sendable (EndReason) -> Void)? in
      let evict = state.holder?.evict
      state.holder = nil
      end(.shutdown, &state)
      return evict
    }
    evict?(.shutdown)
  }

  private func end(_ reason: EndReason, _ state: inout State) {
    guard state.phase != .ended else { return }
    stamp.change()
    let rungs = state.epoch.rungs.map(\.window.version)
    do {
      publish(try state.epoch.end(reason), &state)
    } catch {
      logger.error("the last fragment is lost: \(error)")
      for sink in state.sinks { sink.receive(.end(reason)) }
    }
    // Behind the last events, which are noted as all others are.
    ledger?.forget(name)
    dismissAudiences(&state)
    dismissFollowers(&state)
    _ = feedRungs(since: rungs, &state)
    finishLadder(&state)
    state.closing.add(state.sinks)
    state.sinks = []
    state.newestSegment = []
    state.knownGroup = state.epoch.longestGroup ?? state.knownGroup
    let now = clock.monotonicNanoseconds()
    state.enter(.ended, now: now)
    state.waiting.wakeAll(now: now)
  }

  // MARK: What follows the stream

  private func publish(_ events: [StoredEvent], _ state: inout State) {
    stamp.change()
    remember(events, state)
    for event in events {
      for sink in state.sinks { sink.receive(event) }
      switch event {
      case .fragment(let fragment):
        state.position += 1
        state.noteNewest(fragment)
        if let due = state.epoch.anchor?.wallNanoseconds(at: fragment.fragment.end) {
          state.counters.partDelay.add(nanoseconds: clock.wallNanoseconds &- due)
        }
        for (_, entry) in state.audiences where entry.count > 0 && !fragment.shown.isEmpty {
          entry.audience.deliver(fragment.shown, position: state.position)
        }
      case .initialization(let initSegment):
        state.newestSegment = []
        // A response has one init segment: it ends where the parameters change. Before the first, it waits for it.
        if state.firstInit == nil {
          state.firstInit = initSegment.version
          state.position += 1
          for (_, entry) in state.audiences {
            entry.audience.deliver([.bytes(initSegment.interleaved)], position: state.position)
          }
        } else {
          dismissAudiences(&state)
        }
      case .discontinuity: state.newestSegment = []
      case .segmentEnd:
        state.epoch.alignTracks(at: state.sinks.compactMap(\.splitsAt).min())
        if state.sinks.contains(where: \.tellsDates) { state.epoch.isDated = true }
      case .clock, .redated, .end: break
      }
    }
    feedFollowers(of: state.epoch.window, rung: nil, &state)
    if state.phase == .starting, state.epoch.hasBegun { state.enter(.live, now: clock.monotonicNanoseconds()) }
    warnOfLongGroups(&state)
    wake(&state)
  }

  func dismissAudiences(_ state: inout State) {
    for (_, entry) in state.audiences { entry.audience.finish() }
    state.audiences = [:]
  }

  func dismissFollowers(_ state: inout State) {
    for (key, followed) in state.followers where key.rung == nil {
      followed.followers.finish()
      state.followers[key] = nil
    }
  }

  private func warnOfLongGroups(_ state: inout State) {
    guard let group = state.epoch.longestGroup, group.seconds > settings.segmentTarget.seconds * 1.5 else { return }
    let isCut = state.epoch.window.isCutWithoutKeyFrame
    if let told = state.toldGroup, told.isCut || !isCut { return }
    state.toldGroup = (group, isCut)
    let distance = Decimals.fixed(group, digits: 1)
    let warning =
      (isCut
        ? "key frames are \(distance) s apart or more, so segments begin without one and players join late; set the"
        : "key frames are \(distance) s apart, so segments and latency are as long; set the")
      + " encoder's key frame interval to \(Decimals.fixed(settings.segmentTarget, digits: 0)) s"
    state.warnings = [warning]
    logger.warning("\(warning)")
  }

  func wake(_ state: inout State) {
    guard !state.waiting.isEmpty else { return }
    let expected = state.expectedRungs
    state.waiting.wake(now: clock.monotonicNanoseconds()) { Self.isMet($0, state.epoch, expected) }
  }

  private static func isMet(
    _ condition: WaitingRoom.Condition, _ epoch: borrowing Epoch, _ expected: [String]
  ) -> Bool {
    switch condition {
    case .beginning: epoch.hasBegun && epoch.hasRungs(expected, withSegments: false)
    case .release: epoch.isReleased && epoch.hasRungs(expected, withSegments: true)
    case .part(let position, let rendition):
      epoch.window(of: rendition)?.hasReached(position, in: rendition) ?? true
    case .segment(let number, let rendition):
      epoch.window(of: rendition)?.hasReached(.segment(number), in: rendition) ?? true
    }
  }

  /// A future that is fulfilled when the condition is met, the stream ends or the time is over; nil when there is
  /// nothing to wait for.
  func wait(
    for condition: WaitingRoom.Condition, on eventLoop: any EventLoop, atMost time: MediaTime
  ) -> EventLoopFuture<Void>? {
    let now = clock.monotonicNanoseconds()
    return state.withLock { state in
      guard state.phase != .ended, !state.hasLetGo, !Self.isMet(condition, state.epoch, state.expectedRungs) else {
        return nil
      }
      return state.waiting.add(condition, on: eventLoop, now: now, deadline: now &+ time.nanoseconds)
    }
  }
}
