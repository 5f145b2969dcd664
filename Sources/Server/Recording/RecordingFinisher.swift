internal import Glibc
internal import Ingest
internal import Logging
internal import NIOPosix
internal import Synchronization

/// Makes movies of files that were left fragmented: by an earlier run, or by a recorder whose file system needs a copy.
final class RecordingFinisher: Sendable {
  private let announce: @Sendable (RecordingEvent) -> Void
  private let tally: RecordingTally
  private let clock: SteadyClock
  /// One thread: one copy after another.
  private let copier: NIOThreadPool
  private let logger: Logger
  private let waiting = Atomic<Int>(0)
  /// Those that are being copied, or wait for it: how much is done, 0 to 1.
  private let copies = Mutex<[RecordingKey: Double]>([:])
  private let postponed = Mutex(PostponedRecordings())

  init(
    announce: @escaping @Sendable (RecordingEvent) -> Void, tally: RecordingTally = RecordingTally(),
    clock: SteadyClock = .system(), copier: NIOThreadPool, logger: Logger
  ) {
    self.announce = announce
    self.tally = tally
    self.clock = clock
    self.copier = copier
    self.logger = logger
  }

  /// Files wait for their copy.
  var isBusy: Bool { waiting.load(ordering: .relaxed) > 0 }

  /// How much of a recording has been copied to finish it; nil where none is.
  func progress(of key: RecordingKey) -> Double? { copies.withLock { $0[key] } }

  /// Finishes it now if that takes milliseconds, else in the background.
  func finishSoon(_ recording: UnfinishedRecording) {
    switch finish(recording, effort: .inPlace) {
    case .settled: break
    case .left: finishLater(recording)
    case .failed: finishAgain(recording)
    }
  }

  /// Tries those again whose time has come: what could not be finished because of the disk. To be called now and then.
  func tend() {
    let due = postponed.withLock { $0.due(at: clock.monotonicNanoseconds()) }
    for recording in due { finishLater(recording) }
  }

  /// The disk did not let it be finished: it is tried again in a while, less and less often.
  func finishAgain(_ recording: UnfinishedRecording) {
    let now = clock.monotonicNanoseconds()
    postponed.withLock { $0.add(recording, at: now) }
  }

  /// Finishes it in the background, whatever it takes.
  func finishLater(_ recording: UnfinishedRecording) {
    let key = RecordingKey(stream: recording.stream, name: recording.name)
    waiting.add(1, ordering: .relaxed)
    copies.withLock { $0[key] = 0 }
    copier.submit { pool in
      if case .active = pool { self.finishPatiently(recording) }
      self.copies.withLock { $0[key] = nil }
      self.waiting.subtract(1, ordering: .relaxed)
    }
  }

  /// Copies if it must, and gives a process that is just letting go of the file the time to do so.
  private func finishPatiently(_ recording: UnfinishedRecording) {
    for _ in 0..<Self.lockAttempts {
      switch finish(recording, effort: .whatItTakes) {
      case .settled: return postponed.withLock { $0.remove(recording) }
      case .left: usleep(Self.lockPause)
      case .failed: return finishAgain(recording)
      }
    }
    logger.warning(
      """
      \(recording.stream): \(recording.folder.path)/\(recording.name.unfinished) is locked: another process writes it; \
      it is left as it is
      """)
  }

  private static let lockAttempts = 100
  /// Microseconds.
  private static let lockPause: UInt32 = 50_000

  private enum Leftover {
    /// Finished, removed, or nothing to do with it.
    case settled
    /// It takes a copy, or somebody holds it.
    case left
    /// The disk did not let it be done.
    case failed
  }

  private func finish(_ recording: UnfinishedRecording, effort: RecordingFile.Effort) -> Leftover {
    let (stream, folder, name) = (recording.stream, recording.folder, recording.name)
    let file: RecordingFile
    switch RecordingFile.reopen(in: folder, name: name) {
    case .opened(let opened): file = opened
    case .locked: return .left
    case .gone: return .settled
    case .unreadable(let error):
      logger.error("\(stream): a recording stays unfinished, for now: \(error)")
      return .failed
    }
    folder.remove(name.temporary)
    let progress = CopyProgress(stream: stream, path: file.path, total: file.length, logger: logger)
    do throws(RecordingError) {
      let salvage = RecordingSalvage(
        file: file, title: stream.description, effort: effort,
        remark: recording.facts.map { RecordingRemark($0, failure: recording.failure) }, index: recording.index,
        onProgress: { done in
          progress.note(done)
          let key = RecordingKey(stream: stream, name: name)
          self.copies.withLock { copies in
            if copies[key] != nil { copies[key] = min(1, Double(done) / Double(max(1, progress.total))) }
          }
        })
      let start = clock.monotonicNanoseconds()
      switch try salvage.run() {
      case .finished(.leftFragmented, _): return .left
      case .finished(let outcome, let contents):
        tally.finished(outcome, nanoseconds: clock.monotonicNanoseconds() &- start)
        let torn = contents.tornBytes > 0 ? ", without \(contents.tornBytes) torn bytes at its end" : ""
        let length = RecordingJob.text(contents.seconds)
        logger.notice("\(stream): finished a recording, \(length) s\(torn): \(file.finishedPath)")
        tell(recording, file, contents)
      case .renamed(let contents):
        logger.notice("\(stream): found a finished recording of an earlier run: \(file.finishedPath)")
        tell(recording, file, contents)
      case .removed: logger.notice("\(stream): removed an empty recording of an earlier run: \(file.path)")
      case .unknown: logger.warning("\(stream): \(file.path) is no recording of weir; it is left as it is")
      }
    } catch {
      logger.error("\(stream): a recording stays unfinished, for now: \(error)")
      return .failed
    }
    return .settled
  }

  private func tell(_ recording: UnfinishedRecording, _ file: RecordingFile, _ contents: RecordingSalvage.Contents) {
    if var facts = recording.facts {
      facts.bytes = file.length
      announce(RecordingEvent(kind: .stored, facts: facts))
    } else {
      let facts = RecordingFacts(
        stream: recording.stream, name: recording.name,
        startedAt: contents.startedAt ?? recording.name.startNanoseconds ?? 0, seconds: contents.seconds,
        bytes: file.length, codecs: contents.codecs, gaps: contents.gaps, failure: contents.failure)
      announce(RecordingEvent(kind: .salvaged, facts: facts))
    }
  }
}

/// Tells the log how far a copy is, now and then.
private final class CopyProgress: Sendable {
  private let stream: StreamName
  private let path: String
  let total: UInt64
  private let logger: Logger
  private let last = Mutex(ContinuousClock.now)

  init(stream: StreamName, path: String, total: UInt64, logger: Logger) {
    self.stream = stream
    self.path = path
    self.total = max(1, total)
    self.logger = logger
  }

  func note(_ done: UInt64) {
    let isDue = last.withLock { last in
      guard ContinuousClock.now - last >= .seconds(5) else { return false }
      last = .now
      return true
    }
    if isDue {
      logger.notice("\(stream): finishing \(path): \(done * 100 / total) % of \(total / 1_000_000) MB copied")
    }
  }
}
