internal import Basics
internal import FMP4
internal import Ingest
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// The folder of recordings: makes the recorders of new epochs, lists and opens what is finished. All work with the
/// disk is done on its own threads.
final class RecordingLibrary: Sendable {
  /// The recordings folder; below it one folder a stream.
  let folder: String
  let logger: Logger
  private let settings: RecordingSettings
  private let finisher: RecordingFinisher
  /// For lists and opening.
  let threads: NIOThreadPool
  /// For writing: a disk that does not answer keeps these busy and nobody else.
  let writers: NIOThreadPool
  /// For finishing what an earlier run left and what takes a copy, one file after another.
  let copier = NIOThreadPool(numberOfThreads: 1)
  let catalogue: RecordingCatalogue
  /// Those that are being read.
  let files: OpenRecordings
  /// Bytes that stay free on the disk.
  let keepFree: Int64
  /// How long a deletion can be taken back.
  let undoSeconds: Int64
  let keeper: Mutex<RetentionKeeper>
  /// Retention waits for the catalogue's thread, or is with it.
  let isRetaining = Atomic(false)
  private let registers = Registers()
  /// What retention saw of the disk.
  private let freeSpaceSample = FreeSpaceSample()

  /// Who is recorded, and who is told.
  private final class Registers: Sendable {
    let recorders = RankedMutex(.recorders, Recorders())
    let observers = Mutex<[any RecordingObserver]>([])
    let streams = RankedMutex(.followed, Streams())
  }

  private struct Recorders {
    /// The newest of each stream.
    var newest: [StreamName: Recorder] = [:]
    /// Earlier ones that are still busy with their files.
    var retired: [Recorder] = []
    /// Those of the server's own sources, which follow no stream.
    var takes: [Recorder] = []

    mutating func replace(_ recorder: Recorder) {
      retired.removeAll { $0.isIdle }
      if let before = newest.updateValue(recorder, forKey: recorder.stream), !before.isIdle { retired.append(before) }
    }
  }

  private struct Streams {
    weak var registry: StreamRegistry?
    var buffers: TimeShiftBuffers?

    /// A stream of that name whose epoch goes on, and something to keep its programme with; nil where viewers cannot
    /// go back.
    func buffer(_ name: StreamName, epoch: String) -> (stream: LiveStream, buffer: TimeShiftBuffer)? {
      guard let buffers, let stream = registry?.stream(name), stream.epoch.id == epoch else { return nil }
      return (stream, buffers.make(name, epoch: epoch))
    }
  }

  /// `keepFree`: bytes that stay free on the disk. `archive` shows recordings while they are written. `threads` reads
  /// what is finished; writing has threads of its own.
  init(
    folder: String, keepFree: Int64, policy: RecordingPolicy = RecordingPolicy(),
    retention: RetentionSettings = RetentionSettings(), threads: NIOThreadPool, writerCount: Int = 4,
    archive: RecordingArchive? = nil, files: OpenRecordings = OpenRecordings(), calls: DiskCalls = .system,
    logger: Logger
  ) {
    self.files = files
    self.folder = folder
    self.threads = threads
    self.logger = logger
    let registers = registers
    let clock = SteadyClock.system()
    var settings = RecordingSettings(folder: folder, keepFree: keepFree, policy: policy, clock: clock, logger: logger)
    settings.archive = archive
    settings.calls = calls
    settings.announce = { event in
      for observer in registers.observers.withLock({ $0 }) { observer.receive(event) }
    }
    let finisher = RecordingFinisher(
      announce: settings.announce, counters: settings.counters, clock: clock, keepFree: keepFree, calls: calls,
      copier: copier, logger: logger)
    settings.finishLater = { finisher.finishLater($0) }
    settings.finishAgain = { finisher.finishAgain($0) }
    settings.endedEarly = { name, epoch in
      if let (stream, buffer) = registers.streams.withLock({ $0.buffer(name, epoch: epoch) }) {
        if stream.attach(buffer) != .attached { buffer.stop() }
      }
    }
    self.finisher = finisher
    self.settings = settings
    self.keepFree = keepFree
    undoSeconds = retention.undoTime / 1_000_000_000
    catalogue = RecordingCatalogue(folder: folder, logger: logger)
    let counters = settings.counters
    registers.observers.withLock { [catalogue] in $0 = [catalogue, counters] + (archive.map { [$0] } ?? []) }
    var retention = retention
    let askDisk = retention.freeBytes ?? { try? RecordingFolder.open(folder).freeBytes }
    retention.freeBytes = { [freeSpaceSample] in
      let free = askDisk()
      if let free { freeSpaceSample.note(freeBytes: free, at: clock.monotonicNanoseconds()) }
      return free
    }
    keeper = Mutex(
      RetentionKeeper(catalogue: catalogue, settings: retention, keepFree: keepFree, tell: settings.announce))
    writers = NIOThreadPool(numberOfThreads: writerCount)
    writers.start()
    copier.start()
  }

