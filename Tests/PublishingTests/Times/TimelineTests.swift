import Base
@testable import Publishing
import FMP4
import Support
import Testing

@Suite("The timeline")
struct TimelineTests {
  /// Nanoseconds of `milliseconds`.
  private func at(_ milliseconds: Int64) -> MonotonicTime { .at(milliseconds * 1_000_000) }

  /// A timeline on which both tracks have played up to `end`, 40 ms a frame of video and 20 ms a frame of audio.
  private func playing(to end: Int64) -> Timeline {
    var timeline = Timeline()
    for time in stride(from: Int64(0), to: end, by: 20) {
      if time % 40 == 0 { _ = timeline.place(.video, .video, milliseconds: time, length: 40, now: at(time)) }
      _ = timeline.place(.audio, .audio, milliseconds: time, length: 20, now: at(time))
    }
    return timeline
  }

  @Test func timesThatGoOnStayAsTheyAre() {
    var timeline = playing(to: 2000)
    #expect(timeline.place(.video, .video, milliseconds: 2000, length: 40, now: at(2000)) == Timeline.Place(time: 2000))
    #expect(timeline.place(.audio, .audio, milliseconds: 2000, length: 20, now: at(2000)) == Timeline.Place(time: 2000))
  }

  @Test(arguments: [-3_600_000, 36_000_000, -2000, 10_001] as [Int64])
  func aJumpOfThePublicationIsOneBreakWithoutAHole(_ jump: Int64) {
    var timeline = playing(to: 4000)
    let first = timeline.place(.video, .video, milliseconds: 4000 + jump, length: 40, now: at(4000))
    #expect(first == Timeline.Place(time: 4000, isBreak: true, isMoved: true))
    // Audio follows to the same place, and keeps its distance.
    let audio = timeline.place(.audio, .audio, milliseconds: 4000 + jump, length: 20, now: at(4000))
    #expect(audio == Timeline.Place(time: 4000, isMoved: true))
    #expect(
      timeline.place(.video, .video, milliseconds: 4040 + jump, length: 40, now: at(4040)) == Timeline.Place(time: 4040)
    )
  }

  @Test func audioThatIsStillBeforeTheJumpKeepsItsTimeAndFollowsLater() {
    var timeline = playing(to: 4000)
    _ = timeline.place(.video, .video, milliseconds: 100, length: 40, now: at(4000))
    #expect(timeline.place(.audio, .audio, milliseconds: 4000, length: 20, now: at(4001)) == Timeline.Place(time: 4000))
    #expect(
      timeline.place(.audio, .audio, milliseconds: 120, length: 20, now: at(4020))
        == Timeline.Place(time: 4020, isMoved: true))
  }

  @Test func aJumpByTenSecondsIsAGapAndByMoreABreak() {
    var gap = playing(to: 1000)
    #expect(gap.place(.video, .video, milliseconds: 980 + 10_000, length: 40, now: at(1000))?.isBreak == false)
    var jump = playing(to: 1000)
    #expect(jump.place(.video, .video, milliseconds: 980 + 10_001, length: 40, now: at(1000))?.isBreak == true)
  }

  /// As after a pause of the network: by one track it is a little longer than ten seconds, by the other a little shorter.
  @Test(arguments: [9000, 9900, 9999, 10_020] as [Int64])
  func theOtherTrackFollowsAJumpThatByItsOwnTimesIsNone(_ step: Int64) {
    var timeline = playing(to: 4000)
    let video = timeline.place(.video, .video, milliseconds: 14_100, length: 40, now: at(14_100))
    #expect(video == Timeline.Place(time: 4000, isBreak: true, isMoved: true))
    let audio = timeline.place(.audio, .audio, milliseconds: 4000 + step, length: 20, now: at(14_110))
    // What is from within the pause is left out.
    #expect(audio == (step < 9500 ? nil : Timeline.Place(time: step - 6100, isMoved: true)))
    let later = timeline.place(.audio, .audio, milliseconds: 14_120, length: 20, now: at(14_120))
    #expect(later?.time == 4020)
  }

  @Test func aLongPauseOfAudioAloneIsAGapThoughTheClocksDiffer() {
    var timeline = Timeline()
    _ = timeline.place(.video, .video, milliseconds: 0, length: 40, now: at(0))
    _ = timeline.place(.audio, .audio, milliseconds: 100_000, length: 20, now: at(0))
    _ = timeline.place(.video, .video, milliseconds: 9000, length: 40, now: at(9000))
    let audio = timeline.place(.audio, .audio, milliseconds: 109_000, length: 20, now: at(9000))
    #expect(audio == Timeline.Place(time: 9000))
  }

  @Test func aSlowTrackIsNoJumpWhileTheOtherGoesOn() {
    var timeline = Timeline()
    _ = timeline.place(.video, .video, milliseconds: 0, length: nil, now: at(0))
    for time in stride(from: Int64(0), through: 30_000, by: 20) {
      _ = timeline.place(.audio, .audio, milliseconds: time, length: 20, now: at(time))
    }
    #expect(
      timeline.place(.video, .video, milliseconds: 30_000, length: nil, now: at(30_000)) == Timeline.Place(time: 30_000)
    )
  }

  @Test func clocksThatHaveNothingToDoWithEachOtherAreAlignedByArrival() {
    var timeline = Timeline()
    _ = timeline.place(.video, .video, milliseconds: 5_000_000, length: 40, now: at(0))
    _ = timeline.place(.video, .video, milliseconds: 5_000_040, length: 40, now: at(40))
    let audio = timeline.place(.audio, .audio, milliseconds: 0, length: 20, now: at(45))
    #expect(audio?.time == 5_000_040)
    #expect(audio?.alignedBy == -5_000_040)
    #expect(timeline.place(.audio, .audio, milliseconds: 20, length: 20, now: at(65))?.time == 5_000_060)
    #expect(timeline.place(.video, .video, milliseconds: 5_000_080, length: 40, now: at(80))?.time == 5_000_080)
  }

  @Test func aTrackThatComesLateLiesWhereItsTimesSay() {
    var timeline = Timeline()
    for time in stride(from: Int64(0), through: 60_000, by: 40) {
      _ = timeline.place(.video, .video, milliseconds: time, length: 40, now: at(time))
    }
    #expect(
      timeline.place(.audio, .audio, milliseconds: 60_020, length: 20, now: at(60_030)) == Timeline.Place(time: 60_020))
  }

  @Test func aPauseOfBothTracksIsNoDifferenceOfClocks() {
    var timeline = Timeline()
    _ = timeline.place(.video, .video, milliseconds: 0, length: 40, now: at(0))
    #expect(timeline.place(.audio, .audio, milliseconds: 8000, length: 20, now: at(8010)) == Timeline.Place(time: 8000))
  }

  @Test func audioAloneThatStepsBackIsDroppedUntilItCatchesUp() {
    var timeline = playing(to: 4000)
    #expect(timeline.place(.audio, .audio, milliseconds: 3000, length: 20, now: at(4000)) == nil)
    #expect(timeline.place(.audio, .audio, milliseconds: 3600, length: 20, now: at(4010)) == Timeline.Place(time: 3600))
  }

  @Test func audioWithoutVideoThatStepsBackBreaksTheTimeline() {
    var timeline = Timeline()
    for time in stride(from: Int64(0), to: 4000, by: 20) {
      _ = timeline.place(.audio, .audio, milliseconds: time, length: 20, now: at(time))
    }
    let place = timeline.place(.audio, .audio, milliseconds: 3000, length: 20, now: at(4000))
    #expect(place == Timeline.Place(time: 4000, isBreak: true, isMoved: true))
  }

  @Test func furtherTracksOfAKindJumpTogetherAndOnce() {
    let (first, second) = (TrackID(2), TrackID(7))
    var timeline = playing(to: 4000)
    for time in stride(from: Int64(0), to: 4000, by: 20) {
      #expect(
        timeline.place(second, .audio, milliseconds: time, length: 20, now: at(time)) == Timeline.Place(time: time))
    }
    let video = timeline.place(.video, .video, milliseconds: 90_000_000, length: 40, now: at(4000))
    #expect(video == Timeline.Place(time: 4000, isBreak: true, isMoved: true))
    for track in [first, second] {
      let audio = timeline.place(track, .audio, milliseconds: 90_000_020, length: 20, now: at(4020))
      #expect(audio == Timeline.Place(time: 4020, isMoved: true))
    }
  }

  @Test func aFurtherTrackIsAlignedWithWhicheverClockIsItsOwn() {
    var timeline = Timeline()
    _ = timeline.place(TrackID(1), .video, milliseconds: 5_000_000, length: 40, now: at(0))
    #expect(timeline.place(TrackID(2), .audio, milliseconds: 0, length: 20, now: at(10))?.alignedBy == -5_000_000)
    #expect(timeline.place(TrackID(3), .audio, milliseconds: 5_000_020, length: 20, now: at(20))?.time == 5_000_020)
    #expect(timeline.place(TrackID(4), .audio, milliseconds: 40, length: 20, now: at(50))?.time == 5_000_040)
  }
}

extension Timeline {
  /// All of it in milliseconds, but for the time of arrival.
  fileprivate mutating func place(
    _ id: TrackID, _ kind: MediaKind, milliseconds: Int64, length: Int64?, now: MonotonicTime
  ) -> Place? {
    let length = length.map { $0 * 1_000_000 }
    guard var found = place(id, kind, wire: milliseconds * 1_000_000, length: length, now: now) else { return nil }
    found.time /= 1_000_000
    found.alignedBy = found.alignedBy.map { $0 / 1_000_000 }
    return found
  }
}
