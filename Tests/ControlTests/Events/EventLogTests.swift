import Base
@testable import Control
import Glibc
import Logging
import Support
import Synchronization
import Testing

@Suite struct EventLogTests {
  private let folder: TemporaryFolder
  private let time = ManualClock()

  init() throws { folder = try TemporaryFolder() }

  private func log() -> EventLog {
    EventLog(clock: time.clock, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
  }

  @Test func idsRiseAndPagesKeepTheOrder() {
    let log = log()
    let ids = (0..<5).map { log.tell(.streamStarted, of: "cam\($0)").id }
    #expect(ids == ids.sorted() && Set(ids).count == 5)
    let first = log.page(after: 0, limit: 3)
    #expect(first.events.map(\.id) == Array(ids[..<3]) && first.isMore && first.gapUntil == nil)
    let rest = log.page(after: first.through, limit: 3)
    #expect(rest.events.map(\.id) == Array(ids[3...]) && !rest.isMore)
    #expect(log.newest(2).events.map(\.stream) == ["cam3", "cam4"])
    #expect(log.page(after: rest.through, limit: 3).events.isEmpty)
  }

  @Test func aFilterTakesKindsAndStreams() {
    let log = log()
    log.tell(.streamStarted, of: "cam")
    log.tell(.recordingStored, of: "cam")
    log.tell(.recordingStored, of: "stage")
    log.tell(.diskLow)
    var kinds = EventKinds()
    #expect(kinds.add("recording.*") && !kinds.add("recording") && !kinds.add(".*") && !kinds.add("nothing.*"))
    #expect(log.page(after: 0, limit: 9, EventFilter(kinds: kinds)).events.count == 2)
    let ofCam = EventFilter(kinds: kinds, streams: { $0 == "cam" })
    #expect(log.page(after: 0, limit: 9, ofCam).events.map(\.stream) == ["cam"])
    #expect(kinds.add("*") && kinds.all.count == EventKind.allCases.count)
  }

  @Test func theOldestGoAndThatIsSaid() {
    let log = log()
    let first = log.tell(.streamStarted, of: "cam").id
    for _ in 0..<EventLog.limit { log.tell(.streamResumed, of: "cam") }
    let page = log.page(after: first - 1, limit: 1)
    #expect(page.gapUntil == first + 1 && page.events.first?.id == first + 1)
    #expect(log.page(after: 0, limit: 1).gapUntil == nil)
    #expect(log.page(after: first, limit: 1).gapUntil == nil)
  }

  @Test func whatPeersCauseIsLimitedAndCounted() {
    let log = log()
    for _ in 0..<12 { log.tell(.publisherRefused, of: "cam", by: "10.0.0.1:5") }
    #expect(log.page(after: 0, limit: 99).events.count == EventKind.publisherRefused.burst.ofSubject)
    for host in 0..<100 { log.tell(.publisherRefused, of: "cam", by: "10.0.1.\(host):5") }
    #expect(log.page(after: 0, limit: 99).events.count == EventKind.publisherRefused.burst.ofAll)
    time.advance(seconds: 61)
    log.tend()
    #expect(log.newest(1).events.first?.data == #"{"leftOut":75}"#)
    for _ in 0..<12 { log.tell(.streamResumed, of: "cam") }
    #expect(log.newest(99).events.filter { $0.kind == .streamResumed }.count == 12)
  }

  @Test func dataIsBounded() throws {
    let log = log()
    let long = String(repeating: "x", count: 100_000)
    log.tell(
      .streamWarned, of: "cam", by: long,
      ["text": .text(long), "list": .list(Array(repeating: .text(long), count: 99))])
    let event = try #require(log.newest(1).events.first)
    #expect(event.bytes < 6000)
    log.tell(.streamEnded, ["odd": .number(.infinity), "quote": "\"\u{7}"])
    #expect(log.newest(1).events.first?.data == #"{"odd":null,"quote":"\"\u0007"}"#)
  }

  @Test func withAStateFolderEventsAndIdsGoOn() async throws {
    let first = log()
    try first.begin(folder: folder.path)
    let ticket = first.tell(.streamStarted, of: "cam", epoch: "e1", ["a": "b"])
    await ticket.written()
    let isLate = ticket.whenWritten {}
    #expect(!isLate)
    first.tell(.streamStarted, of: "stage", epoch: "e2")
    first.tell(.streamEnded, of: "stage", epoch: "e2")
    first.note(HookPlace(through: ticket.id, behind: ["cam": 3, nil: 4]), ofHook: "h")
    await first.close()

    let second = log()
    try second.begin(folder: folder.path)
    let events = second.page(after: 0, limit: 9).events
    #expect(
      events.map(\.kind) == [.streamStarted, .streamStarted, .streamEnded] && events.first?.data == #"{"a":"b"}"#)
    #expect(second.openStreams == ["cam": OpenStream(epoch: "e1", kind: .streamStarted)])
    #expect(second.endedEpochs == ["e2"] && second.place(ofHook: "h")?.through == ticket.id)
    #expect(second.place(ofHook: "h")?.behind == ["cam": 3, nil: 4])
    let next = second.tell(.streamInterrupted, of: "cam", epoch: "e1")
    await next.written()
    #expect(next.id > (events.last?.id ?? .max))
    #expect(second.page(after: ticket.id, limit: 9).events.count == 3)
    await second.close()
  }

  @Test func nothingIsShownBeforeItIsWritten() async throws {
    let log = log()
    try log.begin(folder: folder.path)
    let seen = Mutex<[Bool]>([])
    for _ in 0..<200 {
      let ticket = log.tell(.streamResumed, of: "cam")
      let isWaiting = ticket.whenWritten { [log] in
        let isThere = log.page(after: ticket.id - 1, limit: 1).events.first?.id == ticket.id
        seen.withLock { $0.append(isThere) }
      }
      if !isWaiting { seen.withLock { $0.append(true) } }
    }
    await log.ticket.written()
    #expect(seen.withLock { $0 } == Array(repeating: true, count: 200))
    await log.close()
  }

  @Test func anEventIsHeldUntilItsEffectCanBeSeen() async throws {
    let log = log()
    try log.begin(folder: folder.path)
    let called = Mutex(0)
    _ = log.follow { called.withLock { $0 += 1 } }
    let first = log.tell(.streamResumed, of: "cam")
    let held = log.tell(.recordingStored, of: "cam", key: "k", isHeld: true)
    let other = log.tell(.recordingStored, of: "cam", key: "l", isHeld: true)
    let last = log.tell(.streamEnded, of: "cam")
    await last.written()
    let isWaiting = held.whenWritten {}
    #expect(!isWaiting, "it is written, and its effect may be")
    #expect(log.page(after: 0, limit: 9).events.map(\.id) == [first.id] && log.newestID == first.id)
    #expect(log.newest(9).through == first.id)
    log.show(key: "l")
    #expect(log.newestID == first.id, "the order stays")
    let before = called.withLock { $0 }
    log.show(key: "k")
    #expect(called.withLock { $0 } == before + 1)
    #expect(log.page(after: first.id, limit: 9).events.map(\.id) == [held.id, other.id, last.id])
    log.show(key: "k")
    log.show(key: "nothing")
    #expect(called.withLock { $0 } == before + 1)
    await log.close()
    // The next process shows what this one told.
    let second = self.log()
    try second.begin(folder: folder.path)
    #expect(second.newestID == last.id)
    await second.close()
  }

  @Test func anEffectThatDoesNotComeHoldsNothingForLong() {
    let log = log()
    let held = log.tell(.recordingStored, of: "cam", key: "k", isHeld: true)
    time.advance(seconds: 0.9)
    log.tend()
    #expect(log.newestID == held.id - 1)
    time.advance(seconds: 0.1)
    log.tend()
    #expect(log.newestID == held.id)
    let next = log.tell(.recordingStored, of: "cam", key: "l", isHeld: true)
    log.endReading()
    #expect(log.newestID == next.id)
  }

  @Test func theSameThingIsToldOnceAlsoByTheNextProcess() async throws {
    let first = log()
    try first.begin(folder: folder.path)
    let one = first.tell(.recordingStored, of: "cam", key: "k")
    #expect(first.tell(.recordingSalvaged, of: "cam", key: "k").id == one.id)
    await first.close()
    let second = log()
    try second.begin(folder: folder.path)
    #expect(second.tell(.recordingSalvaged, of: "cam", key: "k").id == one.id)
    second.forget(key: "k")
    #expect(second.tell(.recordingSalvaged, of: "cam", key: "k").id > one.id)
    await second.ticket.written()
    #expect(second.page(after: 0, limit: 9).events.count == 2)
    await second.close()
  }

  @Test func aDiskThatIsLateDelaysNothingAnyLonger() throws {
    var state = EventLogState(nextID: 1)
    let (database, _) = try EventDatabase.open(folder: folder.path)
    defer { database.close() }
    state.resume(EventDatabase.Contents(), database)
    let woken = Mutex(0)
    let event = Event(id: 1, kind: .streamResumed, at: 5, data: "{}")
    guard case .toWrite(1, begins: true) = state.append(event, isHeld: false, now: 0) else {
      Issue.record("is written first"); return
    }
    state.waiting.append((1, { woken.withLock { $0 += 1 } }))
    let late = state.becomeLate()
    for body in late.woken { body() }
    #expect(late.isNew && woken.withLock { $0 } == 1 && state.visible == 1 && state.written == 0)
    var next = event
    next.id = 2
    guard case .shown(2, _) = state.append(next, isHeld: false, now: 0) else {
      Issue.record("is shown at once"); return
    }
    let taken = state.takeBatch(9)
    let batch = try #require(taken)
    #expect(batch.events.map(\.id) == [1, 2])
    try database.write(batch)
    let isBack = state.wrote(batch, now: 1).isBack
    #expect(isBack && !state.isLate && state.written == 2)
    #expect(!state.needsWriting)
  }

  @Test func aDamagedLogBeginsAnew() async throws {
    let text = Array(String(repeating: "no database. ", count: 100).utf8)
    let path = "\(folder.path)/\(EventDatabase.fileName)"
    let descriptor = open(path, O_WRONLY | O_CREAT, 0o600)
    #expect(write(descriptor, text, text.count) == text.count)
    close(descriptor)
    let log = log()
    try log.begin(folder: folder.path)
    await log.tell(.streamResumed, of: "cam").written()
    #expect(log.page(after: 0, limit: 9).events.count == 1)
    await log.close()
  }

  @Test func idsOfAClockThatWasSetBackRiseAllTheSame() async throws {
    let first = log()
    try first.begin(folder: folder.path)
    let old = first.tell(.streamResumed, of: "cam").id
    await first.close()
    let early = EventLog(
      clock: SteadyClock(ClockReading(wall: 1_000_000_000, monotonic: 0)) { 0 },
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    let before = early.tell(.streamStarted, of: "cam", key: "early")
    #expect(before.id < old)
    try early.begin(folder: folder.path)
    await early.ticket.written()
    let after = early.tell(.streamEnded, of: "cam").id
    #expect(after > old + 1)
    #expect(early.page(after: old, limit: 9).events.first?.kind == .streamStarted)
    await early.close()
  }
}
