internal import FMP4
internal import Ingest
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// Follows a stream and records it. The stream only puts events into a queue; a thread of the recordings' pool takes
/// them out, so that a slow disk costs the recording and never the stream. What finds no room in the queue is left
/// out, by whole groups of pictures, and the gap is told.
final class Recorder: FragmentSink {
  let stream: StreamName
  /// The life of the stream in whose programme viewers go back in what is recorded; nil where there is a spool for that.
  let epoch: String?
  private let endedEarly: @Sendable (_ epoch: String) -> Void
  private let threads: NIOThreadPool
  private let budget: RecordingBudget
  private let clock: SteadyClock
  private let logger: Logger
  private let queue = Mutex(Queue())
  private let job: Mutex<RecordingJob>
  private let latest = LatestState()

  fileprivate struct Queue {
    var items = CircularBuffer<(item: Item, since: Int64)>()
    /// Since when what is with the job had been waiting, in monotonic nanoseconds.
    var workSince: Int64?
    var input = Input.open
    var drain = Drain.idle
    /// The job wants to look after what depends on the time alone.
    var tick = Tick.none
  }

  fileprivate enum Item {
    case event(StoredEvent)
    case segmentEnd(SegmentEnd)
    /// Fragments that found no room are missing here.
    case shed
    case stop
    case cancel

    /// Bytes that it keeps in memory.
    var cost: Int {
      if case .event(.fragment(let fragment)) = self { return fragment.range.length }
      return 0
    }
  }

  fileprivate enum Input {
    case open
    /// No room: fragments are passed over up to one that decoding can start with.
    case shedding
    /// The end has been told: nothing more is recorded.
    case closed
  }

  fileprivate enum Drain {
    case idle
    case scheduled
  }

  fileprivate enum Tick {
    case none
    case due
  }

  init(stream: StreamName, epoch: String? = nil, settings: RecordingSettings, threads: NIOThreadPool) {
    self.stream = stream
    self.epoch = epoch
    endedEarly = { settings.endedEarly(stream, $0) }
    self.threads = threads
    budget = settings.budget
    clock = settings.clock
    logger = settings.logger
    let latest = latest
    job = Mutex(RecordingJob(library: settings, stream: stream, epoch: epoch) { state in latest.set(state) })
  }

  /// What the recording is doing.
  var state: RecordingState { latest.value }

  /// More may still be recorded: neither the stream nor the recording has come to its end.
  var isActive: Bool {
    queue.withLock { queue in
      if case .closed = queue.input { return false }
      return true
    }
  }

  /// Nanoseconds for which what is being written, or is next, has been waiting.
  var lag: Int64 {
    guard let since = queue.withLock({ $0.workSince ?? $0.items.first?.since }) else { return 0 }
    return max(0, clock.monotonicNanoseconds() &- since)
  }

  /// What is wrong though it runs.
  var warning: String? {
    queue.withLock { queue in
      if case .shedding = queue.input { return Self.sheddingWarning }
      return nil
    }
  }

  private static let sheddingWarning =
    "the disk is too slow or does not answer: whole groups of pictures are left out until it does"

  /// Nothing waits for the disk any more.
  var isIdle: Bool {
    queue.withLock { queue in
      if case .idle = queue.drain { return true }
      return false
    }
  }

  // MARK: What comes in

  func receive(_ event: StoredEvent) {
    switch event {
    case .segmentEnd(let view): if let end = SegmentEnd(view) { enqueue { $0.add(end, now: $1) } }
    case .fragment(let fragment):
      var beganShedding = false
      enqueue { beganShedding = $0.admit(fragment, budget, now: $1) == .beganShedding }
      if beganShedding { logger.error("\(stream): \(Self.sheddingWarning); the live stream goes on") }
    case .end: _ = close(with: .event(event))
    case .initialization, .clock, .discontinuity: enqueue { $0.add(.event(event), now: $1) }
    }
  }

  /// Ends the recording; what there is becomes a movie. False when it has ended already.
  @discardableResult
  func stop() -> Bool {
    close(with: .stop)
  }

