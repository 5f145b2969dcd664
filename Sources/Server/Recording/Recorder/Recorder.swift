internal import Base
package import FMP4
internal import Logging
package import NIOCore
internal import NIOPosix
package import Publishing
package import Streams
internal import Synchronization

/// Follows a stream and writes it to a disk: a recording, or a time-shift buffer, whose file has no name. The stream only puts
/// events into a queue. A thread of a pool takes them out, so a slow disk delays the writing and never the stream. When the queue
/// is full, whole groups of pictures are left out and the gap is reported.
package final class Recorder: FragmentSink {
  /// What is written.
  enum Target: Sendable, Hashable {
    case recording, timeShiftBuffer
  }

  package let stream: StreamName
  let target: Target
  /// The epoch whose viewers can rewind into this recording; nil where a time-shift buffer serves that purpose.
  let epoch: String?
  private let give: @Sendable (RecordingOutput) -> Void
  private let threads: any WorkThreads
  private let clock: SteadyClock
  private let logger: Logger
  private let queue: RankedMutex<RecorderQueue>
  private let writer: RankedMutex<any RecorderWriter>
  private let latest = LatestState()
  /// Rings at each change of the recording's state.
  private let bell = Bell()

  /// `settings.give` gets what the recorder gives, but for its state, which is read here.
  init(
    _ target: Target = .recording, stream: StreamName, epoch: String? = nil, settings: RecordingSettings,
    threads: any WorkThreads
  ) {
    self.stream = stream
    self.target = target
    self.epoch = epoch
    self.threads = threads
    leavesOutStandIns = target == .recording && !settings.policy.holdsFallback
    clock = settings.clock
    logger = settings.logger
    let latest = latest
    let give: @Sendable (RecordingOutput) -> Void = { output in
      switch output {
      case .state(let state): latest.set(state)
      case .split(let time): latest.plan(time)
      case .waits(let warning): latest.warn(warning)
      case .prospect, .event, .unfinished, .endedEarly: settings.give(output)
      }
    }
    self.give = give
    switch target {
    case .recording:
      let isAudio = settings.tracks == .kind(.audio)
      queue = RankedMutex(
        .queue, RecorderQueue(budget: settings.budget, trial: RecordingTrial(), isAudio: isAudio))
      writer = RankedMutex(
        .recording, RecordingWriter(library: settings, stream: stream, epoch: epoch, give: give))
    case .timeShiftBuffer:
      queue = RankedMutex(.queue, RecorderQueue(budget: settings.budget))
      writer = RankedMutex(.recording, TimeShiftWriter(settings, stream: stream, epoch: epoch))
    }
  }

  package var splitsAt: MediaTime? { latest.splitsAt }

  package var endsWithPublication: Bool { target == .recording }

  package let leavesOutStandIns: Bool

  /// The state of the recording.
  package var state: RecordingState { latest.value }

  /// More may still be recorded: neither the stream nor the recording has ended.
  package var isActive: Bool { queue.withLock { !$0.isClosed } }

  /// Nanoseconds for which the item being written, or else the next item, has been waiting.
  package var lag: Int64 {
    guard let since = queue.withLock({ $0.waitingSince }) else { return 0 }
    return max(0, clock.monotonic() &- since)
  }

  /// A problem of a recording that is running; nil if there is none.
  package var warning: String? { queue.withLock { $0.isShedding } ? Self.sheddingWarning : latest.warning }

  private static let sheddingWarning =
    "the disk is too slow or does not answer: whole groups of pictures are left out until it does"

  /// The requested state is reached: something is recorded, or the file of an ended recording is done with.
  package var isSettled: Bool { isActive ? state != .idle : isIdle }

  package var isClosing: Bool { !isActive && !isIdle }

  /// Nothing waits for the disk.
  var isIdle: Bool { queue.withLock { $0.isIdle } }

  /// Fulfilled when the condition is met or `patience` is over, because a disk may not respond.
  package func wait(
    until isMet: @escaping @Sendable (Recorder) -> Bool, on eventLoop: any EventLoop, patience: TimeAmount
  ) -> EventLoopFuture<Void> {
    bell.wait(on: eventLoop, patience: patience) { isMet(self) }.map { _ in }
  }

  // MARK: Events

  package func receive(_ event: StoredEvent) {
    var admission = RecorderQueue.Admission.passed
    switch event {
    case .segmentEnd(let view):
      let start = view.window.segments.first?.sequenceNumber
      enqueue { admission = $0.add(SegmentEnd(view), windowStart: start, now: $1) }
    case .fragment(let fragment): enqueue { admission = $0.admit(fragment, now: $1) }
    case .end: _ = close(with: .event(event))
    case .initialization, .clock, .redated, .discontinuity: enqueue { $0.add(event, now: $1) }
    }
    if admission == .beganShedding, target == .recording {
      logger.of(stream).error("\(Self.sheddingWarning); the live stream goes on")
    }
  }

  /// Ends the recording and makes a movie of what was written. False if it has ended already.
  @discardableResult
  package func stop() -> Bool {
    close(with: .stop)
  }

  /// Ends the recording and removes the file being written. False if it has ended already.
  @discardableResult
  package func cancel() -> Bool {
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
        writer.handle(work)
        return writer.isOver
      }
      if isOver, queue.withLock({ $0.close() }), let epoch { give(.endedEarly(stream, epoch: epoch)) }
      bell.ring()
    }
    bell.ring()
  }
}

/// The part of a recorder that works with the disk. It may wait for the disk in every call.
protocol RecorderWriter: AnyObject {
  func handle(_ work: RecorderQueue.Work)
  /// Nothing more is written.
  var isOver: Bool { get }
}

/// The newest state of a recording. Callers read it without waiting for the disk.
private final class LatestState: Sendable {
  private let state = Mutex((state: RecordingState.idle, splitsAt: MediaTime?.none, warning: String?.none))

  var value: RecordingState { state.withLock { $0.state } }
  var splitsAt: MediaTime? { state.withLock { $0.splitsAt } }
  var warning: String? { state.withLock { $0.warning } }

  func set(_ new: RecordingState) {
    state.withLock { $0.state = new }
  }

  func plan(_ time: MediaTime?) {
    state.withLock { $0.splitsAt = time }
  }

  func warn(_ warning: String?) {
    state.withLock { $0.warning = warning }
  }
}
