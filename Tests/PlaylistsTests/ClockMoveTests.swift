import FMP4
import NIOCore
@testable import Playlists
@testable import Streams
import StreamSupport
import Support
import Testing

/// The time of day in a publication is told anew while it goes on: its clock has drifted.
@Suite struct ClockMoveTests {
  private static let move: Int64 = 40_000_000

  /// Ten seconds; the clock moves in the midst of the third segment, 5 s in, by so many nanoseconds.
  private func driver(_ move: Int64 = move, beginsTimeline: Bool = false) throws -> EpochDriver {
    var driver = EpochDriver()
    driver.epoch.startPublication()
    driver.epoch.isDated = true
    let clock = WallClockAnchor(mediaTime: .zero, wallTime: EpochDriver.wall)
    try driver.receive(.clock(clock))
    try driver.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
    for sample in SyntheticMedia.interleaved(seconds: 10, group: 60) {
      if sample.track == .video, sample.decodeTime == 150_000 {
        var clock = WallClockAnchor(mediaTime: .zero, wallTime: EpochDriver.wall + move)
        clock.beginsTimeline = beginsTimeline
        try driver.receive(.clock(clock))
      }
      try driver.receive(.sample(sample))
    }
    try driver.end()
    return driver
  }

  @Test func theNextSegmentIsThereLaterAndTheMediaGoOn() throws {
    let window = try driver().epoch.window
    #expect(window.segments.map { $0.start.rescaled(to: 1000) } == [0, 2000, 4000, 6000, 8000])
    #expect(
      window.segments.map { ($0.wallStart &- EpochDriver.wall) / 1_000_000 } == [0, 2000, 4000, 6040, 8040])
    #expect(window.segments.allSatisfy { !$0.followsDiscontinuity })
    let playlist = String(buffer: HLSMediaPlaylist(window: window).render())
    #expect(!playlist.contains("DISCONTINUITY"))
    #expect(playlist.contains("#EXT-X-PROGRAM-DATE-TIME:2026-11-21T07:24:16.163Z\n"))
  }

  private func periods(_ driver: EpochDriver) -> [XMLElement] {
    DASHManifest(epoch: driver.epoch.view, source: .server).root(publishTime: 0).all("Period")
  }

  @Test func dashContinuesInANewPeriod() throws {
    let periods = self.periods(try driver(120_000_000))
    try #require(periods.count == 2)
    #expect(periods.map { $0["start"] } == ["PT0S", "PT6.12S"])
    // A little is worth no Period.
    #expect(self.periods(try driver()).count == 1)
    let continuity = periods[1].all("SupplementalProperty").filter {
      $0["schemeIdUri"] == "urn:mpeg:dash:period-continuity:2015"
    }
    #expect(continuity.count == 2 && continuity.allSatisfy { $0["value"] == "0" })
    #expect(periods[1].all("SegmentTemplate").first?["presentationTimeOffset"] == "180000")
  }

  @Test func whoRecordsHearsOfItBeforeTheSegment() throws {
    let driver = try driver()
    var heard: [Int64] = []
    var anchors: [Int] = []
    for event in driver.events {
      if case .clock(let anchor) = event { heard.append(anchor.wallTime &- EpochDriver.wall) }
      if case .fragment(let published) = event, published.fragment.startsSegment { anchors.append(heard.count) }
    }
    #expect(heard == [0, Self.move])
    #expect(anchors == [1, 1, 1, 2, 2])
  }

  /// In milliseconds. The publisher's clock is far off: no date steps inside a timeline, and all media is there.
  @Test(arguments: [500, -500] as [Int64]) func whereDatesStepATimelineBegins(_ move: Int64) throws {
    let driver = try driver(move * 1_000_000, beginsTimeline: true)
    let window = driver.epoch.window
    let media = window.segments.filter { !$0.isOutage }
    #expect(media.map { $0.start.rescaled(to: 1000) } == [0, 2000, 4000, 6000, 8000])
    #expect(
      media.map { ($0.wallStart &- EpochDriver.wall) / 1_000_000 } == [0, 2000, 4000, 6000 + move, 8000 + move])
    #expect(media.map(\.followsDiscontinuity) == [false, false, false, true, false])
    // A time that nothing has is listed as a gap; one that is there twice is not.
    #expect(window.segments.contains(where: \.isOutage) == (move > 0))
    #expect(window.periods.count == 2)
    let breaks = driver.events.count { if case .discontinuity(.clock) = $0 { true } else { false } }
    #expect(breaks == 1)
  }

  /// A publisher returned with three seconds that are listed already, and its clock is fast.
  @Test func aStepLaysNoMoreOverWhatIsListedThanTheClockIsOff() {
    var clock = ListedClock()
    clock.set(WallClockAnchor(mediaTime: .zero, wallTime: EpochDriver.wall))
    let returned = clock.breaks(at: .zero, behind: EpochDriver.wall + 3_000_000_000)
    #expect(returned?.wallTime == EpochDriver.wall + 3_000_000_000)
    var fast = WallClockAnchor(mediaTime: .zero, wallTime: EpochDriver.wall - 500_000_000)
    fast.beginsTimeline = true
    clock.follow(fast)
    let later = MediaTime(milliseconds: 10_000)
    let without = clock.goesOn(at: later)
    #expect(clock.steps && without == nil, "it waits for a key frame")
    let stepped = clock.breaks(at: later, behind: EpochDriver.wall + 13_000_000_000)
    #expect(!clock.steps && stepped?.wallTime == EpochDriver.wall + 2_500_000_000)
    #expect(stepped?.beginsTimeline == false)
  }

  @Test func theNextPublicationTellsItsOwnAtOnce() throws {
    var driver = EpochDriver()
    try driver.publish(seconds: 4)
    try driver.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: EpochDriver.wall + Self.move)))
    try driver.interrupt()
    try driver.publish(seconds: 4, wall: EpochDriver.wall + 9_000_000_000)
    let returned = try #require(driver.epoch.window.segments.first { $0.followsDiscontinuity })
    #expect(returned.wallStart &- EpochDriver.wall == 9_000_000_000)
  }
}

