internal import FMP4
internal import Ingest
internal import Logging
internal import NIOCore
internal import Synchronization

/// All streams by name, and the door that publishers knock at.
final class StreamRegistry: PublishGate {
  private let settings: StreamSettings
  private let ladders: Ladders
  private let sounds: Sounds
  private let workers: WorkerLauncher
  private let publishKeys: PublishKeys
  private let descriptors: DescriptorBudget
  private let memory: WindowBudget
  /// What else than its publisher and its memory takes descriptors of a stream: recordings, folders of segments.
  private let sinksPerStream: Int
  private let clock: SteadyClock
  private let logger: Logger
  private let makeSinks:
    @Sendable (_ stream: StreamName, _ epoch: String, _ wish: PublishRequest.RecordingWish)
      -> [any FragmentSink]
  private let epochIDs = EpochID()
  /// Remembers the streams for the next process; nil where none goes on with them.
  private let ledger: StreamLedger?
  private let state: Mutex<State>
  private let refusals = Mutex(RecentRefusals())

  private struct State {
    var streams: [StreamName: LiveStream] = [:]
    var names: NameAllowance
    var holdings = StreamHoldings()
    var groups = KnownGroups()
    var isShuttingDown = false
    var rejections: [String: Int] = [:]
    /// Those that `/metrics` tells by name; what has come of the others that are gone.
    var namedInMetrics: Set<StreamName> = []
    var departed = StreamCounters()
  }

  init(
    settings: StreamSettings, ladders: Ladders = Ladders(), sounds: Sounds = Sounds(),
    workers: WorkerLauncher = .ownProcess,
    publishKeys: PublishKeys = PublishKeys(), names: NameAllowance.Limits = NameAllowance.Limits(),
    descriptors: DescriptorBudget = .unlimited, memory: WindowBudget = .unlimited, sinksPerStream: Int = 0,
    clock: SteadyClock, logger: Logger,
    ledger: StreamLedger? = nil,
    makeSinks: @escaping @Sendable (StreamName, String, PublishRequest.RecordingWish) -> [any FragmentSink]
  ) {
    self.settings = settings
    self.ladders = ladders
    self.sounds = sounds
    self.workers = workers
    self.publishKeys = publishKeys
    self.descriptors = descriptors
    self.memory = memory
    self.sinksPerStream = sinksPerStream
    state = Mutex(State(names: NameAllowance(names)))
    self.clock = clock
    self.logger = logger
    self.ledger = ledger
    self.makeSinks = makeSinks
    memory.onShortage { [weak self] name, bytes in
      // The caller holds another stream's lock.
      Task { self?.stream(name)?.shrink(to: bytes) }
    }
  }

  func stream(_ name: StreamName) -> LiveStream? {
    state.withLock { $0.streams[name] }
  }

  /// Sorted by name.
  var all: [LiveStream] {
    state.withLock { $0.streams.values.sorted { $0.name < $1.name } }
  }

  func admit(_ request: PublishRequest) async throws(PublishRefusal) -> any MediaSink {
    do throws(PublishRefusal) {
      return try admitNow(request)
    } catch {
      state.withLock { $0.rejections[error.code, default: 0] += 1 }
      note(RefusedPublication(error, of: request))
      throw error
    }
  }

  func note(_ refused: RefusedPublication) {
    let now = clock.wallNanoseconds
    refusals.withLock { $0.add(refused, now: now) }
  }

  /// From the oldest to the newest.
  var recentRefusals: [RecentRefusals.Entry] { refusals.withLock { $0.entries } }

