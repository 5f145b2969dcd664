import FMP4
import Testing

@testable import Ingest

@Suite("The timeline")
struct TimelineTests {
  /// Nanoseconds of `milliseconds`.
  private func at(_ milliseconds: Int64) -> Int64 { milliseconds * 1_000_000 }

  /// A timeline on which both tracks have played up to `end`, 40 ms a picture and 20 ms a sound.
  private func playing(to end: Int64) -> Timeline {
    var timeline = Timeline()
    for time in stride(from: Int64(0), to: end, by: 20) {
      if time % 40 == 0 { _ = timeline.place(.video, wire: time, length: 40, now: at(time)) }
      _ = timeline.place(.audio, wire: time, length: 20, now: at(time))
    }
    return timeline
  }

  @Test func timesThatGoOnStayAsTheyAre() {
    var timeline = playing(to: 2000)
    #expect(timeline.place(.video, wire: 2000, length: 40, now: at(2000)) == Timeline.Place(time: 2000))
    #expect(timeline.place(.audio, wire: 2000, length: 20, now: at(2000)) == Timeline.Place(time: 2000))
  }

  @Test(arguments: [-3_600_000, 36_000_000, -2000, 10_001] as [Int64])
  func aJumpOfThePublicationIsOneBreakWithoutAHole(_ jump: Int64) {
    var timeline = playing(to: 4000)
    let first = timeline.place(.video, wire: 4000 + jump, length: 40, now: at(4000))
    #expect(first == Timeline.Place(time: 4000, isBreak: true, isMoved: true))
    // Sound follows to the same place, and keeps its distance.
    let sound = timeline.place(.audio, wire: 4000 + jump, length: 20, now: at(4000))
    #expect(sound == Timeline.Place(time: 4000, isMoved: true))
    #expect(timeline.place(.video, wire: 4040 + jump, length: 40, now: at(4040)) == Timeline.Place(time: 4040))
  }

  @Test func soundThatIsStillBeforeTheJumpKeepsItsTimeAndFollowsLater() {
    var timeline = playing(to: 4000)
    _ = timeline.place(.video, wire: 100, length: 40, now: at(4000))
    #expect(timeline.place(.audio, wire: 4000, length: 20, now: at(4001)) == Timeline.Place(time: 4000))
    #expect(
      timeline.place(.audio, wire: 120, length: 20, now: at(4020)) == Timeline.Place(time: 4020, isMoved: true))
  }

  @Test func aJumpByTenSecondsIsAGapAndByMoreABreak() {
    var gap = playing(to: 1000)
    #expect(gap.place(.video, wire: 980 + 10_000, length: 40, now: at(1000))?.isBreak == false)
    var jump = playing(to: 1000)
    #expect(jump.place(.video, wire: 980 + 10_001, length: 40, now: at(1000))?.isBreak == true)
  }

  @Test func aSlowTrackIsNoJumpWhileTheOtherGoesOn() {
    var timeline = Timeline()
    _ = timeline.place(.video, wire: 0, length: nil, now: at(0))
    for time in stride(from: Int64(0), through: 30_000, by: 20) {
      _ = timeline.place(.audio, wire: time, length: 20, now: at(time))
    }
    #expect(timeline.place(.video, wire: 30_000, length: nil, now: at(30_000)) == Timeline.Place(time: 30_000))
  }

  @Test func clocksThatHaveNothingToDoWithEachOtherAreAlignedByArrival() {
    var timeline = Timeline()
    _ = timeline.place(.video, wire: 5_000_000, length: 40, now: at(0))
    _ = timeline.place(.video, wire: 5_000_040, length: 40, now: at(40))
    let sound = timeline.place(.audio, wire: 0, length: 20, now: at(45))
    #expect(sound?.time == 5_000_040)
    #expect(sound?.alignedBy == -5_000_040)
    #expect(timeline.place(.audio, wire: 20, length: 20, now: at(65))?.time == 5_000_060)
    #expect(timeline.place(.video, wire: 5_000_080, length: 40, now: at(80))?.time == 5_000_080)
  }

  @Test func aTrackThatComesLateLiesWhereItsTimesSay() {
    var timeline = Timeline()
    for time in stride(from: Int64(0), through: 60_000, by: 40) {
      _ = timeline.place(.video, wire: time, length: 40, now: at(time))
    }
    #expect(timeline.place(.audio, wire: 60_020, length: 20, now: at(60_030)) == Timeline.Place(time: 60_020))
  }

  @Test func aPauseOfBothTracksIsNoDifferenceOfClocks() {
    var timeline = Timeline()
    _ = timeline.place(.video, wire: 0, length: 40, now: at(0))
    #expect(timeline.place(.audio, wire: 8000, length: 20, now: at(8010)) == Timeline.Place(time: 8000))
  }

  @Test func soundAloneThatStepsBackIsDroppedUntilItCatchesUp() {
    var timeline = playing(to: 4000)
    #expect(timeline.place(.audio, wire: 3000, length: 20, now: at(4000)) == nil)
    #expect(timeline.place(.audio, wire: 3600, length: 20, now: at(4010)) == Timeline.Place(time: 3600))
  }

  @Test func soundWithoutPictureThatStepsBackBreaksTheTimeline() {
    var timeline = Timeline()
    for time in stride(from: Int64(0), to: 4000, by: 20) {
      _ = timeline.place(.audio, wire: time, length: 20, now: at(time))
    }
    let place = timeline.place(.audio, wire: 3000, length: 20, now: at(4000))
    #expect(place == Timeline.Place(time: 4000, isBreak: true, isMoved: true))
  }
}

@Suite("The wait for tracks")
struct TrackGateTests {
  private func at(_ milliseconds: Int64) -> Int64 { milliseconds * 1_000_000 }
  private func gate() -> TrackGate { TrackGate(announcedWait: 2000, unannouncedWait: 500) }

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
    gate.saw(.video, time: 5000, now: 0)
    gate.saw(.video, time: 6999, now: 1)
    #expect(gate.decide(videoReady: true, audioReady: false, now: 1) == .wait)
    gate.saw(.video, time: 7000, now: 2)
    #expect(gate.decide(videoReady: true, audioReady: false, now: 2) == .open(missing: [.audio]))
  }

  @Test func aTrackThatNobodyAnnouncedIsWaitedForHalfASecond() {
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
}
