internal import Base
internal import FMP4
internal import Glibc
internal import Logging
internal import NIOPosix
internal import Publishing
internal import RecordingFiles
internal import Streams
internal import Synchronization

/// Makes movies of fragmented files: those of an earlier run, and those whose file system needs a copy.
final class RecordingFinisher: Sendable {
  private let give: @Sendable (RecordingOutput) -> Void
  private let counters: RecordingCounters
  private let clock: SteadyClock
  /// One thread, for one copy after another.
  private let copier: any WorkThreads
  private let logger: Logger
  /// Bytes that stay free on the disk where a copy is made.
  private let keepFree: Int64
  private let calls: DiskCalls
  private let waiting = Atomic<Int>(0)
  /// Recordings that are being finished or wait for it, with the share of the work that is done, 0 to 1.
  private let underWay = Mutex<[RecordingKey: Progress]>([:])
  private let tickets = Atomic<Int>(0)
  private let postponed = Mutex(PostponedRecordings())

  private struct Progress {
    /// The submission to which the share belongs, since a file can be submitted several times.
    var ticket: Int
    var share = 0.0
  }

  init(
    give: @escaping @Sendable (RecordingOutput) -> Void,
    counters: RecordingCounters = RecordingCounters(),
    clock: SteadyClock = .system(), keepFree: Int64 = 0, calls: DiskCalls = .system, copier: any WorkThreads,
    logger: Logger
  ) {
    self.give = give
    self.counters = counters
    self.clock = clock
    self.keepFree = keepFree
    self.calls = calls
    self.copier = copier
    self.logger = logger
  }

  /// Files wait to be finished.
  var isBusy: Bool { waiting.load(ordering: .relaxed) > 0 }

  /// Nothing is being finished, and nothing is to be tried again.
  var isIdle: Bool { !isBusy && postponed.withLock { $0.isEmpty } }

  /// Share of a recording's finishing that is done; nil if it is not being finished.
  func progress(of key: RecordingKey) -> Double? { underWay.withLock { $0[key]?.share } }

  /// Finishes the files of an earlier run in the background. Files that need no copy come first, in this order; `whenSettled` is
  /// called when these are done.
  func finishSoon(_ recordings: [UnfinishedRecording], whenSettled: @escaping @Sendable () -> Void) {
    for recording in recordings {
      submit(recording) {
        switch self.finish(recording, effort: .inPlace) {
        case .settled: break
        case .left: self.finishLater(recording)
        case .failed: self.finishAgain(recording)
        }
      }
    }
    copier.submit { _ in whenSettled() }
  }

  /// Repeats the postponed attempts that are due. To be called regularly.
  func tend() {
    let due = postponed.withLock { $0.due(at: clock.monotonic()) }
    for recording in due { finishLater(recording) }
  }

  /// The disk prevented finishing. Further attempts follow, at growing intervals.
  func finishAgain(_ recording: UnfinishedRecording) {
    let now = clock.monotonic()
    postponed.withLock { $0.add(recording, at: now) }
  }

  /// Finishes the recording in the background, by a copy if necessary.
  func finishLater(_ recording: UnfinishedRecording) {
    submit(recording) { self.finishPatiently(recording) }
  }

  private func submit(_ recording: UnfinishedRecording, _ work: @escaping @Sendable () -> Void) {
    let key = RecordingKey(stream: recording.stream, name: recording.name)
    let ticket = tickets.add(1, ordering: .relaxed).newValue
    waiting.add(1, ordering: .relaxed)
    underWay.withLock { $0[key] = Progress(ticket: ticket) }
    copier.submit { pool in
      if case .active = pool { work() }
      // Unless it has been submitted again.
      self.underWay.withLock { if $0[key]?.ticket == ticket { $0[key] = nil } }
      self.waiting.subtract(1, ordering: .relaxed)
    }
  }

  /// Copies if necessary. Repeats while the file is locked, because its writer may be about to release it.
  private func finishPatiently(_ recording: UnfinishedRecording) {
    for _ in 0..<Self.lockAttempts {
      switch finish(recording, effort: .whatItTakes) {
      case .settled: return postponed.withLock { $0.remove(recording) }
      case .left: usleep(Self.lockPause)
      case .failed: return finishAgain(recording)
      }
    }
    logger.of(recording.stream).warning(
      """
      \(recording.folder.path)/\(recording.name.unfinished) is locked: another process writes it; \
      it is left as it is
      """)
  }

  private static let lockAttempts = 100
  /// Microseconds.
  private static let lockPause: UInt32 = 50_000

  private enum Leftover {
    /// Finished, removed, or nothing to be done.
    case settled
    /// Needs a copy, or is locked.
    case left
    /// The disk prevented it.
    case failed
  }

