import FMP4
import NIOCore
@testable import Publishing
import Support
import Testing

@Suite("Wrong times and jumps")
struct TimestampJudgeTests {
  /// Gives units to a judge and keeps what comes out: times in milliseconds.
  private struct Driver {
    var judge = TimestampJudge()
    var times: [TrackID: [Int64]] = [:]
    var mended: [Int64] = []
    var mostHeld = 0
    private var held = 0

    mutating func give(
      _ id: TrackID, _ milliseconds: Int64, now: Int64, bytes: Int = 10, isCountedOn: Bool = false,
      composition: Int64 = 0
    ) {
      let unit = WireUnit(
        track: id, coding: id == .video ? .h264 : .aac, time: milliseconds * 1_000_000,
        composition: composition * 1_000_000, isCountedOn: isCountedOn,
        payload: ByteBuffer(repeating: 1, count: bytes))
      guard !judge.passes(unit, now: .at(now * 1_000_000)) else { return keep(unit) }
      held += 1
      mostHeld = max(mostHeld, held)
      takeJudged()
    }

    mutating func takeJudged() {
      for judged in judge.takeJudged() {
        held -= 1
        if judged.isMended { mended.append(judged.unit.time / 1_000_000) }
        keep(judged.unit)
      }
    }

    private mutating func keep(_ unit: WireUnit) { times[unit.track, default: []].append(unit.time / 1_000_000) }

    /// Video of 25 and audio of 50 frames a second from one time to another; `stamp` gives the time that the publisher states.
    mutating func play(_ range: Range<Int64>, _ stamp: (TrackID, Int64) -> Int64) {
      for time in stride(from: range.lowerBound, to: range.upperBound, by: 20) {
        if time % 40 == 0 { give(.video, stamp(.video, time), now: time) }
        give(.audio, stamp(.audio, time), now: time)
      }
    }
  }

  private let whole: [TrackID: [Int64]] = [
    .video: Array(stride(from: 10_000, to: 12_000, by: 40)), .audio: Array(stride(from: 10_000, to: 12_000, by: 20)),
  ]

  @Test(
    arguments: [TrackID.video, .audio],
    [36_000_000, -36_000_000, 5000, -5000, 9900, -11_000, 2000, -700, 600, 500] as [Int64])
  func aLoneWrongTimeIsTheExpectedOne(_ track: TrackID, _ error: Int64) {
    var driver = Driver()
    driver.play(10_000..<12_000) { $0 == track && $1 == 11_000 ? $1 + error : $1 }
    #expect(driver.times == whole && driver.mended == [11_000])
    #expect(driver.mostHeld <= 4 && driver.judge.byteCount == 0)
  }

  @Test func oneWrongTimeInTenIsMendedEachTime() {
    var driver = Driver()
    driver.play(10_000..<12_000) { $0 == .video && $1 % 400 == 0 && $1 > 10_000 ? 0 : $1 }
    #expect(driver.times == whole && driver.mended == [10_400, 10_800, 11_200, 11_600])
  }

  @Test func twoWrongTimesInARowAreMended() {
    for second in [0, 36_011_040] as [Int64] {
      var driver = Driver()
      driver.play(10_000..<12_000) { track, time in
        guard track == .video else { return time }
        return time == 11_000 ? 36_000_000 + time : time == 11_040 ? second : time
      }
      #expect(driver.times == whole, "\(second)")
    }
  }

  @Test(arguments: [36_000_000, -3_600_000, 11_000, -5000] as [Int64])
  func aJumpBeginsWithItsFirstSampleAndIsOneWhenTheOtherTrackAgrees(_ jump: Int64) {
    var driver = Driver()
    driver.play(10_000..<12_000) { $1 >= 11_000 ? $1 + jump : $1 }
    #expect(driver.mended.isEmpty && driver.mostHeld == 2)
    for track in [TrackID.video, .audio] {
      #expect(driver.times[track] == whole[track]?.map { $0 >= 11_000 ? $0 + jump : $0 })
    }
  }

  @Test func aJumpOfOneTrackIsOneWithItsThirdSample() {
    var driver = Driver()
    for time in stride(from: Int64(0), to: 2000, by: 40) {
      driver.give(.video, time >= 1000 ? time + 36_000_000 : time, now: time)
      #expect(driver.judge.holds(.video) == (time == 1000 || time == 1040), "\(time)")
    }
    #expect(driver.times[.video]?.count == 50 && driver.mended.isEmpty && driver.mostHeld == 3)
  }

  @Test func honestTimesNeverWait() {
    var driver = Driver()
    // A rate that varies beside audio, a pause of all, and clocks that have nothing to do with each other.
    for time in stride(from: Int64(0), to: 20_000, by: 20) where !(8000..<13_000).contains(time) {
      if time % 1500 < 400 { driver.give(.video, time, now: time) }
      driver.give(.audio, time + 7_000_000, now: time)
    }
    // One frame in two seconds, alone.
    for time in stride(from: Int64(0), to: 20_000, by: 2000) { driver.give(TrackID(7), time, now: time) }
    #expect(driver.mostHeld == 0 && driver.mended.isEmpty)
  }

  /// Video alone: nothing else says that a pause was one.
  @Test func aPauseBehindAPictureThatCameLateIsNotWaitedFor() {
    var driver = Driver()
    for time in stride(from: Int64(0), to: 5000, by: 40) {
      driver.give(.video, time, now: time < 4500 ? time : time + 600)
    }
    for time in [9000, 11_000, 11_040] as [Int64] { driver.give(.video, time, now: time) }
    #expect(driver.mostHeld == 0 && driver.mended.isEmpty)
  }