  deinit {
    writers.shutdownGracefully { _ in }
    copier.shutdownGracefully { _ in }
  }

  /// Finishes what an earlier run left fragmented, in the background. Returns when all is done that needs no copy, or
  /// after `patience`: a disk may be slow, or not answer at all. To be called once, at start.
  func finishLeftovers(patience: Duration = .seconds(60)) async {
    let isSettled = Latch()
    copier.submit { pool in
      guard case .active = pool else { return }
      self.finisher.finishSoon(self.leftovers) { isSettled.set() }
    }
    if await !isSettled.wait(patience: patience) {
      logger.notice("recordings that an earlier run left are being finished, beside serving")
    }
    await catalogue.compare()
  }

  /// The files that nobody in this process writes.
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

  /// How far it is with a recording that is being finished, 0 to 1; nil where none is.
  func finishing(_ key: RecordingKey) -> Double? { finisher.progress(of: key) }

  // MARK: Who is told

  /// Adds one that hears of all events from now on.
  func observe(_ observer: any RecordingObserver) {
    registers.observers.withLock { $0.append(observer) }
  }

  // MARK: Recorders

  /// Where `start`, `stop` and `cancel` find streams, and what keeps their programmes while nothing is recorded. To be
  /// called once, before the first of them.
  func follow(_ streams: StreamRegistry, buffers: TimeShiftBuffers? = nil) {
    registers.streams.withLock {
      $0.registry = streams
      $0.buffers = buffers
    }
  }

  private func liveStream(_ name: StreamName) -> LiveStream? {
    registers.streams.withLock { $0.registry }?.stream(name)
  }

  /// A recorder for a new epoch of a stream; nil when nothing is to be recorded by itself.
  func makeRecorder(stream: StreamName, epoch: String) -> (any FragmentSink)? {
    guard case .automatic = settings.policy.start else { return nil }
    let recorder = Recorder(stream: stream, epoch: epoch, settings: settings, threads: writers)
    registers.recorders.withLock { recorders in
      if recorders.newest.count >= Self.maximumRemembered {
        recorders.newest = recorders.newest.filter { $0.value.isActive || !$0.value.isIdle }
      }
      recorders.replace(recorder)
    }
    return recorder
  }

  /// Names come from publishers: beyond this many, recordings that are over are told only by the list.
  private static let maximumRemembered = 1000