  private func admitNow(_ request: PublishRequest) throws(PublishRefusal) -> any MediaSink {
    let right: PublishRight
    switch request.origin {
    case .server: right = .unproven
    case .peer:
      guard let proven = publishKeys.right(of: request.key, to: request.stream) else { throw .unauthorized }
      right = proven
    }
    let (stream, admission) = state.withLock { state -> (LiveStream?, LiveStream.Admission) in
      guard !state.isShuttingDown else { return (nil, .refused(.shuttingDown)) }
      let known = state.streams[request.stream]
      let holder = right == .unproven ? request.host : nil
      if known == nil, let refusal = refusal(of: request, holder: holder, &state) { return (nil, .refused(refusal)) }
      if known != nil, let refusal = refusal(ofShare: request.stream, holder: holder, state) {
        return (nil, .refused(refusal))
      }
      if known != nil, let holder {
        state.names.keep(request.stream, by: holder, now: clock.monotonicNanoseconds())
      }
      let stream = known ?? newStream(request, state.groups)
      let admission = stream.admit(request, right: right) { epoch in
        makeSinks(request.stream, epoch, request.recording)
      }
      state.streams[request.stream] = stream
      if case .admitted = admission {
        state.holdings.give(request.stream, to: holder, descriptors: descriptorCount(of: request.stream))
      }
      if known == nil, state.namedInMetrics.count < MetricsLimits.streams {
        state.namedInMetrics.insert(request.stream)
      }
      return (stream, admission)
    }
    switch admission {
    case .refused(let refusal): throw refusal
    case .admitted(let token, let evicted):
      evicted?(.replaced)
      guard let stream else { throw .shuttingDown }
      return Publication(stream: stream, token: token)
    }
  }

  /// Why a name that is not known yet cannot be a stream; nil where it can, and its descriptors are taken. `holder` is the
  /// address where that shows no key.
  private func refusal(of request: PublishRequest, holder: String?, _ state: inout State) -> PublishRefusal? {
    let limit = state.names.limits.streams
    guard state.streams.count < limit else { return .tooManyStreams(limit: limit) }
    if let refusal = refusal(ofShare: request.stream, holder: holder, state) { return refusal }
    if let holder, let seconds = state.names.take(request.stream, by: holder, now: clock.monotonicNanoseconds()) {
      return .tooManyNames(limit: state.names.limits.names, retryAfterSeconds: seconds)
    }
    guard descriptors.takeStream(descriptorCount(of: request.stream)) else {
      return .noRoom(
        "the server has no descriptors for another stream: \(descriptors.limit) may be open (ulimit -n, or LimitNOFILE of"
          + " systemd), and it has \(state.streams.count) streams; raise the limit, or end streams")
    }
    return nil
  }

  /// Why an address that shows no key cannot have one more stream; nil where it can.
  private func refusal(ofShare stream: StreamName, holder: String?, _ state: State) -> PublishRefusal? {
    guard let holder else { return nil }
    let all = StreamHoldings.Share(streams: state.names.limits.streams, descriptors: descriptors.streams)
    let count = descriptorCount(of: stream)
    guard !state.holdings.mayHold(stream, holder, descriptors: count, of: all) else { return nil }
    return .tooManyOfAddress(streams: state.holdings.streams(of: holder))
  }

  /// Descriptors that a stream takes as it is configured.
  private func descriptorCount(of stream: StreamName) -> Int {
    let workers = (ladders[stream].isEmpty ? 0 : 1) + (sounds[stream] == nil ? 0 : 1)
    return DescriptorBudget.perStream + DescriptorBudget.perSink * (sinksPerStream + workers)
  }

  /// Streams without a ladder that there can be at a time.
  var capacity: Int {
    let each = DescriptorBudget.perStream + DescriptorBudget.perSink * sinksPerStream
    return min(state.withLock { $0.names.limits.streams }, descriptors.streams / each)
  }

  private func newStream(_ request: PublishRequest, _ groups: borrowing KnownGroups) -> LiveStream {
    LiveStream(
      name: request.stream, settings: settings(of: request.stream), clock: clock, epochIDs: epochIDs, logger: logger,
      knownGroup: request.keyFrameInterval ?? groups[request.stream], workers: workers, ledger: ledger, memory: memory)
  }

  private func settings(of stream: StreamName) -> StreamSettings {
    var settings = settings
    settings.ladder = ladders[stream]
    settings.sound = sounds[stream]
    if !settings.ladder.isEmpty || settings.sound != nil { settings.layout = .separate }
    return settings
  }

  /// Goes on with streams that the last process left open: they wait for their publishers as after a lost connection.
  /// Those whose players were told something else than the settings say now begin anew.
  func resume(_ entries: [StreamName: LedgerEntry]) {
    for (name, entry) in entries {
      let settings = settings(of: name)
      guard entry.promise == settings.promise else {
        logger.of(name).notice("begins anew: its players were told other lengths and layouts than are set now")
        ledger?.forget(name)
        continue
      }
      guard descriptors.takeStream(descriptorCount(of: name)) else {
        logger.of(name).warning("is over: the server has no descriptors for it (ulimit -n is \(descriptors.limit))")
        ledger?.forget(name)
        continue
      }
      let stream = LiveStream(
        name: name, settings: settings, clock: clock, epochIDs: epochIDs, logger: logger, knownGroup: nil,
        workers: workers, ledger: ledger, memory: memory, resuming: entry.record)
      state.withLock { state in
        state.streams[name] = stream
        if state.namedInMetrics.count < MetricsLimits.streams { state.namedInMetrics.insert(name) }
      }
      logger.of(name).notice("goes on with segment \(entry.record.nextSequenceNumber) when its publisher is back")
    }
  }

