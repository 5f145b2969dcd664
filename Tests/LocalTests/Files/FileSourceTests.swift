import Base
import FMP4
@testable import Local
import Logging
import NIOCore
import Publishing
import Support
import Synchronization
import Testing

@Suite("A file as a publisher")
struct FileSourceTests {
  /// A clock that is a second later each time, so that nothing is waited for.
  private final class Hurry: Sendable {
    private let now = Mutex(MonotonicTime.zero)
    var clock: SteadyClock {
      SteadyClock(ClockReading(wall: 1_795_245_850_000_000_000, monotonic: 0)) { [self] in
        now.withLock { now in
          now += 1_000_000_000
          return now
        }
      }
    }
  }

  private func source(_ path: String, _ gate: LimitedGate, logger: Logger = .silent, clock: SteadyClock? = nil) throws
    -> FileSource
  {
    FileSource(
      name: try #require(StreamName("film")), path: path, gate: gate, clock: clock ?? Hurry().clock, logger: logger)
  }

  @Test func `It is played again and again, without a gap in its times`() async throws {
    let media = try TemporaryFile.media()
    let file = try TemporaryFile(media.bytes)
    let gate = LimitedGate(limit: 2 + 3 * media.samples.count)
    #expect(try await source(file.path, gate).run() == .replaced)
    guard case .clock(let anchor)? = gate.events.first, case .tracks(let tracks) = gate.events[1] else {
      Issue.record("the clock and the tracks come first")
      return
    }
    #expect(anchor.wallTime == 1_795_245_851_000_000_000)
    #expect(tracks.map(\.codec) == media.tracks.map(\.codec) && gate.tracks.count == 1, "told once")
    let frames = gate.samples.filter { $0.track == .video }
    #expect(frames.count > 60)
    #expect(zip(frames, frames.dropFirst()).allSatisfy { $1.decodeTime - $0.decodeTime == 1000 })
    #expect(frames.enumerated().allSatisfy { $1.isSync == ($0 % 15 == 0) })
    let audio = gate.samples.filter { $0.track == .audio }
    #expect(zip(audio, audio.dropFirst()).allSatisfy { ($1.decodeTime - $0.decodeTime) % 1024 == 0 })
  }

  @Test func `Samples come at their time on the clock`() async throws {
    let media = try TemporaryFile.media(frames: 10)
    let file = try TemporaryFile(media.bytes)
    let gate = LimitedGate(limit: 2 + media.samples.count)
    let start = ContinuousClock.now
    _ = try await source(file.path, gate, clock: .system()).run()
    #expect(ContinuousClock.now - start >= .milliseconds(200))
  }

  @Test func `A file that cannot be read fails the publication with the reason`() async throws {
    let gate = LimitedGate()
    let reason = try await source("/tmp/weir-none.mp4", gate).run()
    let why = "\(FileError.unreadable("/tmp/weir-none.mp4", code: 2))"
    #expect(reason == .failed(why) && gate.ending == .failed(why) && gate.events.count == 1)
  }

  @Test func `Stopping it ends it with that reason`() async throws {
    let file = try TemporaryFile(try TemporaryFile.media().bytes)
    let gate = LimitedGate()
    let source = try source(file.path, gate, clock: .system())
    async let running = source.run()
    while gate.samples.count < 3 { try await Task.sleep(for: .milliseconds(5)) }
    source.stop(.shutdown)
    #expect(await running == .shutdown)
    #expect(gate.ending == .shutdown)
  }

  @Test func `Damaged places are counted and told, and the rest is played`() async throws {
    var media = try TemporaryFile.media()
    let third = try #require(media.samples.filter { $0.track == .video }.dropFirst(2).first)
    let bytes = Array(third.payload.readableBytesView)
    let place = try #require(media.bytes.indices.first { media.bytes[$0...].starts(with: bytes) })
    media.bytes.replaceSubrange(place..<place + 4, with: [0x7F, 0xFF, 0xFF, 0xFF])
    let file = try TemporaryFile(media.bytes)
    let gate = LimitedGate(limit: 2 + media.samples.count - 1)
    let log = LogCollector()
    #expect(try await source(file.path, gate, logger: log.logger).run() == .replaced)
    #expect(gate.lost == [.video])
    #expect(
      log.lines.contains("warning: \(file.path) is damaged: 1 of its video and audio frames were left out"))
  }
}
