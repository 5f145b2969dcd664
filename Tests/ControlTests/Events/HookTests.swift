import Base
@testable import Control
import Glibc
import Logging
import Support
import Synchronization
import Testing

@Suite struct HookTests {
  private static func event(_ id: Int64, _ stream: String? = "cam") -> Event {
    Event(id: id, kind: .recordingStored, stream: stream, who: "a{b}", at: 5, data: "{}", subject: "cam/x.mp4")
  }

  // MARK: Signatures

  /// The example of the specification.
  @Test func aSignatureIsThatOfStandardWebhooks() throws {
    let secret = try WebhookSecret(parsing: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    #expect(
      secret.signature(id: "msg_p5jXN8AQM9LWM0D4loKWxJek", seconds: 1_614_265_330, body: #"{"test": 2432232314}"#)
        == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
  }

  @Test(arguments: [
    "", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_AAAA", "whsec_!!!!",
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwA",
  ])
  func anythingElseIsNoSecret(text: String) {
    #expect(throws: ValueError.self) { try WebhookSecret(parsing: text) }
  }

  @Test func base64IsReadAsItIsWritten() {
    for length in 0..<70 {
      let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ length) }
      #expect(Base64.decode(Base64.encode(bytes)) == bytes)
    }
    #expect(Base64.encode(Array("fooba".utf8)) == "Zm9vYmE=" && Base64.decode("Zg") == [102])
    #expect(Base64.decode("Z") == nil && Base64.decode("Zg===") == nil && Base64.decode("Z-==") == nil)
  }

  // MARK: Programs

