import Base
import FMP4
@testable import Local
import Publishing
import Support
import Synchronization
import Testing

@Suite("A still picture as a publisher")
struct StillSourceTests {
  /// A clock that is later by the same each time, so that nothing is waited for.
  private final class Hurry: Sendable {
    private let now = Mutex(MonotonicTime.zero)
    private let steps: Mutex<[Int64]>
    /// Nanoseconds from one reading to the next: these, then the last one for ever.
    init(_ steps: [Int64]) { self.steps = Mutex(steps) }

    var clock: SteadyClock {
      SteadyClock(ClockReading(wall: 1_795_245_850_000_000_000, monotonic: 0)) { [self] in
        let step = steps.withLock { $0.count > 1 ? $0.removeFirst() : $0.first ?? 0 }
        return now.withLock { now in
          now += step
          return now
        }
      }
    }
  }

  private func source(_ gate: LimitedGate, clock: SteadyClock) throws -> StillSource {
    let picture = try StillPicture(testCard: TestSourceSettings(width: 160, height: 90))
    return StillSource(
      name: try #require(StreamName("slate")), picture: picture, gate: gate, clock: clock, logger: .silent)
  }

  private func times(_ samples: [Sample], _ track: TrackID) -> [Int64] {
    samples.filter { $0.track == track }.map(\.decodeTime)
  }

  @Test func `It says when its media begin and what they are, and repeats them`() async throws {
    let gate = LimitedGate(limit: 400)
    #expect(try await source(gate, clock: Hurry([100_000_000]).clock).run() == .replaced)
    let request = try #require(gate.request)
    #expect(request.origin == .server && request.protocolName == "file")
    #expect(request.keyFrames == .every(MediaTime(milliseconds: 1000)))
    guard case .clock(let anchor)? = gate.events.first, case .tracks(let tracks) = gate.events[1] else {
      Issue.record("the clock and the tracks come first")
      return
    }
    #expect(anchor.wallTime == 1_795_245_850_100_000_000 && anchor.mediaTime == .zero)
    #expect(tracks.map(\.id) == [.video, .audio] && gate.samples.count == 398)
    let (video, audio) = (times(gate.samples, .video), times(gate.samples, .audio))
    #expect(video.count >= 60 && video == video.indices.map { Int64($0) * 3_000 })
    #expect(audio == audio.indices.map { Int64($0) * 1024 })
  }

  @Test func `Samples come at their time on the clock, and stopping it ends it with that reason`() async throws {
    let gate = LimitedGate()
    let source = try source(gate, clock: .system())
    let start = ContinuousClock.now
    async let running = source.run()
    // Until the sixteenth frame, which is due after a second and a half.
    while times(gate.samples, .video).count < 16 { try await Task.sleep(for: .milliseconds(5)) }
    #expect(ContinuousClock.now - start >= .milliseconds(1500))
    source.stop(.shutdown)
    #expect(await running == .shutdown && gate.ending == .shutdown)
    let (video, audio) = (times(gate.samples, .video), times(gate.samples, .audio))
    #expect(video == video.indices.map { Int64($0) * 3_000 } && audio == audio.indices.map { Int64($0) * 1024 })
    #expect(gate.samples.filter { $0.track == .video }.enumerated().allSatisfy { $1.isSync == ($0 % 10 == 0) })
  }

  @Test func `A long interruption breaks its timeline once`() async throws {
    let gate = LimitedGate(limit: 100)
    let clock = Hurry([0, 0, 100_000_000, 60_000_000_000, 100_000_000]).clock
    #expect(try await source(gate, clock: clock).run() == .replaced)
    let breaks = gate.events.indices.filter { if case .discontinuity = gate.events[$0] { true } else { false } }
    #expect(breaks.count == 1)
    guard let place = breaks.first, case .sample(let sample) = gate.events[place + 1] else {
      Issue.record("a sample follows the break")
      return
    }
    #expect(sample.track == .video && sample.isSync && sample.decodeTime == 601 * 3_000)
  }
}
