internal import Basics
internal import FMP4
internal import Ingest
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// Follows a stream and records it. The stream only puts events into a queue. A thread of the recording pool takes them out, so a
/// slow disk delays the recording and never the stream. When the queue is full, whole groups of pictures are left out and the gap
/// is reported.
final class Recorder: FragmentSink {
  let stream: StreamName
  /// The epoch whose viewers can rewind into this recording; nil where a time-shift buffer serves that purpose.
  let epoch: String?
  private let endedEarly: @Sendable (_ epoch: String) -> Void
  private let threads: NIOThreadPool
  private let clock: SteadyClock
  private let logger: Logger
  private let queue: RankedMutex<RecorderQueue>
  private let writer: RankedMutex<RecordingWriter>
  private let latest = LatestState()
  /// Rings at each change of the recording's state.
  private let bell = Bell()

  init(stream: StreamName, epoch: String? = nil, settings: RecordingSettings, threads: NIOThreadPool) {
    self.stream = stream
    self.epoch = epoch
    endedEarly = { settings.endedEarly(stream, $0) }
    self.threads = threads
    queue = RankedMutex(.queue, RecorderQueue(budget: settings.budget, trial: RecordingTrial()))
    clock = settings.clock
    logger = settings.logger
    let latest = latest
    writer = RankedMutex(
      .recording,
      RecordingWriter(
        library: settings, stream: stream, epoch: epoch, tell: { state in latest.set(state) },
        plan: { time in latest.plan(time) }))
  }

  var splitsAt: MediaTime? { latest.splitsAt }

  /// The state of the recording.
  var state: RecordingState { latest.value }

  /// More may still be recorded: neither the stream nor the recording has ended.
  var isActive: Bool { queue.withLock { !$0.isClosed } }

  /// Nanoseconds for which the item being written, or else the next item, has been waiting.
  var lag: Int64 {
    guard let since = queue.withLock({ $0.waitingSince }) else { return 0 }
    return max(0, clock.monotonic() &- since)
  }

  /// A problem of a recording that is running; nil if there is none.
  var warning: String? { queue.withLock { $0.isShedding } ? Self.sheddingWarning : nil }

  private static let sheddingWarning =
    "the disk is too slow or does not answer: whole groups of pictures are left out until it does"

  /// The requested state is reached: something is recorded, or the file of an ended recording is done with.
  var isSettled: Bool { isActive ? state != .idle : isIdle }

  var isClosing: Bool { !isActive && !isIdle }

  /// Nothing waits for the disk.
  var isIdle: Bool { queue.withLock { $0.isIdle } }

  /// Fulfilled when the condition is met or `patience` is over, because a disk may not respond.
  func wait(
    until isMet: @escaping @Sendable (Recorder) -> Bool, on eventLoop: any EventLoop, patience: TimeAmount
  ) -> EventLoopFuture<Void> {
    bell.wait(on: eventLoop, patience: patience) { isMet(self) }.map { _ in }
  }

  // MARK: Events

  func receive(_ event: StoredEvent) {
    var admission = RecorderQueue.Admission.passed
    switch event {
    case .segmentEnd(let view):
      let start = view.window.segments.first?.sequenceNumber
      enqueue { admission = $0.add(SegmentEnd(view), windowStart: start, now: $1) }
    case .fragment(let fragment): enqueue { admission = $0.admit(fragment, now: $1) }
    case .end: _ = close(with: .event(event))
    case .initialization, .clock, .redated, .discontinuity: enqueue { $0.add(event, now: $1) }
    }
    if admission == .beganShedding { logger.of(stream).error("\(Self.sheddingWarning); the live stream goes on") }
  }

  /// Ends the recording and makes a movie of what was written. False if it has ended already.
  @discardableResult
  func stop() -> Bool {
    close(with: .stop)
  }

  /// Ends the recording and removes the file being written. False if it has ended already.
  @discardableResult
  func cancel() -> Bool {
    close(with: .cancel)
  }

  /// Makes written bytes durable when that is due, and repeats what failed. To be called about twice a second.
  func tick() {
    enqueue { queue, _ in queue.addTick() }
  }

  private func close(with item: RecorderQueue.Item) -> Bool {
    var wasOpen = false
    enqueue { wasOpen = $0.close(with: item, now: $1) }
    return wasOpen
  }

  private func enqueue(_ change: (inout RecorderQueue, _ now: MonotonicTime) -> Void) {
    let now = clock.monotonic()
    let mustSchedule = queue.withLock { queue in
      change(&queue, now)
      return queue.schedule()
    }
    guard mustSchedule else { return }
    threads.submit { pool in
      switch pool {
      case .active: self.drain()
      // The pool has been stopped: queued items are not written. The next start finishes the file.
      case .cancelled: self.queue.withLock { $0.abandon() }
      }
    }
  }

  // MARK: Writing

  /// Runs on a thread of the pool, one call at a time.
  private func drain() {
    while let work = queue.withLock({ $0.next() }) {
      let isOver = writer.withLock { writer in
        switch work {
        case .item(.event(let event)): writer.receive(event)
        case .item(.segmentEnd(let end)): writer.complete(end)
        case .item(.shed): writer.noteMissing(RecordingWriter.tooSlow)
        case .item(.shedUntil(let end)): writer.leaveOut(until: end)
        case .item(.stop): writer.stop()
        case .item(.cancel): writer.cancel()
        case .tick: writer.tick()
        }
        return writer.isOver
      }
      if isOver, queue.withLock({ $0.close() }), let epoch { endedEarly(epoch) }
      bell.ring()
    }
    bell.ring()
  }
}

/// The newest state of a recording. Callers read it without waiting for the disk.
private final class LatestState: Sendable {
  private let state = Mutex((state: RecordingState.idle, splitsAt: MediaTime?.none))

  var value: RecordingState { state.withLock { $0.state } }
  var splitsAt: MediaTime? { state.withLock { $0.splitsAt } }

  func set(_ new: RecordingState) {
    state.withLock { $0.state = new }
  }

  func plan(_ time: MediaTime?) {
    state.withLock { $0.splitsAt = time }
  }
}
