internal import Base
package import Control
internal import FMP4
package import Logging
package import NIOCore
package import NIOPosix
package import Publishing
package import RecordingFiles
package import Streams
internal import Synchronization

/// The folder of recordings. Makes a recorder for each new epoch; lists and opens finished recordings. All disk work is done on
/// the library's own threads.
package final class RecordingLibrary: Sendable {
  /// The recordings folder, which has one folder for each stream.
  package let folder: String
  let logger: Logger
  private let settings: RecordingSettings
  /// The policy of a stream whose recording begins.
  private let policy: @Sendable (StreamName) -> RecordingPolicy
  private let finisher: RecordingFinisher
  /// For listing and opening.
  let threads: NIOThreadPool
  let queues: RecordingQueues
  package let catalogue: RecordingCatalogue
  /// The recordings being read.
  let files: OpenRecordings
  /// Bytes that stay free on the disk.
  package let keepFree: Int64
  /// Seconds for which a deletion can be undone.
  package var undoSeconds: Int64 { undo.load(ordering: .relaxed) }
  private let undo: Atomic<Int64>
  let keeper: RankedMutex<RetentionKeeper>
  /// A retention run is queued for the catalogue's thread or in progress.
  let retaining = Atomic(false)
  /// When the last one ended, in nanoseconds of monotonic time.
  let retained = Atomic<Int64>(0)
  /// What the last one said of the next one.
  let retentionDue = Mutex<WallTime?>(nil)
  private let registers = Registers()
  /// The free space that retention read last.
  private let freeSpaceSample = FreeSpaceSample()

  /// Recorders, observers of events, and live streams.
  private final class Registers: Sendable {
    let recorders = RankedMutex(.recorders, Recorders())
    let observers = Mutex<[any RecordingObserver]>([])
    let streams = RankedMutex(.followed, Streams())
    let teller = Mutex<RecordingTeller?>(nil)
    /// Less space is free than is to be kept.
    let isLow = Atomic(false)

    /// Takes what is given by whoever records, finishes and deletes.
    func take(_ output: RecordingOutput) {
      switch output {
      case .prospect(let prospect, let facts): teller.withLock { $0 }?.receive(prospect, facts)
      case .event(let event): for observer in observers.withLock({ $0 }) { observer.receive(event) }
      case .state, .split, .waits, .unfinished, .endedEarly: break
      }
    }
  }

  private struct Recorders {
    /// The newest recorder of each stream.
    var newest: [StreamName: Recorder] = [:]
    /// Earlier recorders that are still finishing their files.
    var retired: [Recorder] = []
    /// Recorders of local sources, which follow no stream.
    var ofSources: [Recorder] = []

    mutating func replace(_ recorder: Recorder) {
      retired.removeAll { $0.isIdle }
      if let before = newest.updateValue(recorder, forKey: recorder.stream), !before.isIdle { retired.append(before) }
    }
  }

  private struct Streams {
    weak var registry: StreamRegistry?
    var buffers: TimeShiftBuffers?

    /// A live stream of that name and epoch, and a time-shift buffer for it; nil where viewers cannot rewind.
    func buffer(_ name: StreamName, epoch: String) -> (stream: LiveStream, buffer: Recorder)? {
      guard let buffers, let stream = registry?.stream(name), stream.settings.rewind != nil,
        stream.epoch.id == epoch
      else { return nil }
      return (stream, buffers.make(name, epoch: epoch))
    }
  }

  /// `keepFree`: bytes that stay free on the disk. `archive` serves recordings while they are written. `threads` is for reading
  /// finished recordings; writing has threads of its own.
  package init(
    folder: String, keepFree: Int64,
    policy: @escaping @Sendable (StreamName) -> RecordingPolicy = { _ in RecordingPolicy() },
    retention: RetentionSettings = RetentionSettings(), threads: NIOThreadPool,
    queues: RecordingQueues = RecordingQueues(),
    archive: RecordingArchive? = nil, files: OpenRecordings = OpenRecordings(), calls: DiskCalls = .system,
    logger: Logger
  ) {
    self.files = files
    self.policy = policy
    self.folder = folder
    self.threads = threads
    self.queues = queues
    self.logger = logger
    let registers = registers
    let clock = SteadyClock.system()
    var settings = RecordingSettings(folder: folder, keepFree: keepFree, clock: clock, logger: logger)
    settings.archive = archive
    settings.calls = calls
    let finisher = RecordingFinisher(
      give: registers.take, counters: settings.counters, clock: clock, keepFree: keepFree, calls: calls,
      copier: queues.finisher,
      logger: logger)
    settings.give = { output in
      switch output {
      case .unfinished(let recording, .copy): finisher.finishLater(recording)
      case .unfinished(let recording, .attempt): finisher.finishAgain(recording)
      case .endedEarly(let name, let epoch):
        if let (stream, buffer) = registers.streams.withLock({ $0.buffer(name, epoch: epoch) }) {
          if stream.attach(buffer) != .attached { buffer.stop() }
        }
      case .state, .split, .waits, .prospect, .event: registers.take(output)
      }
    }
    self.finisher = finisher
    self.settings = settings
    self.keepFree = keepFree
    undo = Atomic(retention.undoTime / 1_000_000_000)
    let announce: @Sendable (RecordingProspect, RecordingFacts) -> Void = { registers.take(.prospect($0, $1)) }
    catalogue = RecordingCatalogue(
      folder: folder, announce: announce, thread: queues.catalogue, readers: queues.lists, logger: logger)
    let counters = settings.counters
    registers.observers.withLock { [catalogue] in $0 = [catalogue, counters] + (archive.map { [$0] } ?? []) }
    var retention = retention
    let askDisk = retention.freeBytes ?? { (try? RecordingFolder.open(folder)).flatMap(calls.freeBytes) }
    retention.freeBytes = { [freeSpaceSample] in
      let free = askDisk()
      if let free { freeSpaceSample.note(freeBytes: free, at: clock.monotonic()) }
      return free
    }
    keeper = RankedMutex(
      .recording,
      RetentionKeeper(
        catalogue: catalogue, settings: retention, keepFree: keepFree, announce: announce,
        tell: { registers.take(.event($0)) }))
  }

  /// Follows other rules of retention. May wait for the disk.
  package func follow(_ retention: RetentionSettings) {
    undo.store(retention.undoTime / 1_000_000_000, ordering: .relaxed)
    keeper.withLock { $0.follow(retention) }
    retentionDue.withLock { $0 = WallTime(nanoseconds: 0) }
  }

  /// Finishes the fragmented files of an earlier run, in the background. Returns when everything that needs no copy is done, or
  /// after `patience`, because a disk may be slow or not respond. To be called once, at start.
  package func finishLeftovers(patience: Duration = .seconds(60)) async {
    let isSettled = Latch()
    queues.finisher.submit { pool in
      guard case .active = pool else { return }
      self.finisher.finishSoon(self.leftovers) { isSettled.set() }
    }
    if await !isSettled.wait(patience: patience) {
      logger.notice("recordings of an earlier run are being finished in the background")
    }
    await catalogue.compare()
  }

  /// The unfinished files that this process is not writing.
  private var leftovers: [UnfinishedRecording] {
    guard let root = try? RecordingFolder.open(folder), let streams = try? root.streams() else { return [] }
    var found: [UnfinishedRecording] = []
    for stream in streams {
      guard let folder = try? root.folder(of: stream, ifAbsent: .fail),
        let names = try? folder.names(ending: ".part.mp4")
      else { continue }
      for name in names.sorted() where !UnfinishedRecordingFiles.isHeld(name, in: folder) {
        guard let unfinished = RecordingName(unfinished: name) else { continue }
        found.append(UnfinishedRecording(folder: folder, name: unfinished, stream: stream))
      }
    }
    return found
  }

  /// Files are being finished in the background, or wait for that.
  var isCopying: Bool { finisher.isBusy }

  /// Share of a recording's finishing that is done, 0 to 1; nil if it is not being finished.
  package func finishing(_ key: RecordingKey) -> Double? { finisher.progress(of: key) }

  // MARK: Observers

  /// Adds an observer, which receives all events from now on.
  func observe(_ observer: any RecordingObserver) {
    registers.observers.withLock { $0.append(observer) }
  }

  /// Tells of recordings in the log of events. To be called once, before anything is recorded.
  package func tell(_ events: EventLog) {
    let teller = RecordingTeller(events)
    registers.teller.withLock { $0 = teller }
    // First of all: what the others show comes after the event.
    registers.observers.withLock { $0.insert(teller, at: 0) }
  }

  private func tellOfSpace() {
    guard let free = freeSpaceSample.newest?.freeBytes else { return }
    if free >= keepFree &+ RetentionKeeper.leastHeadroom { registers.isLow.store(false, ordering: .relaxed) }
    guard free < keepFree, !registers.isLow.exchange(true, ordering: .relaxed) else { return }
    registers.teller.withLock { $0 }?.tellLow(freeBytes: free, keepFree: keepFree, folder: folder)
  }

  // MARK: Recorders

  /// Sets where `start`, `stop` and `cancel` find streams, and the time-shift buffers for times without recording. To be called
  /// once, before the first of those calls.
  package func follow(_ streams: StreamRegistry, buffers: TimeShiftBuffers? = nil) {
    registers.streams.withLock {
      $0.registry = streams
      $0.buffers = buffers
    }
  }

  private func liveStream(_ name: StreamName) -> LiveStream? {
    registers.streams.withLock { $0.registry }?.stream(name)
  }

  /// A recorder for a new publication of a stream; nil unless streams are recorded automatically.
  package func makeRecorder(stream: StreamName, epoch: String) -> (any FragmentSink)? {
    let settings = settings(of: stream)
    guard settings.policy.start == .automatic else { return nil }
    // Rewinding reads a recording of all tracks.
    let rewound = settings.tracks == .all ? epoch : nil
    let recorder = Recorder(stream: stream, epoch: rewound, settings: settings, threads: queues.writers)
    registers.recorders.withLock { recorders in
      if recorders.newest.count >= Self.maximumRemembered {
        recorders.newest = recorders.newest.filter { $0.value.isActive || !$0.value.isIdle }
      }
      recorders.replace(recorder)
    }
    return recorder
  }

  /// No recording of the stream can be started.
  package func isNeverRecorded(_ stream: StreamName) -> Bool { policy(stream).start == .never }

  private func settings(of stream: StreamName) -> RecordingSettings {
    var settings = settings
    settings.policy = policy(stream)
    settings.tracks = settings.policy.tracks
    return settings
  }

  /// Publishers choose stream names, so this is bounded. Beyond it, ended recordings appear only in the list.
  private static let maximumRemembered = 1000

  /// Begins to record a live stream, from the newest key frame in memory. The recording ends with the stream, or when it is
  /// stopped or cancelled.
  package func start(_ name: StreamName, _ order: RecordingOrder = RecordingOrder()) -> RecordingAnswer {
    guard let stream = liveStream(name) else { return .refused(.notLive) }
    let settings = settings(of: name).ordered(order)
    guard settings.policy.start != .never else { return .refused(.neverRecorded) }
    guard order.tracks.isThere(in: stream.status.tracks) else { return .refused(.noSuchTrack) }
    // With automatic recording, rewinding reads a recording of all tracks; otherwise it reads a time-shift buffer.
    let epoch = settings.policy.start == .automatic && settings.tracks == .all ? stream.epoch.id : nil
    let recorder = Recorder(stream: name, epoch: epoch, settings: settings, threads: queues.writers)
    // The stream's lock must not be held here: `makeRecorder` is called under that lock.
    let isFirst = registers.recorders.withLock { recorders in
      if recorders.newest[name]?.isActive == true { return false }
      recorders.replace(recorder)
      return true
    }
    guard isFirst else { return .refused(.alreadyRecording) }
    let attachment = stream.attach(recorder)
    if attachment == .attached {
      // The recording makes a time-shift buffer redundant.
      if epoch != nil {
        stream.detach(all: Recorder.self, where: { $0.target == .timeShiftBuffer }) { $0.stop() }
      }
      return .done
    }
    registers.recorders.withLock { recorders in
      if recorders.newest[name] === recorder { recorders.newest[name] = nil }
    }
    switch attachment {
    case .tooManyClosing: return .refused(.isClosing)
    case .unwanted: return .refused(.neverRecorded)
    case .attached, .notLive: return .refused(.notLive)
    }
  }

  /// A recorder for a local source, on air or not. Its files become visible only when they are stored.
  package func makeSourceRecorder(_ name: StreamName, _ order: RecordingOrder = RecordingOrder()) -> Recorder {
    var settings = settings(of: name).ordered(order)
    settings.visibility = .onceStored
    let recorder = Recorder(stream: name, settings: settings, threads: queues.writers)
    registers.recorders.withLock { recorders in
      recorders.ofSources.removeAll { !$0.isActive && $0.isIdle }
      recorders.ofSources.append(recorder)
    }
    return recorder
  }

  /// Whether the stream is being recorded.
  package func isRecording(_ name: StreamName) -> Bool {
    registers.recorders.withLock { $0.newest[name] }?.isActive == true
  }

  /// Whether anything is being recorded.
  package var isRecordingAny: Bool {
    registers.recorders.withLock { recorders in
      recorders.newest.values.contains(where: \.isActive) || recorders.ofSources.contains(where: \.isActive)
    }
  }

  /// Ends the recording of a stream that goes on, and makes a movie of what was written. With automatic recording, the next epoch
  /// is recorded again.
  package func stop(_ name: StreamName) -> RecordingAnswer {
    end(name) { $0.stop() }
  }

  /// Ends the recording of a stream and removes the file being written. Files stored before stay.
  package func cancel(_ name: StreamName) -> RecordingAnswer {
    end(name) { $0.cancel() }
  }

  private func end(_ name: StreamName, _ act: (Recorder) -> Bool) -> RecordingAnswer {
    guard let recorder = registers.recorders.withLock({ $0.newest[name] }), recorder.isActive else {
      return .refused(liveStream(name) == nil ? .notLive : .notRecording)
    }
    // The buffer begins with the newest segment before the recording ends, so no segment is lost between them.
    let next = recorder.epoch.flatMap { epoch in registers.streams.withLock { $0.buffer(name, epoch: epoch) } }
    if let next, next.stream.attach(next.buffer) != .attached { next.buffer.stop() }
    guard act(recorder) else {
      if let next {
        next.buffer.stop()
        next.stream.detach(next.buffer)
      }
      return .refused(.notRecording)
    }
    liveStream(name)?.detach(recorder)
    return .done
  }

  /// Makes written bytes durable when that is due, and repeats what failed. To be called about twice a second.
  package func tend() {
    for recorder in registers.recorders.withLock({ Array($0.newest.values) + $0.ofSources }) where recorder.isActive {
      recorder.tick()
    }
    finisher.tend()
    tellOfSpace()
  }

  /// Nothing is recorded or being finished: `tend` would find nothing. A stream's recorder can only begin with the stream.
  package var isIdle: Bool {
    finisher.isIdle
      && registers.recorders.withLock { recorders in
        (Array(recorders.newest.values) + recorders.ofSources).allSatisfy { !$0.isActive && $0.isIdle }
      }
  }

  /// Fulfilled when the newest recording of a stream is in the requested state, or `patience` is over.
  package func settle(_ name: StreamName, on eventLoop: any EventLoop, patience: TimeAmount) -> EventLoopFuture<Void> {
    guard let recorder = newest(name) else { return eventLoop.makeSucceededVoidFuture() }
    return recorder.wait(until: \.isSettled, on: eventLoop, patience: patience)
  }

  /// State of the newest recording of a stream; nil before the first one.
  func state(of stream: StreamName) -> RecordingState? { newest(stream)?.state }

  /// Recorder of the newest recording of a stream; nil before the first one.
  package func newest(_ stream: StreamName) -> Recorder? { registers.recorders.withLock { $0.newest[stream] } }

  /// The figures for `/metrics`. Reading them does not wait for a disk.
  package struct Overview: Sendable {
    /// The newest recorder of each stream.
    package var recorders: [StreamName: Recorder]
    package var counters: RecordingCounters.Figures
    /// Bytes that wait for the disk.
    package var queuedBytes: Int
    /// The free bytes that the disk reported last, and how many nanoseconds ago.
    package var disk: (freeBytes: Int64, age: Int64)?
  }

  package var overview: Overview {
    let look = freeSpaceSample.newest
    return Overview(
      recorders: registers.recorders.withLock { $0.newest }, counters: settings.counters.figures,
      queuedBytes: settings.budget.waiting,
      disk: look.map { ($0.freeBytes, max(0, settings.clock.monotonic() &- $0.at)) })
  }

  /// Ends all recordings within a few seconds. Each is finished if that is cheap, and otherwise left whole and fragmented for the
  /// next start.
  package func shutDown() async {
    await finishRecorders()
    await catalogue.close()
  }

  private func finishRecorders() async {
    let all = registers.recorders.withLock { $0.retired + Array($0.newest.values) + $0.ofSources }
    for recorder in all { recorder.receive(.end(.shutdown)) }
    let loop = MultiThreadedEventLoopGroup.singleton.any()
    let waits = all.map { $0.wait(until: \.isIdle, on: loop, patience: Self.shutdownPatience) }
    for wait in waits { try? await wait.get() }
    let late = all.filter { !$0.isIdle }.map(\.stream.description).sorted().joined(separator: ", ")
    if !late.isEmpty { logger.error("the disk does not respond; recordings to be finished at the next start: \(late)") }
  }

  private static let shutdownPatience = TimeAmount.seconds(4)
}