/// Times of a first burst are corrected before they are listed.
@Suite struct EarlyClockTests {
  @Test func whatWasNotListedYetIsDatedAnew() throws {
    var driver = EpochDriver()
    driver.epoch.startPublication()
    let late = EpochDriver.wall + 740_000_000
    try driver.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: late)))
    try driver.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
    for sample in SyntheticMedia.interleaved(seconds: 6, group: 60) {
      if sample.track == .video, sample.decodeTime == 30_000 {
        try driver.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: EpochDriver.wall)))
      }
      try driver.receive(.sample(sample))
    }
    let window = driver.epoch.window
    #expect(driver.epoch.availabilityStart == EpochDriver.wall)
    #expect(window.segments.map { ($0.wallStart &- EpochDriver.wall) / 1_000_000 } == [0, 2000, 4000])
    #expect(window.periods.count == 1 && window.periods[0].wallStart == EpochDriver.wall)
  }

  /// A publisher pauses early and goes on with other timestamps: what was before keeps its dates, and the pause is listed.
  @Test func aBreakKeepsTheDatesBeforeIt() throws {
    var driver = EpochDriver()
    driver.epoch.startPublication()
    try driver.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: EpochDriver.wall)))
    try driver.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
    for sample in SyntheticMedia.interleaved(seconds: 8, group: 60) {
      if sample.track == .video, sample.decodeTime == 120_000 {
        try driver.receive(.discontinuity)
        try driver.receive(
          .clock(WallClockAnchor(mediaTime: .zero, wallTime: EpochDriver.wall + 15_000_000_000)))
      }
      try driver.receive(.sample(sample))
    }
    let window = driver.epoch.window
    let seconds = window.segments.filter { !$0.isOutage }.map { ($0.wallStart &- EpochDriver.wall) / 1_000_000_000 }
    #expect(seconds == [0, 2, 19, 21])
    #expect(window.segments.contains { $0.isOutage })
  }
}
