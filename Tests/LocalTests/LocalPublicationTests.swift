import FMP4
@testable import Local
import Logging
import Publishing
import Support
import Synchronization
import Testing

@Suite("The publication of one of the server's own sources")
struct LocalPublicationTests {
  private struct Broken: Error, CustomStringConvertible { var description: String { "no paper" } }

  private func publication(
    _ gate: LimitedGate, _ kind: LocalPublication.Kind = .file, logger: Logger = .silent
  ) throws -> LocalPublication {
    LocalPublication(name: try #require(StreamName("cam")), kind: kind, gate: gate, logger: logger)
  }

  @Test(arguments: [LocalPublication.Kind.test, .file, .capture])
  func `The server asks for itself, and a test pattern is never recorded`(_ kind: LocalPublication.Kind) async throws {
    let gate = LimitedGate()
    #expect(try await publication(gate, kind).run {} == .finished)
    let request = try #require(gate.request)
    #expect(request.stream.description == "cam" && request.protocolName == kind.rawValue && request.key == nil)
    #expect(request.origin == .server && request.host == nil)
    #expect((request.recording == .never) == (kind == .test))
    #expect(gate.ending == .finished && gate.events.count == 1)
  }

  @Test func `A source that is refused does not begin`() async throws {
    let gate = LimitedGate(refusal: .shuttingDown)
    let log = LogCollector()
    let publication = try publication(gate, .test, logger: log.logger)
    let reason = await publication.run { Issue.record("it began") }
    let why = PublishRefusal.shuttingDown.description
    #expect(reason == .failed(why) && gate.events.isEmpty && publication.isEnding)
    #expect(log.lines == ["error: the test pattern was refused: \(why)"])
  }

  @Test func `What the work throws fails the publication`() async throws {
    let gate = LimitedGate()
    let log = LogCollector()
    let reason = try await publication(gate, logger: log.logger).run { throw Broken() }
    #expect(reason == .failed("no paper") && gate.ending == .failed("no paper"))
    #expect(log.lines == ["error: the file failed: no paper"])
  }

  @Test func `The first reason to end counts`() async throws {
    let gate = LimitedGate()
    let publication = try publication(gate)
    let reason = await publication.run {
      #expect(!publication.isEnding)
      publication.stop(.shutdown)
      #expect(publication.isEnding)
      publication.stop(.finished)
      publication.give(.discontinuity)
      throw Broken()
    }
    #expect(reason == .shutdown && gate.ending == .shutdown)
    #expect(gate.events.count == 2, "what is on its way is still given")
  }

  @Test func `A sink that has closed is told nothing more`() async throws {
    let gate = LimitedGate(limit: 2)
    let publication = try publication(gate)
    let reason = await publication.run { for _ in 0..<5 { publication.give(.discontinuity) } }
    #expect(reason == .replaced && gate.events.count == 2 && gate.ending == nil)
  }

  @Test func `A publication that the server ends falls silent`() async throws {
    let gate = LimitedGate()
    let publication = try publication(gate)
    let reason = await publication.run {
      publication.give(.discontinuity)
      try #require(gate.request).onEviction(.replaced)
      #expect(publication.isEnding)
      publication.give(.discontinuity)
    }
    #expect(reason == .replaced && gate.events.count == 1)
  }

  @Test func `A task that is cancelled shuts it down`() async throws {
    let gate = LimitedGate()
    let publication = try publication(gate)
    let running = Task {
      await publication.run { while !publication.isEnding { try? await Task.sleep(for: .milliseconds(5)) } }
    }
    while gate.request == nil { try await Task.sleep(for: .milliseconds(5)) }
    running.cancel()
    #expect(await running.value == .shutdown)
    #expect(gate.ending == .shutdown)
  }

  @Test func `Before it is admitted nothing is given, and losses are passed on afterwards`() async throws {
    let gate = LimitedGate()
    let publication = try publication(gate)
    publication.give(.discontinuity)
    publication.lost(.video)
    _ = await publication.run { publication.lost(.audio) }
    #expect(gate.events.count == 1 && gate.lost == [.audio])
  }

  @Test func `A request for a key frame reaches its encoder`() async throws {
    let requests = Mutex(0)
    let gate = LimitedGate()
    let publication = LocalPublication(
      name: try #require(StreamName("cam")), kind: .capture, gate: gate, logger: .silent,
      keyFrameInterval: MediaTime(milliseconds: 2000)
    ) { requests.withLock { $0 += 1 } }
    _ = await publication.run {}
    let ask = try #require(gate.request?.onKeyFrameWanted)
    ask()
    #expect(requests.withLock { $0 } == 1 && gate.request?.keyFrames == .every(MediaTime(milliseconds: 2000)))
  }
}
