internal import FMP4
internal import NIOCore

/// What a recorder or a spool has been told and has not written yet, in its order. Takes in what there is room for in memory, and
/// leaves out the rest by whole groups of pictures. A value; it knows no thread and no disk.
struct RecorderQueue {
  enum Item {
    case event(StoredEvent)
    case segmentEnd(SegmentEnd)
    /// Fragments that found no room are missing here.
    case shed
    /// They went on up to that time.
    case shedUntil(MediaTime)
    case stop
    case cancel

    fileprivate var fragment: PublishedFragment? {
      if case .event(.fragment(let fragment)) = self { return fragment }
      return nil
    }

    fileprivate func isOf(segment number: Int) -> Bool {
      switch self {
      case .event(.fragment(let fragment)): fragment.sequenceNumberOfSegment == number
      case .segmentEnd(let end): end.number == number
      case .event, .shed, .shedUntil, .stop, .cancel: false
      }
    }
  }

  private enum Input {
    case open
    /// No room: fragments are passed over up to one that decoding can start with.
    case shedding
    /// The end has been told: nothing more is recorded.
    case closed
  }

  private enum Drain {
    case idle
    case scheduled
  }

  private enum Tick {
    case none
    case due
  }

  /// What came of taking something in.
  enum Admission {
    case passed
    case beganShedding
  }

  enum Work {
    case item(Item)
    case tick
  }

  private let budget: RecordingBudget
  private var pinned: SegmentMemoryCharge
  private var items = CircularBuffer<(item: Item, since: Int64)>()
  /// So many of the newest are not handed out yet.
  private var held = 0
  /// Nil where whatever comes is to be written.
  private var trial: RecordingTrial?
  /// What is with the job, and since when it had been waiting, in monotonic nanoseconds.
  private var work: (item: Item?, since: Int64)?
  private var input = Input.open
  private var drain = Drain.idle
  /// The job wants to look after what depends on the time alone.
  private var tick = Tick.none
  /// Where what is left out at the moment ends, as far as that has come.
  private var shedEnd: MediaTime?

  init(budget: RecordingBudget, trial: RecordingTrial? = nil) {
    self.budget = budget
    self.trial = trial
    pinned = SegmentMemoryCharge(budget: budget)
  }

  var isClosed: Bool { input == .closed }
  var isShedding: Bool { input == .shedding }
  /// Nothing waits, and nothing is with the job.
  var isIdle: Bool { drain == .idle }
  /// Since when what is with the job, or is next, has been waiting.
  var waitingSince: Int64? { work?.since ?? (items.count > held ? items.first?.since : nil) }

  // MARK: What comes in

  mutating func add(_ event: StoredEvent, now: Int64) {
    if isClosed { return }
    switch event {
    // By another clock nobody could say when that was.
    case .clock: addShedEnd(now)
    case .initialization(let initSegment):
      trial?.change(to: initSegment.tracks)
      if trial?.isOn == true { giveUpHeld() }
    // Nothing waits across a hole.
    case .discontinuity: if trial?.isOn == true { giveUpHeld() }
    case .fragment, .segmentEnd, .redated, .end: break
    }
    append(.event(event), now)
  }

  /// What comes behind a fragment that waits is handed out behind it.
  private mutating func append(_ item: Item, _ now: Int64) {
    items.append((item, now))
    if held > 0 { held += 1 }
  }

  /// A segment is complete, and the live window begins with another one. While fragments are left out, nobody needs to
  /// know where segments end.
  mutating func add(_ end: SegmentEnd?, windowStart: Int?, now: Int64) -> Admission {
    if isClosed { return .passed }
    let admission = windowStart.map { leaveWindow(before: $0, now: now) } ?? .passed
    if input == .open, let end { append(.segmentEnd(end), now) }
    return admission
  }

  /// Takes a fragment in if there is room for it, else leaves it out and what depends on it.
  mutating func admit(_ fragment: PublishedFragment, now: Int64) -> Admission {
    switch input {
    case .closed: return .passed
    case .open:
      if let trial, trial.isOn, !trial.takes(fragment.fragment) {
        pinned.passOver(fragment)
        return .passed
      }
      guard pinned.take(fragment) else { return shed(until: fragment.fragment.end, now) }
    case .shedding:
      guard fragment.fragment.isIndependent, budget.isRelaxed, pinned.take(fragment) else {
        pinned.passOver(fragment)
        return shed(until: fragment.fragment.end, now)
      }
      input = .open
      shedEnd = nil
    }
    items.append((.event(.fragment(fragment)), now))
    if trial?.isOn == true {
      held += 1
      trial?.add(fragment, isMemoryShort: !budget.isRelaxed)
      if trial?.isOn == false { held = 0 }
    }
    return .passed
  }