  /// Ten times faster than real time, without audio.
  @Test func timesThatRiseAreNeverMended() {
    let times: [Int64] = [0, 40, 3040, 8000, 8300, 9000, 15_000, 15_040, 16_000, 16_040]
    var driver = Driver()
    for time in times { driver.give(.video, time, now: time / 10) }
    #expect(driver.times[.video] == times && driver.mended.isEmpty)
  }

  @Test func aGapThatComesFasterThanRealTimeKeepsItsTimes() {
    var driver = Driver()
    for time in stride(from: Int64(0), to: 20_000, by: 20) where !(5000..<10_000).contains(time) {
      if time % 40 == 0 { driver.give(.video, time, now: 0) }
      driver.give(.audio, time, now: 0)
    }
    for time in [0, 2000, 7000, 8000, 17_000, 17_040, 17_080] as [Int64] { driver.give(TrackID(7), time, now: 0) }
    driver.judge.decide()
    driver.takeJudged()
    #expect(driver.mended.isEmpty && driver.times[TrackID(7)] == [0, 2000, 7000, 8000, 17_000, 17_040, 17_080])
    #expect(driver.times[.video]?.count == 375 && driver.times[.audio]?.count == 750)
  }

  @Test func aSlowPictureThatTheAudioReachesIsWhereItSays() {
    var driver = Driver()
    // Faster than real time: each picture comes before the audio of its time.
    for time in stride(from: Int64(0), to: 30_000, by: 20) {
      if time % 9000 == 0 { driver.give(.video, time, now: 0) }
      driver.give(.audio, time, now: 0)
    }
    #expect(driver.times[.video] == [0, 9000, 18_000, 27_000] && driver.mended.isEmpty)
    var ahead = Driver()
    for time in stride(from: Int64(0), to: 9000, by: 20) {
      if time == 0 || time == 2000 { ahead.give(.video, time * 4, now: 0) }
      ahead.give(.audio, time, now: 0)
    }
    #expect(ahead.times[.video] == [0, 8000] && ahead.mended.isEmpty && ahead.judge.byteCount == 0)
  }

  @Test func aClockThatIsFarTooFastIsBelieved() {
    var driver = Driver()
    for index in 0..<100 as Range<Int64> { driver.give(.video, index * 3000, now: index * 20) }
    #expect(driver.times[.video] == (0..<100).map { $0 * 3000 } && driver.mended.isEmpty && driver.mostHeld <= 2)
  }

  @Test func aTimeThatIsCountedOnSharesTheFateOfTheStatedOne() {
    var driver = Driver()
    // Four frames of audio in each packet, of which the first has a time.
    for packet in 0..<10 as Range<Int64> {
      let time = packet * 80 + (packet == 5 ? 36_000_000 : 0)
      for frame in 0..<4 as Range<Int64> {
        driver.give(.audio, time + frame * 20, now: packet * 80, isCountedOn: frame > 0)
      }
    }
    #expect(driver.times[.audio] == (0..<40).map { $0 * 20 } && driver.mended == [400, 420, 440, 460])
  }

  @Test func aPresentationTimeThatWasRightStays() throws {
    var judge = TimestampJudge()
    var found: [WireUnit] = []
    for index in 0..<4 as Range<Int64> {
      let isWrong = index == 2
      let unit = WireUnit(
        track: .video, coding: .h264, time: (isWrong ? 50_000 : index * 40) * 1_000_000,
        composition: (isWrong ? 160 - 50_000 : 80) * 1_000_000, payload: ByteBuffer(bytes: [1]))
      if judge.passes(unit, now: .at(index * 40_000_000)) { found.append(unit) }
      found += judge.takeJudged().map(\.unit)
    }
    #expect(found.map(\.time) == [0, 40, 80, 120].map { $0 * 1_000_000 })
    #expect(found.map(\.composition) == [80, 80, 80, 80].map { $0 * 1_000_000 })
  }

  @Test func whatWaitsIsDecidedAfterAWhileOrWhenItIsTooMuch() {
    var driver = Driver()
    driver.play(0..<1000) { $1 }
    driver.give(.video, 90_000_000, now: 1000)
    #expect(driver.judge.deadline == .at(1_000_000_000 + PublicationLimits.doubtWait))
    driver.judge.decide()
    driver.takeJudged()
    // The audio has gone on, and would not have jumped alone.
    #expect(driver.mended == [1000] && driver.judge.deadline == nil && driver.judge.byteCount == 0)
    driver.give(.video, 90_000_040, now: 1040)
    for time in stride(from: Int64(1020), to: 40_000, by: 20) { driver.give(.audio, time, now: time) }
    #expect(driver.mostHeld == PublicationLimits.doubtfulUnits)
    driver.give(.video, 0, now: 1080)
    driver.give(.audio, 40_000, now: 40_000, bytes: PublicationLimits.doubtfulBytes)
    #expect(driver.judge.byteCount == 0)
  }

  @Test func timesWithoutAnyOrderAreNotMendedForEver() {
    var driver = Driver()
    driver.play(0..<1000) { $1 }
    for index in 0..<100 as Range<Int64> { driver.give(.video, index * 7_000_000 % 99_999_989, now: 1000 + index * 40) }
    driver.judge.decide()
    driver.takeJudged()
    #expect(driver.times[.video]?.count == 125)
    #expect((1...90).contains(driver.mended.count) && driver.mostHeld <= 3)
  }
}
