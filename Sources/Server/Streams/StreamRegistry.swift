package import Base
package import Control
internal import FMP4
package import Logging
internal import NIOCore
package import Publishing
internal import Storage
internal import Synchronization

/// All streams by name. Admits publishers.
package final class StreamRegistry: PublishGate {
  /// The settings of a stream that begins.
  let settings: @Sendable (StreamName) -> StreamSettings
  private let workers: WorkerLauncher
  private let authorizer: Authorizer
  private let descriptors: StreamDescriptors
  private let memory: WindowBudget
  private let clock: SteadyClock
  let logger: Logger
  private let makeSinks:
    @Sendable (_ stream: StreamName, _ epoch: String, _ requested: PublishRequest.RecordingMode, _ isNew: Bool)
      -> [any FragmentSink]
  let standIns: StandIns
  private let epochIDs = EpochID()
  /// Stores the streams for the next process; nil when no process resumes them.
  private let stateStore: StreamStateStore?
  private let events: EventLog?
  /// Woken when a stream begins.
  private let waker: Waker
  private let state: RankedMutex<State>
  private let refusals = Mutex(RecentRefusals())
  /// As in `State`, for probes: they wait for no lock that a thousand streams are sorted under.
  private let isShuttingDown = Atomic(false)

  /// The number of streams with their own series in `/metrics`: the first to be created. The others are added up. With 50
  /// streams, all recorded and with a ladder, there are fewer than 2,000 series, a small number for a Prometheus server.
  static let namedInMetrics = 50

  /// Streams whose video is encoded for viewers by WebRTC at a time: any viewer may begin that.
  static let mostEncoders = max(1, System.coreCount)

  private struct State {
    var streams: [StreamName: LiveStream] = [:]
    var names: NameAllowance
    var holdings = StreamsByAddress()
    /// Sinks of removed streams that still have open files.
    var closing = ClosingSinks()
    var groups = KnownGOPDurations()
    var isShuttingDown = false
    var rejections: [String: Int] = [:]
    /// The streams that `/metrics` names, and the counters of removed streams without a name there.
    var namedInMetrics: Set<StreamName> = []
    var departed = StreamCounters()
  }

  package init(
    settings: @escaping @Sendable (StreamName) -> StreamSettings, workers: WorkerLauncher = .ownProcess,
    authorizer: Authorizer? = nil, names: NameAllowance.Limits = NameAllowance.Limits(),
    descriptors: DescriptorBudget = .unlimited, memory: WindowBudget = .unlimited, room: WorkerRoom? = nil,
    sinksPerStream: Int = 0,
    clock: SteadyClock, logger: Logger,
    stateStore: StreamStateStore? = nil, events: EventLog? = nil, waker: Waker = Waker(),
    makeSinks: @escaping @Sendable (StreamName, String, PublishRequest.RecordingMode, Bool) -> [any FragmentSink]
  ) {
    self.settings = settings
    standIns = StandIns(settings: settings)
    self.workers = workers
    self.authorizer = authorizer ?? Authorizer(clock: clock)
    self.descriptors = StreamDescriptors(
      budget: descriptors, sinks: sinksPerStream, leftovers: memory.leftovers)
    self.room = room ?? descriptors.roomForWorkers
    roomForViewers = self.room.forViewers
    encoders = roomForViewers.limited(to: Self.mostEncoders)
    self.memory = memory
    state = RankedMutex(.registry, State(names: NameAllowance(names)))
    self.clock = clock
    self.logger = logger
    self.stateStore = stateStore
    self.events = events
    self.waker = waker
    self.makeSinks = makeSinks
    memory.onShortage { [weak self] name, bytes in
      // The caller holds another stream's lock.
      Task { self?.stream(name)?.shrink(to: bytes) }
    }
  }

  package func stream(_ name: StreamName) -> LiveStream? {
    state.withLock { $0.streams[name] }
  }

  /// Sorted by name.
  package var all: [LiveStream] {
    state.withLock { $0.streams.values.sorted { $0.name < $1.name } }
  }

  /// In the order of the streams' names.
  package var publisherSessions: [PublisherSession] { all.compactMap(\.publisherSession) }

  package func admit(_ request: PublishRequest) async throws(PublishRefusal) -> any MediaSink {
    do throws(PublishRefusal) {
      // A change that is told and not made yet comes first.
      await events?.ticket.written()
      let sink = try await admitInTime(request)
      // No media of the publisher is shown before its coming is written.
      await events?.ticket.written()
      return sink
    } catch {
      state.withLock { $0.rejections[error.code, default: 0] += 1 }
      note(RefusedPublication(error, of: request))
      await events?.ticket.written()
      throw error
    }
  }

  package func note(_ refused: RefusedPublication) {
    let now = clock.wallTime
    refusals.withLock { $0.add(refused, now: now) }
    events?.tell(
      .publisherRefused, of: refused.stream, by: refused.remoteAddress,
      ["protocol": .text(refused.protocolName), "reason": .text(refused.reason)])
  }

  /// Oldest first.
  package var recentRefusals: [RecentRefusals.Entry] { refusals.withLock { $0.entries } }

  private func admitInTime(_ request: PublishRequest) async throws(PublishRefusal) -> any MediaSink {
    let proof: Authorizer.Proof
    switch request.origin {
    case .server: proof = Authorizer.Proof(right: .anonymous)
    case .peer:
      let publishers = settings(request.stream).publishers
      guard publishers.admit(request.host) else { throw .addressNotAllowed }
      proof = try await authorizer.proof(of: request)
    }
    let holder = proof.right == .anonymous ? request.host : nil
    let reservation = try state.withLock { state throws(PublishRefusal) in
      try reserve(request, holder: holder, &state)
    }
    // Viewers that were told to leave may still hold the descriptors.
    if let reservation, !(await descriptors.budget.areFree()) {
      reservation.giveBack()
      throw descriptors.refusal(beside: state.withLock { $0.streams.count })
    }
    let admitted = try state.withLock { state throws(PublishRefusal) -> (LiveStream, PublisherSlot.Change)? in
      let known = state.streams[request.stream]
      do throws(PublishRefusal) {
        try check(request.stream, holder: holder, state)
        // A stream that is new refuses no publisher.
        if known == nil, reservation != nil { try makeRoom(for: request.stream, holder: holder, &state) }
      } catch {
        reservation?.giveBack()
        throw error
      }
      if known != nil { reservation?.giveBack() }
      guard let stream = known ?? reservation.map({ newStream(request, state.groups, $0.store) }) else { return nil }
      if known != nil, let holder {
        state.names.keep(request.stream, by: holder, now: clock.monotonic())
      }
      state.streams[request.stream] = stream
      if known == nil, state.namedInMetrics.count < Self.namedInMetrics {
        state.namedInMetrics.insert(request.stream)
      }
      let change = try admit(request, proof, to: stream, isNew: known == nil, beside: state.streams.count)
      if known != nil { try? makeRoom(for: request.stream, holder: holder, &state) }
      state.holdings.give(request.stream, to: holder, descriptors: descriptors.count(of: stream.settings))
      return (stream, change)
    }
    // The stream was removed in between.
    guard let (stream, change) = admitted else { return try await admitInTime(request) }
    waker.wake()
    change.former?.evict(.replaced)
    // A key that was revoked after it had been accepted, and before the stream could be found by its holder.
    endRevoked(stream)
    let token = change.token
    let account = memory.unfinished.open(request.stream, of: holder) { reason in
      // One that has left its stream may still hold something for others of its connection.
      if !stream.end(token, because: reason) { request.onEviction(.failed(reason)) }
    }
    return StreamPublication(stream: stream, token: token, account, anonymousHost: holder)
  }

  package func account(of stream: StreamName, end: @escaping @Sendable (_ reason: String) -> Void) -> (any HeldBytes)? {
    let account = memory.unfinished.open(stream, of: nil, end: end)
    // Its publication waits for the start, and this one does not.
    account.begin()
    return account
  }

  /// Gives the stream to the publisher. A new epoch has the present settings, which may need more descriptors.
  private func admit(
    _ request: PublishRequest, _ proof: Authorizer.Proof, to stream: LiveStream, isNew: Bool, beside streams: Int
  ) throws(PublishRefusal) -> PublisherSlot.Change {
    let former = stream.settings
    let next = !isNew && stream.hasEnded ? settings(stream.name) : former
    guard descriptors.exchange(former, for: next) else { throw descriptors.refusal(beside: streams) }
    do throws(PublishRefusal) {
      return try stream.admit(
        request, proof, takeover: settings(stream.name).publishers.takeover, settings: next
      ) { epoch, isNew in
        makeSinks(request.stream, epoch, request.recording, isNew)
      }
    } catch {
      _ = descriptors.exchange(next, for: former)
      throw error
    }
  }

  /// Reserves descriptors for an unknown name; viewers may still hold some of them. Nil for a known name. `holder` is the
  /// publisher's address when it has no key.
  private func reserve(
    _ request: PublishRequest, holder: String?, _ state: inout State
  ) throws(PublishRefusal) -> StreamDescriptors.Reservation? {
    try check(request.stream, holder: holder, state)
    guard state.streams[request.stream] == nil else { return nil }
    if let holder, let seconds = state.names.take(request.stream, by: holder, now: clock.monotonic()) {
      throw .tooManyNames(limit: state.names.limits.names, retryAfterSeconds: seconds)
    }
    return try reserve(settings(request.stream), &state)
  }

  /// Reserves descriptors. Where there are too few, streams without media give way, but only if those that they have are enough.
  private func reserve(
    _ settings: StreamSettings, _ state: inout State
  ) throws(PublishRefusal) -> StreamDescriptors.Reservation {
    if let reservation = descriptors.reserve(settings) { return reservation }
    var vacant = VacantStreams(of: state.streams.values)
    if descriptors.budget.roomForStreams + vacant.freed(descriptors) >= descriptors.count(of: settings) {
      while giveWay(vacant.next(), &state) {
        if let reservation = descriptors.reserve(settings) { return reservation }
      }
    }
    throw descriptors.refusal(beside: state.streams.count)
  }

  /// Throws where a name cannot be a stream now, though streams without media gave way. Ends none of them.
  private func check(_ stream: StreamName, holder: String?, _ state: State) throws(PublishRefusal) {
    var left = state
    try makeRoom(for: stream, holder: holder, &left) { vacant, left in
      guard let name = vacant?.name else { return false }
      left.streams[name] = nil
      left.holdings.give(name, to: nil, descriptors: 0)
      return true
    }
  }

  /// Ends streams without media until a name can be a stream. Throws where it cannot. To be called where nothing else refuses the
  /// publisher.
  private func makeRoom(for stream: StreamName, holder: String?, _ state: inout State) throws(PublishRefusal) {
    try makeRoom(for: stream, holder: holder, &state, giveWay)
  }

  /// - Parameter free: frees the place of a stream; false if there is none.
  private func makeRoom(
    for stream: StreamName, holder: String?, _ state: inout State, _ free: (LiveStream?, inout State) -> Bool
  ) throws(PublishRefusal) {
    guard refusal(of: stream, holder: holder, state) != nil else { return }
    var vacant = VacantStreams(of: state.streams.values.filter { $0.name != stream })
    while let refusal = refusal(of: stream, holder: holder, state) {
      let next: LiveStream? =
        switch refusal {
        case .tooManyStreams: vacant.next()
        case .tooManyOfAddress: vacant.next(within: holder)
        default: nil
        }
      guard free(next, &state) else { throw refusal }
    }
  }

  /// A stream without media gives way, unless it has some by now. False if there is none.
  private func giveWay(_ stream: LiveStream?, _ state: inout State) -> Bool {
    guard let stream else { return false }
    if stream.giveWay() { remove(stream, &state) }
    return true
  }

  /// Why a name cannot be a stream now; nil when it can.
  private func refusal(of stream: StreamName, holder: String?, _ state: State) -> PublishRefusal? {
    if state.isShuttingDown { return .shuttingDown }
    let limit = state.names.limits.streams
    if state.streams[stream] == nil, state.streams.count >= limit { return .tooManyStreams(limit: limit) }
    guard let holder else { return nil }
    let all = StreamsByAddress.Share(streams: limit, descriptors: descriptors.budget.streams)
    let count = descriptors.count(of: state.streams[stream]?.settings ?? settings(stream))
    guard !state.holdings.mayHold(stream, holder, descriptors: count, of: all) else { return nil }
    return .tooManyOfAddress(streams: state.holdings.streams(of: holder))
  }

  /// Ends the publications whose keys have been revoked.
  package func endRevoked() {
    for stream in all { endRevoked(stream) }
  }

  private func endRevoked(_ stream: LiveStream) {
    stream.endRevoked { authorizer.stillGives($0, rightTo: stream.name) }
  }

  /// Replaces the limits of names and streams.
  package func limit(by limits: NameAllowance.Limits) { state.withLock { $0.names.limits = limits } }

  /// For workers that settings do not tell of.
  private let room: WorkerRoom
  /// For those of them that make media because somebody watches by WebRTC.
  private let roomForViewers: WorkerRoom
  /// For those of these that encode video.
  private let encoders: WorkerRoom

  private func newStream(
    _ request: PublishRequest, _ groups: borrowing KnownGOPDurations, _ store: SegmentStore
  ) -> LiveStream {
    let settings = settings(request.stream)
    let measured = groups[request.stream]
    let known = if case .every(let interval) = request.keyFrames { MediaTime?.some(interval) } else { measured }
    return LiveStream(
      name: request.stream, settings: settings, clock: clock, epochIDs: epochIDs, logger: logger,
      knownGroup: known, promisedGroup: request.keyFrames.promised(for: settings, measured: measured),
      workers: workers, room: room, roomForViewers: roomForViewers, encoders: encoders,
      stateStore: stateStore, events: events, memory: memory, standIns: standIns,
      store: store)
  }

  /// Begins a stream that waits for its first publisher, unless it is there.
  func open(_ name: StreamName) throws(PublishRefusal) {
    let request = PublishRequest(
      stream: name, key: nil, protocolName: "", remoteAddress: "", recording: .whenAsked, origin: .server
    ) { _ in }
    let begun = try state.withLock { state throws(PublishRefusal) -> LiveStream? in
      guard let reservation = try reserve(request, holder: nil, &state) else { return nil }
      do throws(PublishRefusal) {
        try makeRoom(for: name, holder: nil, &state)
      } catch {
        reservation.giveBack()
        throw error
      }
      let stream = newStream(request, state.groups, reservation.store)
      state.streams[name] = stream
      if state.namedInMetrics.count < Self.namedInMetrics { state.namedInMetrics.insert(name) }
      return stream
    }
    begun?.open { epoch, isNew in makeSinks(name, epoch, request.recording, isNew) }
    waker.wake()
  }

  /// The distances of key frames that earlier processes measured. To be called before publishers come.
  package func know(_ groups: KnownGOPDurations) { state.withLock { $0.groups = groups } }

  /// Resumes streams that the last process left open: they wait for their publishers as after a lost connection. A stream begins
  /// anew when the current settings contradict what its players were told.
  package func resume(_ entries: [StreamName: StreamStateEntry]) {
    // The last process told of the end, and did not come to make it.
    let ended = events?.endedEpochs ?? []
    for (name, entry) in entries {
      guard !ended.contains(entry.record.epoch) else {
        stateStore?.forget(name)
        continue
      }
      let settings = settings(name)
      guard entry.contract == settings.contract else {
        logger.of(name).notice("begins anew: the lengths or layouts in the settings have changed since the last run")
        stateStore?.forget(name)
        continue
      }
      guard let reservation = descriptors.reserve(settings) else {
        logger.of(name).warning(
          "is over: the server has no descriptors for it (ulimit -n is \(descriptors.budget.limit))")
        stateStore?.forget(name)
        continue
      }
      let record = entry.record.read(at: clock.wallTime)
      let stream = LiveStream(
        name: name, settings: settings, clock: clock, epochIDs: epochIDs, logger: logger, knownGroup: nil,
        workers: workers, room: room, roomForViewers: roomForViewers, encoders: encoders, stateStore: stateStore,
        events: events, memory: memory, standIns: standIns, store: reservation.store,
        resuming: record)
      state.withLock { state in
        state.streams[name] = stream
        if state.namedInMetrics.count < Self.namedInMetrics { state.namedInMetrics.insert(name) }
      }
      logger.of(name).notice("continues with segment \(entry.record.nextSequenceNumber) when its publisher returns")
    }
    tellOfRestart()
  }

  /// Tells what the end of the last process did to its streams, where it did not come to that.
  private func tellOfRestart() {
    let reason = "the server was started anew"
    for (name, left) in (events?.openStreams ?? [:]).sorted(by: { $0.key < $1.key }) {
      let known = StreamName(name).flatMap { stream($0) }
      if known?.epoch.id == left.epoch {
        guard left.kind != .streamInterrupted else { continue }
        events?.tell(
          .streamInterrupted, of: name, epoch: left.epoch, ["epoch": .text(left.epoch), "reason": .text(reason)])
      } else {
        events?.tell(.streamEnded, of: name, epoch: left.epoch, ["epoch": .text(left.epoch), "reason": .text(reason)])
      }
    }
  }

  /// Ends streams whose publisher did not return and removes ended ones. Call about once a second.
  package func tend() {
    defer { countClosing() }
    for stream in all {
      standIns.tend(stream)
      guard !stream.tend(by: settings(stream.name)) else { continue }
      state.withLock { state in
        // A publisher may have arrived in between: they are admitted under this lock.
        guard state.streams[stream.name] === stream, !stream.tend() else { return }
        remove(stream, &state)
      }
    }
  }

  private func remove(_ stream: LiveStream, _ state: inout State) {
    state.groups.remember(stream.knownGroup, of: stream.name)
    state.streams[stream.name] = nil
    state.closing.add(stream.closing)
    if let host = stream.lastHost { state.names.keep(stream.name, by: host, now: clock.monotonic()) }
    state.holdings.give(stream.name, to: nil, descriptors: 0)
    descriptors.giveBack(stream.settings)
    memory.release(stream.name)
    if state.namedInMetrics.remove(stream.name) == nil { state.departed += stream.status.counters }
  }

  /// No stream is there, and no ended one has open files: `tend` would find nothing.
  package var isIdle: Bool { state.withLock { $0.streams.isEmpty && $0.closing.count() == 0 } }

  /// Counts open files of ended streams, in addition to the descriptors of streams.
  private func countClosing() {
    let sinks = state.withLock { $0.closing.count() } + all.reduce(0) { $0 + $1.countClosing() }
    descriptors.budget.setClosing(DescriptorBudget.perSink * sinks)
  }

  package var overview: Overview {
    state.withLock { state in
      Overview(
        streams: state.streams.values.sorted { $0.name < $1.name }, named: state.namedInMetrics,
        departed: state.departed, rejections: state.rejections)
    }
  }

  /// Names whose publishers sent something within `StreamSettings.holderGrace`, with their hosts. Without a host the
  /// text is empty.
  package var heldNames: [String: String] {
    let now = clock.monotonic()
    return all.reduce(into: [:]) { names, stream in
      guard let holder = stream.state.withLock({ $0.publisher.holder }),
        now &- holder.lastReceived < StreamSettings.holderGrace.nanoseconds
      else { return }
      names[stream.name.description] = holder.host ?? ""
    }
  }

  /// New publishers are admitted.
  package var isOpen: Bool { !isShuttingDown.load(ordering: .relaxed) }

  /// Bytes of media of all streams in memory.
  package var mediaBytes: Int { memory.used }

  /// Bytes by which the windows of all streams with a publisher will still grow.
  package var expectedGrowth: Int {
    // In all, the streams keep no more than the budget.
    let room = max(0, memory.inAll - memory.used)
    return all.reduce(0) { min(room, $0 + min(room, $1.expectedGrowth)) }
  }

  /// Ends all streams and admits no more publishers.
  package func shutDown() {
    isShuttingDown.store(true, ordering: .relaxed)
    let streams = state.withLock { state in
      state.isShuttingDown = true
      return Array(state.streams.values)
    }
    for stream in streams { stream.shutDown() }
  }
}

/// The end of this process while its streams continue.
extension StreamRegistry {
  /// From now on, the end of a publisher counts as an interruption.
  package func prepareToLeave() {
    for stream in all { stream.prepareToLeave() }
  }

  /// Disconnects all publishers and admits no more; the next process resumes the streams.
  package func handOver() {
    isShuttingDown.store(true, ordering: .relaxed)
    state.withLock { $0.isShuttingDown = true }
    for stream in all { stream.handOver() }
  }

  /// Responds to all waiting requests with the current state.
  package func letGo() {
    for stream in all { stream.letGo() }
  }
}