  @Test func valuesAreReplacedWithinArguments() throws {
    let command = try HookCommand(parsing: [
      "/bin/{path}", "{path}", "--id={id}", "{who} {kind}", "{", "}{", "{nothing",
    ])
    #expect(
      command.words(for: Self.event(7), recordings: "/rec")
        == ["/bin/{path}", "/rec/cam/x.mp4", "--id=7", "a{b} recording.stored", "{", "}{", "{nothing"])
    #expect(throws: ValueError.self) { try HookCommand(parsing: ["archive"]) }
    #expect(throws: ValueError.self) { try HookCommand(parsing: []) }
    #expect(throws: ValueError.self) { try HookCommand(parsing: ["/bin/a", "{secret}"]) }
  }

  @Test func aProgramGetsTheEventAndNothingElse() throws {
    let folder = try TemporaryFolder()
    let script =
      #"cat > "$0/in"; ls /proc/self/fd | wc -l > "$0/fds"; env | sort > "$0/env"; grep -E 'Sig(Ign|Blk)' /proc/self/status > "$0/signals""#
    signal(SIGXFSZ, SIG_IGN)
    #expect(HookProcess.run(["/bin/sh", "-c", script, folder.path], input: "event") == .exited(0))
    func text(_ name: String) throws -> String {
      let file = try #require(fopen("\(folder.path)/\(name)", "r"))
      defer { fclose(file) }
      var bytes = [UInt8](repeating: 0, count: 4096)
      let count = fread(&bytes, 1, bytes.count, file)
      return String(decoding: bytes[..<count], as: UTF8.self)
    }
    #expect(try text("in") == "event")
    // Input, output, error, and the folder that ls reads.
    #expect(try text("fds") == "4\n")
    #expect(try !text("env").contains("WEIR") && text("env").contains("LANG=C.UTF-8"))
    // glibc's spawn ignores the two signals that it keeps for itself (32 and 33).
    let signals = try text("signals")
    #expect(
      signals == "SigBlk:\t0000000000000000\nSigIgn:\t0000000180000000\n"
        || !signals.contains { ("1"..."9").contains($0) })
  }

  @Test func aProgramsEndIsTold() {
    #expect(HookProcess.run(["/bin/sh", "-c", "exit 3"], input: "") == .exited(3))
    #expect(HookProcess.run(["/bin/sh", "-c", "kill -9 $$"], input: "") == .signalled(9))
    #expect(HookProcess.run(["/bin/sleep", "60"], input: "", patience: 0) == .tooLong)
    #expect(HookProcess.run(["/bin/sleep", "60"], input: "") { true } == .stopped)
    #expect(HookProcess.run(["/nothing"], input: "") == .notStarted("No such file or directory"))
  }

  // MARK: The queue

  @Test func eventsOfAStreamAreDoneInOrderAndOthersBesideThem() {
    var queue = HookQueue(after: 0)
    queue.add([Self.event(1), Self.event(2), Self.event(3, "stage"), Self.event(4, nil)], through: 9)
    var begun: [Int64] = []
    while let item = queue.begin(now: 0) { begun.append(item.event.id) }
    #expect(begun == [1, 3, 4] && queue.doneThrough == 0)
    queue.finish(3)
    queue.finish(1)
    #expect(queue.doneThrough == 1)
    let next = queue.begin(now: 0)
    #expect(next?.event.id == 2)
    queue.finish(2)
    queue.finish(4)
    #expect(queue.doneThrough == 9 && queue.items.isEmpty)
  }

  @Test func anEventThatFailsHoldsUpItsOwnStreamUntilItIsGivenUp() {
    var queue = HookQueue(after: 0)
    queue.add([Self.event(1), Self.event(2), Self.event(3, "stage")], through: 3)
    var now: Int64 = 0
    for pause in HookSettings.retries {
      let item = queue.begin(now: now)
      #expect(item?.event.id == 1)
      let other = queue.begin(now: now)
      if let other { #expect(other.event.id == 3) }
      queue.finish(3)
      let told = queue.fail(1, now: now)
      #expect(told == pause && queue.nextTime == now + pause)
      let early = queue.begin(now: now + pause - 1)
      #expect(early == nil)
      now += pause
    }
    _ = queue.begin(now: now)
    let last = queue.fail(1, now: now)
    #expect(last == nil && queue.doneThrough == 1)
    // What waited behind it is still in the log.
    let left = queue.next
    #expect(left?.stream == "cam" && left?.after == 1)
    queue.add([Self.event(2)], of: "cam", through: nil)
    let next = queue.begin(now: now)
    #expect(next?.event.id == 2)
    queue.finish(2)
    #expect(queue.doneThrough == 3 && queue.next == nil)
    // A day in all.
    #expect(now >= 24 * 3600 && now < 25 * 3600)
  }

  @Test func aStreamThatIsHeldUpTakesOnePlaceHoweverMuchComes() {
    var queue = HookQueue(after: 0)
    var id: Int64 = 1
    queue.add([Self.event(1)], through: 1)
    _ = queue.begin(now: 0)
    _ = queue.fail(1, now: 0)
    var done = 0
    // Ten times what a hook keeps in memory, of the same stream, another one and none.
    for _ in 0..<10_000 {
      let room = queue.room
      #expect(room >= HookSettings.window - 1)
      queue.add([Self.event(id + 1), Self.event(id + 2, "stage"), Self.event(id + 3, nil)], through: id + 3)
      id += 3
      while let item = queue.begin(now: 1) {
        #expect(item.event.stream != "cam")
        queue.finish(item.event.id)
        done += 1
      }
    }
    #expect(done == 20_000 && queue.items.count == 1 && queue.doneThrough == 0 && !queue.isBusy)
    // The next process repeats nothing that was done.
    #expect(queue.place == HookPlace(through: id, behind: ["cam": 0]))
    var next = HookQueue(at: HookPlace(through: id, text: queue.place.text))
    let first = next.next
    #expect(first?.stream == "cam" && first?.after == 0 && next.isBusy)
    next.add((1...40).map { Self.event($0) }, of: "cam", through: 40)
    #expect(next.items.count == 40 && next.place.behind == ["cam": 0])
    for _ in 0..<40 { next.begin(now: 0).map { next.finish($0.event.id) } }
    #expect(next.next?.after == 40)
    next.add([Self.event(id + 1)], of: "cam", through: nil)
    #expect(next.items.isEmpty && next.place == HookPlace(through: id), "what is newer is read with all others")
  }

  @Test func `a receiver that refuses a thousand streams gets the events of all others`() {
    var queue = HookQueue(after: 0)
    for id in 1...Int64(2 * HookSettings.window) {
      #expect(queue.room > 0)
      queue.add([Self.event(id, "cam-\(id)")], through: id)
      let item = queue.begin(now: 0)
      #expect(item?.event.id == id)
      _ = queue.fail(id, now: 0)
    }
    #expect(queue.items.count == 2 * HookSettings.window && queue.room == HookSettings.window)
    let last = Int64(2 * HookSettings.window) + 1
    queue.add([Self.event(last, "stage")], through: last)
    let item = queue.begin(now: 0)
    #expect(item?.event.id == last)
  }

  @Test func aStreamWithMuchToDoLeavesPlacesToOthers() {
    var queue = HookQueue(after: 0)
    queue.add((1...500).map { Self.event($0) } + [Self.event(501, "stage")], through: 501)
    #expect(queue.items.count == HookSettings.ofStream + 1 && queue.next == nil)
    var order: [Int64] = []
    while order.count < 500 {
      if let left = queue.next {
        let events = ((left.after + 1)...500).prefix(HookSettings.ofStream).map { Self.event($0) }
        queue.add(events, of: left.stream, through: events.last.map { $0.id < 500 ? $0.id : nil } ?? nil)
      }
      guard let item = queue.begin(now: 0) else { break }
      queue.finish(item.event.id)
      if item.event.stream == "cam" { order.append(item.event.id) }
    }
    #expect(order == Array(1...500) && queue.doneThrough == 501)
  }

  @Test func aPlaceIsReadAsItIsWrittenAndOddTextsAreLeftOut() {
    let place = HookPlace(through: 9, behind: ["cam-1.x": 3, "a": 0, nil: 7])
    #expect(HookPlace(through: 9, text: place.text) == place && place.doneThrough == 0)
    #expect(HookPlace(through: 9, text: "") == HookPlace(through: 9))
    #expect(HookPlace(through: 9, text: "a b=1,cam,cam=,cam=-1,=x,,b=2").behind == ["b": 2])
  }

  @Test func atMostFourAreDoneAtATime() {
    var queue = HookQueue(after: 0)
    queue.add((1...9).map { Self.event($0, "cam\($0)") }, through: 9)
    var count = 0
    while queue.begin(now: 0) != nil { count += 1 }
    #expect(count == HookSettings.atOnce)
  }

  // MARK: A hook

  @Test func aHookTakesWhatItWantsAndKeepsItsPlace() async throws {
    let folder = try TemporaryFolder()
    let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    var kinds = EventKinds()
    _ = kinds.add("stream.*")
    let settings = HookSettings(
      name: "h", filter: EventFilter(kinds: kinds), action: .run(try HookCommand(parsing: ["/bin/true"])))
    let got = Mutex<[Int64]>([])
    var wanted: [Int64] = []
    for _ in 0..<2 {
      let log = EventLog(clock: .system(), logger: logger)
      try log.begin(folder: folder.path)
      let hook = Hook(settings, log: log, deliveries: HookDeliveries(), clock: .system(), logger: logger) { event, _ in
        got.withLock { $0.append(event.id) }
        return .done("")
      }
      hook.begin()
      let task = Task { await hook.run() }
      for _ in 0..<50 {
        wanted.append(log.tell(.streamResumed, of: "cam").id)
        log.tell(.diskLow)
      }
      await log.ticket.written()
      for _ in 0..<200 where !hook.isIdle { try await Task.sleep(for: .milliseconds(20)) }
      task.cancel()
      await task.value
      await log.close()
    }
    #expect(got.withLock { $0 } == wanted)
  }

  @Test func afterARestartOnlyWhatWasHeldUpIsDoneAgain() async throws {
    let folder = try TemporaryFolder()
    let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    let settings = try Self.settings("/bin/true")
    let got = Mutex<[(stream: String?, id: Int64)]>([])
    let isBack = Mutex(false)
    var wanted: [String: [Int64]] = [:]
    for process in 0..<2 {
      let log = EventLog(clock: .system(), logger: logger)
      try log.begin(folder: folder.path)
      let hook = Hook(settings, log: log, deliveries: HookDeliveries(), clock: .system(), logger: logger) { event, _ in
        guard event.stream != "cam" || isBack.withLock({ $0 }) else { return .failed("500") }
        got.withLock { $0.append((event.stream, event.id)) }
        return .done("")
      }
      hook.begin()
      let task = Task { await hook.run() }
      if process == 0 {
        for number in 0..<1500 {
          let stream = number % 10 == 0 ? "cam" : "stage-\(number % 3)"
          wanted[stream, default: []].append(log.tell(.streamResumed, of: stream).id)
        }
      }
      await log.ticket.written()
      for _ in 0..<500 where !hook.isIdle { try await Task.sleep(for: .milliseconds(20)) }
      let counts = got.withLock { $0.count }
      #expect(counts == (process == 0 ? 1350 : 1500))
      isBack.withLock { $0 = true }
      task.cancel()
      await task.value
      await log.close()
    }
    let all = got.withLock { $0 }
    for (stream, ids) in wanted { #expect(all.filter { $0.stream == stream }.map(\.id) == ids, "\(stream)") }
  }

  /// Hooks with a delivery that lasts until a test lets it go.
  private final class Slow: Sendable {
    let done = Mutex<[String]>([])
    let begun = Mutex(0)
    let isHeld = Mutex(true)

    func deliver(_ event: Event, _ settings: HookSettings) async -> HookOutcome {
      begun.withLock { $0 += 1 }
      while isHeld.withLock({ $0 }) { try? await Task.sleep(for: .milliseconds(2)) }
      guard case .run(let command) = settings.action else { return .failed("") }
      done.withLock { $0.append(command.words[0]) }
      return .done("")
    }
  }

  private static func settings(_ program: String, _ kinds: String = "stream.*") throws -> HookSettings {
    var wanted = EventKinds()
    _ = wanted.add(kinds)
    return HookSettings(
      name: "h", filter: EventFilter(kinds: wanted), action: .run(try HookCommand(parsing: [program])))
  }

  private static func wait(_ condition: () -> Bool) async throws {
    for _ in 0..<1000 where !condition() { try await Task.sleep(for: .milliseconds(5)) }
  }

  @Test func aDeliveryUnderWayGoesOnAsItBeganWhenAHookChanges() async throws {
    let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    let (log, slow) = (EventLog(clock: .system(), logger: logger), Slow())
    let hook = Hook(
      try Self.settings("/old"), log: log, deliveries: HookDeliveries(), clock: .system(), logger: logger,
      perform: slow.deliver)
    hook.begin()
    let task = Task { await hook.run() }
    log.tell(.streamStarted, of: "cam")
    log.tell(.streamEnded, of: "cam")
    try await Self.wait { slow.begun.withLock { $0 } == 1 }
    #expect(hook.follow(try Self.settings("/new", "stream.ended")))
    slow.isHeld.withLock { $0 = false }
    try await Self.wait { hook.isIdle }
    #expect(slow.done.withLock { $0 } == ["/old", "/new"])
    task.cancel()
    await task.value
  }

  @Test func aHookThatIsRemovedEndsWithWhatItHadUnderWay() async throws {
    let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    let (log, slow) = (EventLog(clock: .system(), logger: logger), Slow())
    let hook = Hook(
      try Self.settings("/old"), log: log, deliveries: HookDeliveries(), clock: .system(), logger: logger,
      perform: slow.deliver)
    hook.begin()
    let task = Task { await hook.run() }
    let first = log.tell(.streamStarted, of: "cam").id
    log.tell(.streamEnded, of: "cam")
    try await Self.wait { slow.begun.withLock { $0 } == 1 }
    hook.remove()
    #expect(!hook.hasEnded && !hook.isIdle)
    log.tell(.streamStarted, of: "cam")
    slow.isHeld.withLock { $0 = false }
    await task.value
    #expect(slow.done.withLock { $0 } == ["/old"] && hook.hasEnded)
    #expect(!hook.follow(try Self.settings("/new")), "another hook takes its place")
    #expect(try #require(log.place(ofHook: "h")).doneThrough >= first)
  }

  @Test func hooksComeAndGo() async throws {
    let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    let log = EventLog(clock: .system(), logger: logger)
    let hooks = Hooks([], log: log, recordings: nil, clock: .system(), logger: logger)
    hooks.begin()
    let task = Task { await hooks.run() }
    log.tell(.streamStarted, of: "before")
    hooks.follow([try Self.settings("/bin/true")])
    #expect(hooks.status.map(\.target) == ["/bin/true"])
    log.tell(.streamStarted, of: "cam")
    try await Self.wait { !hooks.deliveries.all.isEmpty }
    #expect(hooks.deliveries.all.map(\.outcome) == ["exit status 0"], "a new hook begins with what comes")
    hooks.follow([])
    #expect(hooks.status.isEmpty)
    task.cancel()
    await task.value
    await hooks.stop()
  }
}