  /// What waits for a file was not worth one.
  private mutating func giveUpHeld() {
    let first = items.count - held
    var kept = CircularBuffer<(item: Item, since: Int64)>(items.prefix(first))
    for entry in items.dropFirst(first) {
      if let fragment = entry.item.fragment {
        pinned.release(fragment)
      } else if case .segmentEnd = entry.item {
        continue
      } else {
        kept.append(entry)
      }
    }
    items = kept
    held = 0
    trial?.restart()
  }

  /// Something is due that depends on the time alone.
  mutating func addTick() {
    if input == .open { tick = .due }
  }

  /// Nothing follows that item. False when it had ended already.
  mutating func close(with item: Item, now: Int64) -> Bool {
    if isClosed { return false }
    // What was too little for a file stays so when the stream ends; who asks for one gets what there is.
    if case .event = item { giveUpHeld() }
    held = 0
    trial?.pass()
    if case .cancel = item {
      // What nobody wants need not be written.
      leaveOut { _ in true }
    } else {
      // The recorder hears no more of the live window. Where the disk keeps up, what is left is written in a moment, and
      // nothing of it is given up for the sake of memory.
      if isShedding { _ = leaveWindow(before: .max, now: now) }
      addShedEnd(now)
    }
    items.append((item, now))
    input = .closed
    return true
  }

  /// Nothing more is recorded. False when that was known.
  mutating func close() -> Bool {
    defer { input = .closed }
    return !isClosed
  }

  /// Nobody takes anything out any more.
  mutating func abandon() {
    held = 0
    leaveOut { _ in true }
    finishWork()
    input = .closed
    tick = .none
    drain = .idle
  }

  // MARK: What goes out

  /// Whether somebody must be called who takes things out; they then do so until there is nothing.
  mutating func schedule() -> Bool {
    guard drain == .idle, tick == .due || items.count > held else { return false }
    drain = .scheduled
    return true
  }

  /// What comes next; the job is done with what came before. Nil when there is nothing.
  mutating func next() -> Work? {
    finishWork()
    if items.count > held, let (item, since) = items.popFirst() {
      work = (item, since)
      return .item(item)
    }
    if tick == .due {
      tick = .none
      return .tick
    }
    drain = .idle
    return nil
  }

  private mutating func finishWork() {
    if let fragment = work?.item?.fragment { pinned.release(fragment) }
    work = nil
  }

  // MARK: What finds no room

  private mutating func shed(until end: MediaTime, _ now: Int64) -> Admission {
    shedEnd = max(shedEnd ?? end, end)
    giveUpHeld()
    guard input == .open else { return .passed }
    items.append((.shed, now))
    input = .shedding
    return .beganShedding
  }

  /// What leaves the window counts as a whole, and cannot be refused: where it is too much, the newest segments are left
  /// out again, whose memory goes with them.
  private mutating func leaveWindow(before number: Int, now: Int64) -> Admission {
    pinned.leaveWindow(before: number)
    if budget.isOver { giveUpHeld() }
    var admission = Admission.passed
    while budget.isOver, let newest = pinned.newest, let end = leaveOut(where: { $0.isOf(segment: newest) }) {
      if shed(until: end, now) == .beganShedding { admission = .beganShedding }
    }
    return admission
  }

  /// Takes back what waits; gives where the last fragment of it ends, if there was one.
  @discardableResult
  private mutating func leaveOut(where isMeant: (Item) -> Bool) -> MediaTime? {
    var end: MediaTime?
    for (item, _) in items where isMeant(item) {
      guard let fragment = item.fragment else { continue }
      pinned.release(fragment)
      end = max(end ?? fragment.fragment.end, fragment.fragment.end)
    }
    items.removeAll { isMeant($0.item) }
    return end
  }

  private mutating func addShedEnd(_ now: Int64) {
    guard let end = shedEnd else { return }
    items.append((.shedUntil(end), now))
    shedEnd = nil
  }
}
