import Base
@testable import Control
import Glibc
import NIOCore
import Synchronization
import Testing

/// Looks for names. The resolver is the test's own, so that no network is asked.
@Suite(.timeLimit(.minutes(1))) struct HostNamesTests {
  /// Knows all names but those that begin with "no", and says nothing of those that begin with "dead" before `answers`.
  private final class Resolver: Sendable {
    private let state = Mutex((asked: [String](), isSilent: true))

    var asked: [String] { state.withLock { $0.asked } }
    func answer() { state.withLock { $0.isSilent = false } }

    func look(_ host: String) -> HostNames.Outcome {
      state.withLock { $0.asked.append(host) }
      while host.hasPrefix("dead"), state.withLock({ $0.isSilent }) { usleep(1000) }
      return host.hasPrefix("no") ? .unknown("no such name") : .found
    }

    func until(asked count: Int) async throws {
      for _ in 0..<2000 where asked.count < count { try await Task.sleep(for: .milliseconds(5)) }
      #expect(asked.count == count)
    }
  }

  private final class Count: Sendable {
    private let value = Atomic(0)
    var now: Int { value.load(ordering: .relaxed) }
    func add() { value.add(1, ordering: .relaxed) }
  }

  private final class Time: Sendable {
    private let value = Mutex(NIODeadline.now())
    var now: NIODeadline { value.withLock { $0 } }
    func pass(_ amount: TimeAmount) { value.withLock { $0 = $0 + amount } }
  }

  private let resolver = Resolver()
  private let names: HostNames

  init() { names = HostNames(ask: resolver.look) }

  private func after(seconds: Int64) -> NIODeadline { .now() + .seconds(seconds) }

  @Test(arguments: ["127.0.0.1", "::1", "192.0.2.7"]) func `An address is not looked up`(_ host: String) async {
    #expect(await names.look(up: host, until: .now()) == .found)
    #expect(resolver.asked.isEmpty)
  }

  @Test func `A name that nobody has is told as one, each time`() async {
    for _ in 0..<2 {
      #expect(await names.look(up: "nobody", until: after(seconds: 10)) == .unknown("no such name"))
    }
    #expect(resolver.asked == ["nobody", "nobody"])
  }

  @Test func `Who has no time left hears so, and nobody is asked`() async {
    #expect(await names.look(up: "cam", until: .now() - .seconds(1)) == .late)
    #expect(resolver.asked.isEmpty)
  }

  @Test func `A name is looked up once for all who ask meanwhile`() async throws {
    let waiting = Count()
    let outcomes = try await withThrowingTaskGroup(of: HostNames.Outcome.self) { group in
      for _ in 0..<200 {
        group.addTask {
          waiting.add()
          return await names.look(up: "dead", until: after(seconds: 30))
        }
      }
      while waiting.now < 200 { try await Task.sleep(for: .milliseconds(5)) }
      try await Task.sleep(for: .milliseconds(100))
      resolver.answer()
      return try await group.reduce(into: [HostNames.Outcome]()) { $0.append($1) }
    }
    #expect(outcomes.count == 200 && outcomes.allSatisfy { $0 == .found })
    #expect(resolver.asked == ["dead"])
  }

  /// One below the most names, then as many, then one more.
  @Test func `Dead names hold up no other, and their number is bounded`() async throws {
    func begin(_ number: Int) -> Task<HostNames.Outcome, Never> {
      Task { await names.look(up: "dead-\(number)", until: after(seconds: 30)) }
    }
    var dead = (1..<HostNames.most).map(begin)
    try await resolver.until(asked: HostNames.most - 1)
    #expect(await names.look(up: "good", until: after(seconds: 10)) == .found)
    dead.append(begin(0))
    try await resolver.until(asked: HostNames.most + 1)
    #expect(
      await names.look(up: "another", until: after(seconds: 10)) == .unknown("too many names are being looked up"))
    #expect(await names.look(up: "good", until: after(seconds: 10)) == .found, "it was found before")
    resolver.answer()
    for task in dead { #expect(await task.value == .found) }
    #expect(await names.look(up: "another", until: after(seconds: 10)) == .found, "there are threads again")
  }

  @Test func `Who has waited long enough goes on, and what is found later needs no look`() async throws {
    #expect(await names.look(up: "dead", until: .now() + .milliseconds(50)) == .late)
    resolver.answer()
    // The look may have a moment to go.
    for _ in 0..<3 { #expect(await names.look(up: "dead", until: after(seconds: 10)) == .found) }
    #expect(resolver.asked == ["dead"])
  }

  @Test func `A task that is cancelled waits no longer`() async throws {
    let task = Task { await names.look(up: "dead", until: after(seconds: 50)) }
    try await resolver.until(asked: 1)
    let began = ContinuousClock.now
    task.cancel()
    #expect(await task.value == .late)
    #expect(ContinuousClock.now - began < .seconds(5))
    resolver.answer()
  }

  /// A part of the system's resolver may hang for ever.
  @Test func `A look that does not return holds up its host for a minute, and others never`() async throws {
    let time = Time()
    let hangs = Mutex(1)
    let asked = Count()
    let names = HostNames(now: { time.now }) { host in
      asked.add()
      if hangs.withLock({ left in
        left -= 1; return left >= 0
      }) {
        while asked.now < 100 { usleep(1000) }
      }
      return .found
    }
    defer { for _ in 0..<100 { asked.add() } }
    func look(_ host: String, milliseconds: Int64) async -> HostNames.Outcome {
      await names.look(up: host, until: time.now + .milliseconds(milliseconds))
    }
    #expect(await look("cam", milliseconds: 50) == .late)
    time.pass(HostNames.patience - .seconds(1))
    #expect(await look("cam", milliseconds: 50) == .late)
    #expect(asked.now == 1, "the same look is waited for")
    #expect(await look("other", milliseconds: 10_000) == .found)
    time.pass(.seconds(1))
    #expect(await look("cam", milliseconds: 10_000) == .found)
    #expect(asked.now == 3)
    // The first one still hangs. A second one that does is joined by all who come later.
    time.pass(HostNames.validity)
    hangs.withLock { $0 = 1 }
    for _ in 0..<3 {
      #expect(await look("cam", milliseconds: 50) == .late)
      time.pass(HostNames.patience + .seconds(1))
    }
    #expect(asked.now == 4, "a host has two looks at a time, at most")
  }

  @Test func `Looks take their descriptors from the budget`() async {
    let budget = DescriptorBudget(limit: 64)
    let names = HostNames(descriptors: budget, ask: resolver.look)
    #expect(await names.look(up: "good", until: after(seconds: 10)) == .found)
    var taken = 0
    while budget.takeLook() { taken += 1 }
    #expect(taken == budget.files / DescriptorBudget.perLook, "the look has given back what it took")
    #expect(
      await names.look(up: "another", until: after(seconds: 10))
        == .unknown("too few descriptors are free for the look for its name"))
    #expect(resolver.asked == ["good"])
    budget.giveBackLook()
    #expect(await names.look(up: "another", until: after(seconds: 10)) == .found)
  }

  @Test func `A host that keeps no connection is looked up again`() async {
    #expect(await names.look(up: "cam", until: after(seconds: 10)) == .found)
    names.forget("cam")
    #expect(await names.look(up: "cam", until: after(seconds: 10)) == .found)
    #expect(resolver.asked.count == 2)
  }

  @Test func `A host that was found or has answered is not looked up for 30 s`() async {
    let time = Time()
    let names = HostNames(now: { time.now }, ask: resolver.look)
    func look() async -> HostNames.Outcome { await names.look(up: "cam", until: time.now + .seconds(10)) }
    #expect(await look() == .found)
    time.pass(HostNames.validity - .nanoseconds(1))
    #expect(await look() == .found)
    #expect(resolver.asked.count == 1)
    time.pass(.nanoseconds(1))
    #expect(await look() == .found)
    #expect(resolver.asked.count == 2)
    // An answer counts as a look.
    time.pass(HostNames.validity - .nanoseconds(1))
    names.note("cam")
    time.pass(HostNames.validity - .nanoseconds(1))
    #expect(await look() == .found)
    #expect(resolver.asked.count == 2)
  }
}