  private func finish(_ recording: UnfinishedRecording, effort: RecordingFile.Effort) -> Leftover {
    let (stream, folder, name) = (recording.stream, recording.folder, recording.name)
    let file: RecordingFile
    switch RecordingFile.reopen(in: folder, name: name, calls: calls) {
    case .opened(let opened): file = opened
    case .locked: return .left
    case .gone: return confirm(recording)
    case .unreadable(let error):
      logger.of(stream).error("a recording stays unfinished, for now: \(error)")
      return .failed
    }
    folder.remove(name.temporary)
    let key = RecordingKey(stream: stream, name: name)
    let progress = FinishingProgress(stream: stream, path: file.path, total: file.length, logger: logger)
    do throws(RecordingError) {
      let salvage = RecordingSalvage(
        file: file, title: stream.description, effort: effort,
        metadata: recording.facts.map { RecordingMetadata($0) }, index: recording.index, failure: recording.failure,
        keepFree: keepFree,
        onProgress: { work, done in
          progress.note(work, done)
          self.underWay.withLock { $0[key]?.share = min(1, Double(done) / Double(progress.total)) }
        },
        beforeFinalName: { contents, bytes in
          let (facts, isSalvaged) = Self.facts(of: recording, contents, bytes: bytes)
          self.give(.prospect(isSalvaged ? .salvaged : .stored, facts))
        })
      let start = clock.monotonic()
      switch try salvage.run() {
      case .finished(.leftFragmented, _): return .left
      case .finished(let outcome, let contents):
        counters.finished(outcome, nanoseconds: clock.monotonic() &- start)
        let torn = contents.tornBytes > 0 ? ", without \(contents.tornBytes) torn bytes at its end" : ""
        let length = Decimals.fixed(seconds: contents.seconds, digits: 1)
        logger.of(stream).notice("finished a recording, \(length) s\(torn): \(file.finishedPath)")
        announceStored(recording, file, contents)
      case .renamed(let contents):
        let origin = recording.facts == nil ? " of an earlier run" : ""
        logger.of(stream).notice("found a finished recording\(origin): \(file.finishedPath)")
        announceStored(recording, file, contents)
      case .removed: logger.of(stream).notice("removed an empty recording of an earlier run: \(file.path)")
      case .unknown(let reason):
        logger.of(stream).warning("\(file.path) is not a recording of weir (\(reason)); it is left as it is")
      }
    } catch {
      logger.of(stream).error("a recording stays unfinished, for now: \(error)")
      return .failed
    }
    return .settled
  }

  /// The file has its final name already, but the rename was not known to be durable.
  private func confirm(_ recording: UnfinishedRecording) -> Leftover {
    let (stream, folder, name) = (recording.stream, recording.folder, recording.name)
    guard recording.hasHead, folder.contains(name.finished) else { return .settled }
    do throws(RecordingError) {
      try folder.makeDurable()
    } catch {
      logger.of(stream).error("a recording is not known to be durable, for now: \(error)")
      return .failed
    }
    logger.of(stream).notice("recorded to \(folder.path)/\(name.finished)")
    if let facts = recording.facts { give(.event(RecordingEvent(kind: .stored, facts: facts))) }
    recording.whenStored()
    return .settled
  }

  private func announceStored(
    _ recording: UnfinishedRecording, _ file: RecordingFile, _ contents: RecordingSalvage.Contents
  ) {
    let (facts, isSalvaged) = Self.facts(of: recording, contents, bytes: file.length)
    give(.event(RecordingEvent(kind: isSalvaged ? .salvaged : .stored, facts: facts)))
    if !isSalvaged { recording.whenStored() }
  }

  private static func facts(
    of recording: UnfinishedRecording, _ contents: RecordingSalvage.Contents, bytes: UInt64
  ) -> (facts: RecordingFacts, isSalvaged: Bool) {
    if var facts = recording.facts {
      facts.bytes = bytes
      if contents.tornBytes > 0 { facts.seconds = contents.seconds }
      return (facts, false)
    }
    let facts = RecordingFacts(
      stream: recording.stream, name: recording.name,
      startedAt: contents.startedAt ?? recording.name.startTime ?? .zero, seconds: contents.seconds,
      bytes: bytes, codecs: contents.codecs, gaps: contents.gaps, failure: contents.failure)
    return (facts, true)
  }
}

/// Logs the progress of finishing a file, at most every 5 seconds.
private final class FinishingProgress: Sendable {
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

  func note(_ work: RecordingSalvage.Work, _ done: UInt64) {
    let isDue = last.withLock { last in
      guard ContinuousClock.now - last >= .seconds(5) else { return false }
      last = .now
      return true
    }
    if isDue {
      let words =
        switch work {
        case .reading: "read"
        case .copying: "copied"
        }
      logger.of(stream).notice("finishing \(path): \(done * 100 / total) % of \(total / 1_000_000) MB \(words)")
    }
  }
}