  /// Ends streams whose publisher did not come back and forgets those that are over. To be called about once a second.
  func tend() {
    for stream in all where !stream.tend() {
      state.withLock { state in
        // A publisher may have come in between: they are admitted under this lock.
        guard state.streams[stream.name] === stream, !stream.tend() else { return }
        state.groups.remember(stream.knownGroup, of: stream.name)
        state.streams[stream.name] = nil
        if let host = stream.lastHost { state.names.keep(stream.name, by: host, now: clock.monotonicNanoseconds()) }
        state.holdings.give(stream.name, to: nil, descriptors: 0)
        descriptors.giveBackStream(descriptorCount(of: stream.name))
        memory.release(stream.name)
        if state.namedInMetrics.remove(stream.name) == nil { state.departed += stream.status.counters }
      }
    }
  }

  /// What `/metrics` tells of streams. Who has a name there keeps it for as long as the stream is known, and what the
  /// others came to is kept when they go: no counter ever falls.
  struct Overview: Sendable {
    var streams: [LiveStream]
    var named: Set<StreamName>
    var departed: StreamCounters
    /// Publishers that were turned away, by reason.
    var rejections: [String: Int]
  }

  var overview: Overview {
    state.withLock { state in
      Overview(
        streams: state.streams.values.sorted { $0.name < $1.name }, named: state.namedInMetrics,
        departed: state.departed, rejections: state.rejections)
    }
  }

  /// Publishers are admitted.
  var isOpen: Bool { state.withLock { !$0.isShuttingDown } }

  /// Bytes of media that all streams keep in memory.
  var mediaBytes: Int { memory.used }

  /// Bytes by which the windows of all streams that have a publisher will still grow.
  var expectedGrowth: Int {
    // Together they keep no more than they may.
    let room = max(0, memory.inAll - memory.used)
    return all.reduce(0) { min(room, $0 + min(room, $1.expectedGrowth)) }
  }

  /// Ends all streams and admits no more.
  func shutDown() {
    let streams = state.withLock { state in
      state.isShuttingDown = true
      return Array(state.streams.values)
    }
    for stream in streams { stream.shutDown() }
  }
}

/// The end of this process, and not of its streams.
extension StreamRegistry {
  /// From here on a publisher's end is an interruption.
  func prepareToLeave() {
    for stream in all { stream.prepareToLeave() }
  }

  /// Lets all publishers go and admits no more; the next process goes on with the streams.
  func handOver() {
    state.withLock { $0.isShuttingDown = true }
    for stream in all { stream.handOver() }
  }

  /// Answers all who wait for something of a stream with what there is.
  func letGo() {
    for stream in all { stream.letGo() }
  }
}

/// How far apart the key frames of names seen before were, so that their next playlist need not wait to find out.
private struct KnownGroups: Sendable {
  private var lengths: [StreamName: MediaTime] = [:]

  /// Names come from publishers: beyond this many none is remembered.
  private static let limit = 1000

  subscript(name: StreamName) -> MediaTime? { lengths[name] }

  mutating func remember(_ length: MediaTime?, of name: StreamName) {
    guard lengths[name] != nil || lengths.count < Self.limit else { return }
    lengths[name] = length
  }
}

/// One publisher's hold on a stream.
private final class Publication: MediaSink {
  private let stream: LiveStream
  private let token: LiveStream.PublicationToken

  init(stream: LiveStream, token: LiveStream.PublicationToken) {
    self.stream = stream
    self.token = token
  }

  func receive(_ event: MediaEvent) -> SinkVerdict {
    stream.receive(event, from: token)
  }

  func lost(_ kind: MediaKind) {
    stream.lost(kind, from: token)
  }

  func warn(_ warning: PublicationWarning) {
    stream.warn(warning, from: token)
  }

  func withdraw(_ warning: PublicationWarning) {
    stream.withdraw(warning, from: token)
  }
}
