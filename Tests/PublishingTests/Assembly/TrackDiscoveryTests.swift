import Base
import FMP4
@testable import Publishing
import Support
import Testing

@Suite("The wait for tracks")
struct TrackDiscoveryTests {
  private func at(_ milliseconds: Int64) -> MonotonicTime { .at(milliseconds * 1_000_000) }
  private func gate() -> TrackDiscovery { TrackDiscovery(announcedWait: 2000, unannouncedWait: 500) }

  @Test func bothTracksReadyOpensAtOnce() {
    var gate = gate()
    gate.saw(.video, time: 0, now: 0)
    gate.saw(.audio, time: 0, now: 0)
    #expect(gate.decide(videoReady: true, audioReady: true, now: 0) == .open(missing: []))
  }

  @Test func anAnnouncedTrackIsWaitedForTwoSecondsOfTheClock() {
    var gate = gate()
    gate.announce(video: true, audio: true)
    gate.saw(.video, time: 0, now: at(100))
    #expect(gate.decide(videoReady: true, audioReady: false, now: at(2099)) == .wait)
    #expect(gate.decide(videoReady: true, audioReady: false, now: at(2100)) == .open(missing: [.audio]))
    #expect(gate.deadline(after: at(100)) == at(600))
    #expect(gate.deadline(after: at(600)) == at(2100))
    #expect(gate.deadline(after: at(2100)) == nil)
  }

  @Test func anAnnouncedTrackIsWaitedForTwoSecondsOfMedia() {
    var gate = gate()
    gate.announce(video: true, audio: true)
    gate.saw(.video, time: 5_000_000_000, now: 0)
    gate.saw(.video, time: 6_999_000_000, now: 1)
    #expect(gate.decide(videoReady: true, audioReady: false, now: 1) == .wait)
    gate.saw(.video, time: 7_000_000_000, now: 2)
    #expect(gate.decide(videoReady: true, audioReady: false, now: 2) == .open(missing: [.audio]))
  }

  @Test func aTrackThatWasNotAnnouncedIsWaitedForHalfASecond() {
    var gate = gate()
    gate.saw(.video, time: 0, now: 0)
    #expect(gate.decide(videoReady: true, audioReady: false, now: at(499)) == .wait)
    #expect(gate.decide(videoReady: true, audioReady: false, now: at(500)) == .open(missing: []))
  }

  @Test func aTrackThatTheMetadataLeavesOutIsNotWaitedFor() {
    var gate = gate()
    gate.announce(video: true, audio: false)
    gate.saw(.video, time: 0, now: 0)
    #expect(gate.decide(videoReady: true, audioReady: false, now: 0) == .open(missing: []))
  }

  @Test func nothingBeginsWithoutAnything() {
    var gate = gate()
    gate.announce(video: true, audio: true)
    #expect(gate.decide(videoReady: false, audioReady: false, now: at(60_000)) == .wait)
  }

  @Test func aFurtherTrackOfAKindIsWaitedForOnceItHasBegun() {
    var gate = gate()
    gate.saw(.video, time: 0, now: 0)
    gate.saw(.audio, time: 0, now: 0)
    #expect(gate.decide(videoReady: true, audioReady: true, isPartial: true, now: at(1999)) == .wait)
    #expect(gate.decide(videoReady: true, audioReady: true, isPartial: true, now: at(2000)) == .open(missing: []))
  }
}
