import Base
import Glibc
import NIOCore
import NIOPosix
import Synchronization
import Testing

@Suite struct SingleFlightTests {
  private var loop: any EventLoop { MultiThreadedEventLoopGroup.singleton.any() }

  /// Work that lasts until it is let go.
  private final class Work: Sendable {
    private let mayEnd = Atomic(false)
    private let count = Atomic(0)

    var begun: Int { count.load(ordering: .relaxed) }

    func end() { mayEnd.store(true, ordering: .releasing) }

    func run() -> Int {
      let number = count.wrappingAdd(1, ordering: .relaxed).newValue
      while !mayEnd.load(ordering: .acquiring) { usleep(500) }
      return number
    }
  }

  @Test func whoComesMeanwhileGetsTheSame() async throws {
    let pool = NIOThreadPool(numberOfThreads: 1)
    pool.start()
    let flight = SingleFlight<String, Int>(limit: 2, on: pool)
    let work = Work()
    let loop = loop
    let first = try #require(flight.value(of: "a", on: loop) { work.run() })
    let second = try #require(flight.value(of: "a", on: loop) { work.run() })
    let other = try #require(flight.value(of: "b", on: loop) { work.run() })
    #expect(flight.value(of: "c", on: loop) { work.run() } == nil, "two wait already")
    work.end()
    #expect(try await [first.get(), second.get(), other.get()] == [1, 1, 2])
    // It is over: a call now begins anew.
    #expect(try await #require(flight.value(of: "a", on: loop) { work.run() }).get() == 3)
    try await pool.shutdownGracefully()
  }

  @Test func nothingIsOlderThanTheQuestion() async throws {
    let pool = NIOThreadPool(numberOfThreads: 1)
    pool.start()
    let flight = SingleFlight<String, Int>(limit: 1, on: pool, sharing: .untilBegun)
    let work = Work()
    let loop = loop
    let first = try #require(flight.value(of: "a", on: loop) { work.run() })
    while work.begun == 0 { usleep(500) }
    let second = try #require(flight.value(of: "a", on: loop) { work.run() })
    let third = try #require(flight.value(of: "a", on: loop) { work.run() })
    work.end()
    #expect(try await [first.get(), second.get(), third.get()] == [1, 2, 2])
    try await pool.shutdownGracefully()
  }

  @Test func noCallWaitsForAPoolThatIsShutDown() async throws {
    let pool = NIOThreadPool(numberOfThreads: 1)
    pool.start()
    try await pool.shutdownGracefully()
    let future = try #require(SingleFlight<Int, Int>(limit: 1, on: pool).value(of: 1, on: loop) { 1 })
    await #expect(throws: CancellationError.self) { try await future.get() }
  }

  @Test func patienceEnds() async throws {
    let promise = loop.makePromise(of: Int.self)
    #expect(try await promise.futureResult.orElse(7, after: .milliseconds(10)).get() == 7)
    promise.succeed(1)
    #expect(try await promise.futureResult.orElse(7, after: .seconds(5)).get() == 1)
  }
}