  /// Begins to record a live stream, with the newest key frame in memory. It ends with the stream, or when it is
  /// stopped or cancelled.
  func start(_ name: StreamName) -> RecordingAnswer {
    guard let stream = liveStream(name) else { return .refused(.notLive) }
    // Where streams are recorded by themselves, rewinding relies on what is recorded; else there is a spool.
    let epoch = settings.policy.start == .automatic ? stream.epoch.id : nil
    let recorder = Recorder(stream: name, epoch: epoch, settings: settings, threads: writers)
    // Not with the stream's lock held, under which `makeRecorder` is called.
    let isFirst = registers.recorders.withLock { recorders in
      if recorders.newest[name]?.isActive == true { return false }
      recorders.replace(recorder)
      return true
    }
    guard isFirst else { return .refused(.alreadyRecording) }
    let attachment = stream.attach(recorder)
    if attachment == .attached {
      // What is in the recording need not be kept twice.
      if epoch != nil { for buffer in stream.detach(all: TimeShiftBuffer.self) { buffer.stop() } }
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

  /// A recorder for one of the server's own sources, on air or off. Nobody is shown what it writes before it is stored.
  func makeTakeRecorder(_ name: StreamName) -> Recorder {
    var settings = settings
    settings.disclosure = .onceStored
    let recorder = Recorder(stream: name, settings: settings, threads: writers)
    registers.recorders.withLock { recorders in
      recorders.takes.removeAll { !$0.isActive && $0.isIdle }
      recorders.takes.append(recorder)
    }
    return recorder
  }

  /// Whether the stream of that name is being recorded.
  func isRecording(_ name: StreamName) -> Bool {
    registers.recorders.withLock { $0.newest[name] }?.isActive == true
  }

  /// Ends the recording of a stream, which goes on; what there is becomes a movie. It begins again with the stream's
  /// next epoch, if streams are recorded by themselves.
  func stop(_ name: StreamName) -> RecordingAnswer {
    end(name) { $0.stop() }
  }

  /// Ends the recording of a stream and removes the file being written; files that were stored before stay.
  func cancel(_ name: StreamName) -> RecordingAnswer {
    end(name) { $0.cancel() }
  }

  private func end(_ name: StreamName, _ act: (Recorder) -> Bool) -> RecordingAnswer {
    guard let recorder = registers.recorders.withLock({ $0.newest[name] }), recorder.isActive else {
      return .refused(liveStream(name) == nil ? .notLive : .notRecording)
    }
    // It begins with the newest segment, before the recording ends: none falls between them.
    let next = recorder.epoch.flatMap { epoch in registers.streams.withLock { $0.buffer(name, epoch: epoch) } }
    if let next, next.stream.attach(next.buffer) != .attached { next.buffer.stop() }
    guard act(recorder) else {
      if let next {
        next.stream.detach(next.buffer)
        next.buffer.stop()
      }
      return .refused(.notRecording)
    }
    liveStream(name)?.detach(recorder)
    return .done
  }

  /// To be called about twice a second: makes durable what lies about, and tries again what failed.
  func tend() {
    for recorder in registers.recorders.withLock({ Array($0.newest.values) + $0.takes }) where recorder.isActive {
      recorder.tick()
    }
    finisher.tend()
  }

  /// Fulfilled when the newest recording of a stream is what it was asked to be, or `patience` is over.
  func settle(_ name: StreamName, on eventLoop: any EventLoop, patience: TimeAmount) -> EventLoopFuture<Void> {
    guard let recorder = newest(name) else { return eventLoop.makeSucceededVoidFuture() }
    return recorder.wait(until: \.isSettled, on: eventLoop, patience: patience)
  }

  /// What the newest recording of a stream is doing; nil before the first.
  func state(of stream: StreamName) -> RecordingState? { newest(stream)?.state }

  /// The recorder of a stream's newest recording; nil before its first one.
  func newest(_ stream: StreamName) -> Recorder? { registers.recorders.withLock { $0.newest[stream] } }

  /// What `/metrics` tells. Nothing of it waits for a disk.
  struct Overview: Sendable {
    /// The newest of each stream.
    var recorders: [StreamName: Recorder]
    var counters: RecordingCounters.Figures
    /// Bytes that wait for the disk.
    var queuedBytes: Int
    /// What the disk last said, and how many nanoseconds ago.
    var disk: (freeBytes: Int64, age: Int64)?
  }

  var overview: Overview {
    let look = freeSpaceSample.newest
    return Overview(
      recorders: registers.recorders.withLock { $0.newest }, counters: settings.counters.figures,
      queuedBytes: settings.budget.waiting,
      disk: look.map { ($0.freeBytes, max(0, settings.clock.monotonicNanoseconds() &- $0.at)) })
  }

  /// Brings all recordings to an end within a few seconds: finished where that is cheap, else left whole and
  /// fragmented for the next start.
  func shutDown() async {
    await finishRecorders()
    await catalogue.close()
  }

  private func finishRecorders() async {
    let all = registers.recorders.withLock { $0.retired + Array($0.newest.values) + $0.takes }
    for recorder in all { recorder.receive(.end(.shutdown)) }
    let loop = MultiThreadedEventLoopGroup.singleton.any()
    let waits = all.map { $0.wait(until: \.isIdle, on: loop, patience: Self.shutdownPatience) }
    for wait in waits { try? await wait.get() }
    let late = all.filter { !$0.isIdle }.map(\.stream.description).sorted().joined(separator: ", ")
    if !late.isEmpty { logger.error("the disk does not answer; recordings that wait for the next start: \(late)") }
  }

  private static let shutdownPatience = TimeAmount.seconds(4)
}