  /// Ends the recording and removes the file being written. False when it has ended already.
  @discardableResult
  func cancel() -> Bool {
    close(with: .cancel)
  }

  /// To be called now and then: makes durable what lies about, and tries again what failed.
  func tick() {
    enqueue { queue, _ in
      guard case .open = queue.input else { return }
      queue.tick = .due
    }
  }

  private func close(with item: Item) -> Bool {
    var wasOpen = false
    enqueue { queue, now in
      if case .closed = queue.input { return }
      wasOpen = true
      // What nobody wants need not be written.
      if case .cancel = item {
        for entry in queue.items { budget.give(entry.item.cost) }
        queue.items.removeAll()
      }
      queue.items.append((item, now))
      queue.input = .closed
    }
    return wasOpen
  }

  private func enqueue(_ change: (inout Queue, _ now: Int64) -> Void) {
    let now = clock.monotonicNanoseconds()
    let mustSchedule = queue.withLock { queue in
      change(&queue, now)
      guard case .idle = queue.drain, queue.hasWork else { return false }
      queue.drain = .scheduled
      return true
    }
    guard mustSchedule else { return }
    threads.submit { pool in
      switch pool {
      case .active: self.drain()
      // The pool has been stopped: what waits is not written, and the file is finished at the next start.
      case .cancelled: self.queue.withLock { $0 = Queue(input: .closed) }
      }
    }
  }

  // MARK: What goes to the disk

  /// On a thread of the pool, one at a time.
  private func drain() {
    while let work = next() {
      let isOver = job.withLock { job in
        switch work {
        case .item(.event(let event)): job.receive(event)
        case .item(.segmentEnd(let end)): job.complete(end)
        case .item(.shed): job.noteMissing("the disk was too slow")
        case .item(.stop): job.stop()
        case .item(.cancel): job.cancel()
        case .tick: job.tick()
        }
        return job.isOver
      }
      if case .item(let item) = work { budget.give(item.cost) }
      if isOver, finishInput(), let epoch { endedEarly(epoch) }
    }
  }

  /// Nothing more is recorded. False when that was known.
  private func finishInput() -> Bool {
    queue.withLock { queue in
      if case .closed = queue.input { return false }
      queue.input = .closed
      return true
    }
  }

  private enum Work {
    case item(Item)
    case tick
  }

  private func next() -> Work? {
    queue.withLock { queue in
      queue.workSince = nil
      if let (item, since) = queue.items.popFirst() {
        queue.workSince = since
        return .item(item)
      }
      if case .due = queue.tick {
        queue.tick = .none
        return .tick
      }
      queue.drain = .idle
      return nil
    }
  }
}

extension Recorder.Queue {
  fileprivate var hasWork: Bool {
    if case .due = tick { return true }
    return !items.isEmpty
  }

  fileprivate mutating func add(_ item: Recorder.Item, now: Int64) {
    if case .closed = input { return }
    items.append((item, now))
  }

  /// While fragments are left out, nobody needs to know where segments end.
  fileprivate mutating func add(_ end: SegmentEnd, now: Int64) {
    guard case .open = input else { return }
    items.append((.segmentEnd(end), now))
  }

  /// Takes a fragment in if there is room for it, else leaves it out and what depends on it.
  fileprivate mutating func admit(_ fragment: PublishedFragment, _ budget: RecordingBudget, now: Int64) -> Admission {
    switch input {
    case .closed: return .passed
    case .open:
      guard budget.take(fragment.range.length) else {
        items.append((.shed, now))
        input = .shedding
        return .beganShedding
      }
    case .shedding:
      guard fragment.fragment.isIndependent, budget.isRelaxed, budget.take(fragment.range.length) else {
        return .passed
      }
      input = .open
    }
    items.append((.event(.fragment(fragment)), now))
    return .passed
  }

  fileprivate enum Admission {
    case passed
    case beganShedding
  }
}

/// The newest state of a recording, for those who ask while the disk is busy.
private final class LatestState: Sendable {
  private let state = Mutex(RecordingState.idle)

  var value: RecordingState { state.withLock { $0 } }

  func set(_ new: RecordingState) {
    state.withLock { $0 = new }
  }
}
