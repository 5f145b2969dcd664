import Base
import Delivery
import Glibc
import HTTP
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import Playlists
@testable import Streams
import StreamSupport
import Support
import Synchronization
import Testing

/// Who takes a stream's lock, and how often. Publishers wait for it.
@Suite(.timeLimit(.minutes(1))) struct StreamLockTests {
  private let time = ManualClock()

  /// A flag, and a number of a thread, that other threads look at.
  private final class Mark: Sendable {
    private let value = Atomic(0)
    var number: Int { value.load(ordering: .acquiring) }
    func set(_ number: Int = 1) { value.store(number, ordering: .releasing) }
  }

  /// Runs what waits on a thread of its own.
  private func onThread<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
    let result = Mutex<Swift.Result<Result, any Error>?>(nil)
    try await DedicatedThread.run(named: "turnstile-test") {
      let found = Swift.Result { try body() }
      result.withLock { $0 = found }
    }
    return try #require(result.withLock { $0 }).get()
  }

  @Test(arguments: [0, 1, 3, 7]) func `The turnstile counts`(times: Int) async throws {
    let live = try await SteadyStream(segments: 4, clock: time)
    let passes = try await onThread {
      let turnstile = try LockTurnstile.closed(at: live.stream)
      defer { turnstile.letAllGo() }
      let (thread, isOver) = (Mark(), Mark())
      try DedicatedThread.start(named: "counted") {
        thread.set(LockTurnstile.ownThread)
        for _ in 0..<times { _ = live.stream.view }
        isOver.set()
      }
      while thread.number == 0 { usleep(100) }
      return try turnstile.passes(of: thread.number) { isOver.number == 1 }
    }
    #expect(passes == times)
  }

  /// Addresses of what comes next, which are requested before it is there.
  enum Next: String, CaseIterable, Sendable {
    case playlist, delta, playlistOfSegment, part, segment

    fileprivate func target(_ stream: LiveStream) -> String {
      let epoch = stream.epoch
      let edge = epoch.window.edge(of: .interleaved)
      let folder = "/live/cam/\(epoch.id)/av"
      return switch self {
      case .playlist: "\(folder)/\(MediaName.playlist)?_HLS_msn=\(edge.segment)&_HLS_part=\(edge.part)"
      case .delta: "\(folder)/\(MediaName.playlist)?_HLS_msn=\(edge.segment)&_HLS_part=\(edge.part)&_HLS_skip=YES"
      case .playlistOfSegment: "\(folder)/\(MediaName.playlist)?_HLS_msn=\(edge.segment)"
      // The part that playlists hint at. It is not the one at the edge where a segment is expected to be complete.
      case .part: "\(folder)/\(MediaName.part(epoch.window.nextPart(of: .interleaved)))"
      case .segment: "\(folder)/\(epoch.window.nextSequenceNumber).m4s"
      }
    }
  }

  /// From the request to the response, while the publisher sends what it waits for.
  @Test(arguments: Next.allCases)
  func `A request that waits takes the stream's lock at most twice`(next: Next) async throws {
    let live = try await SteadyStream(segments: 8, clock: time)
    let routes = LiveRoutes(
      streams: live.registry, viewers: ViewerRegistry(limit: 100, clock: time.clock),
      thumbnails: Thumbnails(
        logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, pool: NIOSingletons.posixBlockingThreadPool),
      archive: nil, status: { _ in StandardResponse.preflight })
    let request = HTTPRequest(method: .get, target: try RequestTarget(parsing: next.target(live.stream)))
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let loop = group.next()
    let thread = try await loop.submit { LockTurnstile.ownThread }.get()
    let counts = try await onThread { () -> (asked: Int, publisher: [Int], answered: Int, status: Int) in
      let turnstile = try LockTurnstile.closed(at: live.stream)
      defer { turnstile.letAllGo() }
      let (isAsked, status) = (Mark(), Mark())
      loop.execute {
        switch routes.respond(to: request, on: loop).kind {
        case .now(let response): status.set(Int(response.status.code))
        case .later(let response):
          response.assumeIsolated().whenComplete { status.set((try? $0.get()).map { Int($0.status.code) } ?? 1) }
        }
        isAsked.set()
      }
      let asked = try turnstile.passes(of: thread) { isAsked.number == 1 }
      guard status.number == 0 else { return (asked, [], 0, -status.number) }
      var (publisher, answered) = ([Int](), 0)
      for _ in 0..<6 where status.number == 0 {
        let (sender, isSent) = (Mark(), Mark())
        try DedicatedThread.start(named: "publisher") {
          sender.set(LockTurnstile.ownThread)
          live.send()
          isSent.set()
        }
        while sender.number == 0 { usleep(100) }
        publisher.append(try turnstile.passes(of: sender.number) { isSent.number == 1 })
        // The loop was woken, or it was not: it has half a second to come.
        let end = MonotonicTime.now() &+ 500_000_000
        answered += try turnstile.passes(of: thread) { status.number != 0 || MonotonicTime.now() > end }
      }
      return (asked, publisher, answered, status.number)
    }
    try await group.shutdownGracefully()
    #expect(counts.status == 200, "it waited, and got what it waited for")
    #expect(counts.publisher.allSatisfy { $0 == 1 }, "an event takes it once, or passes of the loop were not seen")
    #expect(counts.asked >= 1 && counts.asked + counts.answered <= 2, "\(counts)")
  }

  /// The test holds the lock all the time. A rendering that wanted it would not end.
  @Test(arguments: [8, 1200]) func `No rendering takes the stream's lock`(segments: Int) async throws {
    let live = try await SteadyStream(segments: segments, clock: time)
    let view = live.stream.view
    let loop = MultiThreadedEventLoopGroup.singleton.next()
    let isOver = Mark()
    let (holds, ends) = (Mark(), Mark())
    try DedicatedThread.start(named: "holder") {
      live.stream.state.withLock { _ in
        holds.set()
        // A rendering takes milliseconds.
        let end = MonotonicTime.now() &+ 20_000_000_000
        while isOver.number == 0, MonotonicTime.now() < end { usleep(1000) }
        ends.set(isOver.number == 1 ? 1 : 2)
      }
    }
    while holds.number == 0 { try await Task.sleep(for: .milliseconds(1)) }
    let kinds: [PlaylistCache.Kind] = [
      .multivariant, .videoMultivariant(1), .programme, .media(.interleaved, .current, isDelta: false),
      .media(.video, .awaited, isDelta: true), .keyFrames(.video), .manifest,
    ]
    for kind in kinds {
      let answer = try await loop.submit { live.stream.rendered(kind, of: view, on: loop) }.get()
      let response = try await answer.response(on: loop).get()
      #expect(response.status == .ok, "\(kind)")
    }
    isOver.set()
    while ends.number == 0 { try await Task.sleep(for: .milliseconds(1)) }
    #expect(ends.number == 1, "a rendering waited for the lock until it was let go of")
    #expect(live.stream.status.playlistRenders >= kinds.count - 1)
  }
}
