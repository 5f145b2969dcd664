@testable import Delivery
import HTTP
import NIOCore
import NIOEmbedded
import Publishing
import Synchronization
import Testing

/// Pages that wait for a stream: what they cost, and how long they are held.
@Suite struct AwaitedLooksTests {
  /// What a look finds, and how often somebody looked or made a response.
  private final class State: Sendable {
    let isThere = Atomic(false)
    let looks = Atomic(0)
    let responses = Atomic(0)
  }

  private let looks = AwaitedLooks()
  private let state = State()

  private func awaited(_ name: String, _ goal: AwaitedState.Goal = .live) throws -> AwaitedLooks.Awaited {
    AwaitedLooks.Awaited(name: try #require(StreamName(name)), goal: goal)
  }

  private func wait(for awaited: AwaitedLooks.Awaited, on loop: EmbeddedEventLoop) -> EventLoopFuture<HTTPResponse> {
    looks.wait(for: awaited, on: loop) { [state] in
      state.looks.add(1, ordering: .relaxed)
      return state.isThere.load(ordering: .relaxed)
    } response: { [state] in
      state.responses.add(1, ordering: .relaxed)
      return AwaitedState.nothing
    }
  }

  private var counted: [Int] {
    [state.looks.load(ordering: .relaxed), state.responses.load(ordering: .relaxed)]
  }

  @Test func `Ten thousand pages cost as many looks as one, and get one response`() throws {
    let loop = EmbeddedEventLoop()
    let cam = try awaited("cam")
    var answered = 0
    for _ in 0..<10_000 { wait(for: cam, on: loop).assumeIsolated().whenSuccess { _ in answered += 1 } }
    loop.advanceTime(by: .milliseconds(49))
    #expect(counted == [0, 0])
    loop.advanceTime(by: .milliseconds(101))
    #expect(counted == [3, 0] && answered == 0)
    state.isThere.store(true, ordering: .relaxed)
    loop.advanceTime(by: .milliseconds(50))
    #expect(counted == [4, 1] && answered == 10_000)
    loop.advanceTime(by: .seconds(5))
    #expect(counted == [4, 1], "nobody waits, and nobody looks")
  }

  @Test func `Each page is held for a second at most, also beside others that came before it`() throws {
    let loop = EmbeddedEventLoop()
    let cam = try awaited("cam")
    var held: [Int] = []
    var now = 0
    for came in [0, 20, 500] {
      loop.advanceTime(by: .milliseconds(Int64(came - now)))
      now = came
      wait(for: cam, on: loop).assumeIsolated().whenSuccess { _ in held.append(now - came) }
    }
    while now < 2000 {
      now += 10
      loop.advanceTime(by: .milliseconds(10))
    }
    #expect(held.count == 3 && held.allSatisfy { (940...1000).contains($0) }, "\(held)")
    #expect(counted == [30, 2], "the first two came between two looks")
    // Who comes later is looked for anew.
    state.isThere.store(true, ordering: .relaxed)
    var isAnswered = false
    wait(for: cam, on: loop).assumeIsolated().whenSuccess { _ in isAnswered = true }
    loop.advanceTime(by: .milliseconds(50))
    #expect(isAnswered && counted == [31, 3])
  }

  @Test func `Pages of other loops wait for the same look, those of other names and goals for their own`() throws {
    let (loop, other) = (EmbeddedEventLoop(), EmbeddedEventLoop())
    var answered: [String] = []
    for (name, goal, place) in [
      ("cam", .live, loop), ("cam", .live, other), ("cam", .starting, loop), ("desk", .live, loop),
    ] as [(String, AwaitedState.Goal, EmbeddedEventLoop)] {
      wait(for: try awaited(name, goal), on: place).assumeIsolated().whenSuccess { _ in
        answered.append(place === loop ? "here" : "there")
      }
    }
    state.isThere.store(true, ordering: .relaxed)
    loop.advanceTime(by: .milliseconds(50))
    #expect(counted == [3, 3] && answered == ["here", "here", "here"])
    other.run()
    #expect(answered.count == 4, "it is answered on its own loop")
  }
}
