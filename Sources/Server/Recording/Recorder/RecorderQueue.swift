internal import Base
internal import FMP4
internal import NIOCore
internal import Streams

/// The items that a recorder or a time-shift buffer has received and not written yet, in order. When memory is short it leaves
/// out whole groups of pictures. A value; it uses no thread and no disk.
struct RecorderQueue {
  enum Item {
    case event(StoredEvent)
    case segmentEnd(SegmentEnd)
    /// Fragments were left out here for lack of memory.
    case shed
    /// The fragments left out end at this media time.
    case shedUntil(MediaTime)
    /// Fragments were left out here: their key frame had been given up. `isLong` where a segment began without one.
    case keyless(isLong: Bool)
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
      case .event, .shed, .shedUntil, .keyless, .stop, .cancel: false
      }
    }
  }

  private enum Input {
    case open
    /// Memory is short: fragments are left out up to the next one that decoding can start with.
    case shedding
    /// The recording has ended: nothing more is taken in.
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

  /// The result of offering an item.
  enum Admission {
    case passed
    case beganShedding
  }

  enum Work {
    case item(Item)
    case tick
  }

  private let budget: RecordingBudget
  /// Only audio is recorded: it needs no key frame.
  private let isAudio: Bool
  private var pinned: SegmentMemoryCharge
  private var items = CircularBuffer<(item: Item, since: MonotonicTime)>()
  /// This many of the newest items are not handed out yet.
  private var held = 0
  /// Nil where everything is to be written without a trial.
  private var trial: RecordingTrial?
  /// The item being written, and since when it had been waiting.
  private var work: (item: Item?, since: MonotonicTime)?
  private var input = Input.open
  private var drain = Drain.idle
  /// Work that depends on time alone is due.
  private var tick = Tick.none
  /// End of the fragments that are being left out at present; nil if there are none.
  private var shedEnd: MediaTime?
  /// The key frame that was held has been given up: fragments are left out up to the next one.
  private var lostItsKey = false

  init(budget: RecordingBudget, trial: RecordingTrial? = nil, isAudio: Bool = false) {
    self.budget = budget
    self.isAudio = isAudio
    self.trial = trial
    pinned = SegmentMemoryCharge(budget: budget)
  }

  var isClosed: Bool { input == .closed }
  var isShedding: Bool { input == .shedding }
  /// Nothing waits, and nothing is being written.
  var isIdle: Bool { drain == .idle }
  /// Since when the item being written, or else the next one, has been waiting.
  var waitingSince: MonotonicTime? { work?.since ?? (items.count > held ? items.first?.since : nil) }

  // MARK: Input

  mutating func add(_ event: StoredEvent, now: MonotonicTime) {
    if isClosed { return }
    switch event {
    // The end of the gap must be dated by the clock that was valid during the gap.
    case .clock: addShedEnd(now)
    case .initialization(let initSegment):
      if trial?.goesOn(with: initSegment.tracks) == false { giveUpHeld() }
    // The media goes on under other dates.
    case .discontinuity(.clock): break
    case .discontinuity: if trial?.goesOnAfterBreak() == false { giveUpHeld() }
    case .fragment, .segmentEnd, .redated, .end: break
    }
    append(.event(event), now)
  }

  /// An item after a held fragment is held as well.
  private mutating func append(_ item: Item, _ now: MonotonicTime) {
    items.append((item, now))
    if held > 0 { held += 1 }
  }

  /// A segment is complete, and the live window begins with the segment `windowStart`. While fragments are left out, segment ends
  /// are left out too.
  mutating func add(_ end: SegmentEnd?, windowStart: Int?, now: MonotonicTime) -> Admission {
    if isClosed { return .passed }
    let admission = windowStart.map { leaveWindow(before: $0, now: now) } ?? .passed
    if input == .open, !lostItsKey, let end { append(.segmentEnd(end), now) }
    return admission
  }

  /// Takes in a fragment if there is memory for it. Otherwise leaves it out, with the fragments that depend on it.
  mutating func admit(_ fragment: PublishedFragment, now: MonotonicTime) -> Admission {
    switch input {
    case .closed: return .passed
    case .open:
      if lostItsKey {
        guard fragment.fragment.isIndependent else { return leaveOutKeyless(fragment, now) }
        (lostItsKey, shedEnd) = (false, nil)
      }
      guard pinned.take(fragment) else { return shed(until: fragment.fragment.end, now) }
    case .shedding:
      guard fragment.fragment.isIndependent, budget.isRelaxed, pinned.take(fragment) else {
        pinned.passOver(fragment)
        return shed(until: fragment.fragment.end, now)
      }
      input = .open
      (lostItsKey, shedEnd) = (false, nil)
    }
    // What begins no file is not held: it belongs to the file before, or is missing.
    let isTried = trial.map { $0.isOn && $0.takes(fragment.fragment) } ?? false
    items.append((.event(.fragment(fragment)), now))
    if isTried {
      held += 1
      trial?.add(fragment, isMemoryShort: !budget.isRelaxed)
      if trial?.isOn == false { held = 0 }
    }
    return .passed
  }

  /// Drops the held items: they were too little for a file.
  private mutating func giveUpHeld() {
    let first = items.count - held
    var kept = CircularBuffer<(item: Item, since: MonotonicTime)>(items.prefix(first))
    for entry in items.dropFirst(first) {
      if let fragment = entry.item.fragment {
        pinned.release(fragment)
        lostItsKey = !isAudio
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

  /// Work that depends on time alone is due.
  mutating func addTick() {
    if input == .open { tick = .due }
  }

  /// Appends the last item. False if the queue was closed already.
  mutating func close(with item: Item, now: MonotonicTime) -> Bool {
    if isClosed { return false }
    // Too little for a file stays too little when the stream ends. An explicit stop stores what there is.
    if case .event = item { giveUpHeld() }
    held = 0
    trial?.pass()
    if case .cancel = item {
      // A cancelled recording needs no further writes.
      leaveOut { _ in true }
    } else {
      // No further segment end comes to report the live window. Where the disk keeps up, the rest is written within moments, so
      // nothing of it is given up for the sake of memory.
      if isShedding { _ = leaveWindow(before: .max, now: now) }
      addShedEnd(now)
    }
    items.append((item, now))
    input = .closed
    return true
  }

  /// Closes the queue. False if it was closed already.
  mutating func close() -> Bool {
    defer { input = .closed }
    return !isClosed
  }

  /// No thread takes items out any more: drops all of them.
  mutating func abandon() {
    held = 0
    leaveOut { _ in true }
    finishWork()
    input = .closed
    tick = .none
    drain = .idle
  }

  // MARK: Output

  /// Whether a thread must be started to take items out. That thread calls `next` until it returns nil.
  mutating func schedule() -> Bool {
    guard drain == .idle, tick == .due || items.count > held else { return false }
    drain = .scheduled
    return true
  }

  /// The next item; the one before it is done. Nil when there is none.
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

  // MARK: Leaving out

  /// Leaves out a fragment whose key frame was given up: behind the group before, its pictures would be broken.
  private mutating func leaveOutKeyless(_ fragment: PublishedFragment, _ now: MonotonicTime) -> Admission {
    pinned.passOver(fragment)
    let isLong = fragment.fragment.startsSegment
    if shedEnd == nil || isLong { items.append((.keyless(isLong: isLong), now)) }
    shedEnd = max(shedEnd ?? fragment.fragment.end, fragment.fragment.end)
    return .passed
  }

  private mutating func shed(until end: MediaTime, _ now: MonotonicTime) -> Admission {
    shedEnd = max(shedEnd ?? end, end)
    giveUpHeld()
    guard input == .open else { return .passed }
    items.append((.shed, now))
    input = .shedding
    return .beganShedding
  }

  /// Segments that leave the window are charged as a whole and cannot be refused. If the budget is exceeded, the newest segments
  /// are left out, which frees their memory.
  private mutating func leaveWindow(before number: Int, now: MonotonicTime) -> Admission {
    pinned.leaveWindow(before: number)
    if budget.isOver { giveUpHeld() }
    var admission = Admission.passed
    while budget.isOver, let newest = pinned.newest, let end = leaveOut(where: { $0.isOf(segment: newest) }) {
      if shed(until: end, now) == .beganShedding { admission = .beganShedding }
    }
    return admission
  }

  /// Removes the items that match. Returns where the last fragment among them ends; nil if there was none.
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

  private mutating func addShedEnd(_ now: MonotonicTime) {
    guard let end = shedEnd else { return }
    items.append((.shedUntil(end), now))
    shedEnd = nil
  }
}
