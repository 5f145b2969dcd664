@testable import Publishing
import Base
import FMP4
import Support
import Testing

/// How a sender turns an exact time into milliseconds.
enum Rounding: CaseIterable {
  case nearest, floor

  /// `numerator / denominator` seconds in milliseconds; both are positive.
  func milliseconds(_ numerator: Int64, _ denominator: Int64) -> Int64 {
    switch self {
    case .nearest: (numerator * 2000 + denominator) / (2 * denominator)
    case .floor: numerator * 1000 / denominator
    }
  }
}

@Suite("The frame grid")
struct FrameGridTests {
  static let rates: [(UInt32, UInt32)] = [
    (24_000, 1001), (24, 1), (25, 1), (30_000, 1001), (30, 1), (50, 1), (60_000, 1001), (60, 1), (120, 1), (25, 2),
  ]

  @Test(arguments: rates, Rounding.allCases)
  func aConstantRateComesOutExactlyForTenHours(_ fraction: (UInt32, UInt32), _ rounding: Rounding) throws {
    let rate = try #require(FrameRate(numerator: fraction.0, denominator: fraction.1))
    var grid = FrameGrid(rate: rate)
    let step = try #require(grid.frameDuration)
    // A start that is no multiple of the frame, as a publication in mid-life has it.
    let start: Int64 = 77
    let frames = 36_000 * Int64(fraction.0) / Int64(fraction.1)
    var worst: Int64 = 0
    var wrong = 0
    var index: Int64 = 0
    while index < frames {
      // Every frame for a while, then every 23rd: a predicted step only holds where frames follow one another.
      let isDense = index % 100_000 < 500
      defer { index += isDense ? 1 : 23 }
      let time = start + rounding.milliseconds(index * Int64(fraction.1), Int64(fraction.0))
      let place = grid.place(milliseconds: time, composition: 0)
      let expected = start * Int64(grid.timescale) / 1000 + index * Int64(step)
      if place.decodeTime != expected || place.compositionOffset != 0 { wrong += 1 }
      if index < 500, place.duration != step { wrong += 1 }
      worst = max(worst, abs(place.decodeTime - time * Int64(grid.timescale) / 1000))
    }
    #expect(wrong == 0)
    #expect(worst <= Int64(grid.timescale) / 1000)
  }

  @Test func timescalesAreTheRatesNumerators() throws {
    let expected: [(UInt32, UInt32, UInt32, UInt32)] = [
      (24_000, 1001, 24_000, 1001), (24, 1, 24_000, 1000), (25, 1, 25_000, 1000), (30_000, 1001, 30_000, 1001),
      (30, 1, 30_000, 1000), (50, 1, 50_000, 1000), (60_000, 1001, 60_000, 1001), (60, 1, 60_000, 1000),
      (25, 2, 25_000, 2000),
    ]
    for (numerator, denominator, timescale, step) in expected {
      let grid = FrameGrid(rate: FrameRate(numerator: numerator, denominator: denominator))
      #expect(grid.timescale == timescale)
      #expect(grid.frameDuration == step)
      #expect(timescale % 1000 == 0)
    }
    #expect(FrameGrid(rate: nil).timescale == 90_000)
    #expect(FrameGrid(rate: nil).frameDuration == nil)
  }

  /// Where the wire counts in 90 kHz: timescales that hold its ticks and the rate's frames.
  @Test func timescalesHoldTheTicksOfTheWire() throws {
    let expected: [(UInt32, UInt32, UInt32, UInt32)] = [
      (24_000, 1001, 360_000, 15_015), (24, 1, 90_000, 3750), (25, 1, 90_000, 3600), (30_000, 1001, 90_000, 3003),
      (30, 1, 90_000, 3000), (50, 1, 90_000, 1800), (60_000, 1001, 180_000, 3003), (60, 1, 90_000, 1500),
      (27, 1, 270_000, 10_000), (29, 1, 29_000, 1000),
    ]
    for (numerator, denominator, timescale, step) in expected {
      let grid = FrameGrid(rate: FrameRate(numerator: numerator, denominator: denominator), wire: 90_000)
      #expect(grid.timescale == timescale && grid.frameDuration == step, "\(numerator)")
    }
    #expect(FrameGrid(rate: nil, wire: 90_000).timescale == 90_000)
  }

  /// An encoder that states a rate, and a camera that keeps to none.
  @Test func timesOfTheWireStayToTheTickWhereTheRateIsNotKept() throws {
    for (numerator, denominator): (UInt32, UInt32) in [(25, 1), (30, 1), (24_000, 1001), (60, 1)] {
      var grid = FrameGrid(rate: FrameRate(numerator: numerator, denominator: denominator), wire: 90_000)
      let perTick = Int64(grid.timescale / 90_000)
      var (wire, worst) = (Int64(0), Int64(0))
      for number in Int64(0)..<200 {
        // Far from any grid, further from frame to frame.
        wire += 2000 + number * 37 % 1999
        let place = grid.place(decode: MediaTime(ticks: wire, timescale: 90_000).nanoseconds, composition: 0)
        if number > 20 { worst = max(worst, abs(place.decodeTime - wire * perTick)) }
      }
      #expect(worst <= perTick, "\(numerator): \(worst) of \(grid.timescale)")
    }
  }

  /// Thirty pictures a second, each up to 0.7 ms off: none of them is moved, before and after a rate could be learned.
  @Test(arguments: [nil, FrameRate(numerator: 30, denominator: 1)])
  func timesOfACameraStayWhereTheyAlmostKeepToARate(_ stated: FrameRate?) {
    var grid = FrameGrid(rate: stated, wire: 90_000, isCaptured: true)
    var moved: Set<Int64> = []
    for number in Int64(0)..<600 {
      let wire = number * 3000 + (number == 0 ? 0 : number * 37 % 121 - 60)
      let place = grid.place(decode: MediaTime(ticks: wire, timescale: 90_000).nanoseconds, composition: 0)
      moved.insert(place.decodeTime - wire)
    }
    #expect(moved == [0])
  }

  /// The exact times of an encoder, rounded to ticks, and those of a browser, which counts 90 kHz in whole milliseconds.
  @Test(arguments: [false, true])
  func capturedTimesComeBackOnTheGridThatTheyWereRoundedFrom(isInMilliseconds: Bool) throws {
    let rate = try #require(FrameRate(numerator: 24_000, denominator: 1001))
    var grid = FrameGrid(rate: nil, wire: 90_000, isCaptured: true)
    var places: [FrameGrid.Place] = []
    for number in Int64(0)..<300 {
      let exact = MediaTime(ticks: number * 1001, timescale: 24_000)
      let wire = isInMilliseconds ? exact.rescaled(to: 1000) * 90 : exact.rescaled(to: 90_000)
      places.append(
        grid.place(decode: MediaTime(ticks: wire, timescale: 90_000).nanoseconds, composition: 0))
    }
    #expect(grid.rate == rate)
    let last = places.suffix(100)
    let steps = Set(zip(last, last.dropFirst()).map { $1.decodeTime - $0.decodeTime })
    #expect(steps == [3753, 3754])
    #expect(last.allSatisfy { $0.duration == 3753 || $0.duration == 3754 })
  }

  @Test func aCameraMayChangeItsRateWhereItsTimelineBreaks() throws {
    var grid = FrameGrid(rate: nil, wire: 90_000, isCaptured: true)
    for rate in [30, 25] as [UInt32] {
      for number in Int64(0)..<300 {
        let time = MediaTime(ticks: number * 90_000 / Int64(rate), timescale: 90_000)
        _ = grid.place(decode: time.nanoseconds, composition: 0)
      }
      #expect(grid.rate == FrameRate(numerator: rate, denominator: 1))
      grid.restart()
    }
  }

  @Test func decimalRatesAreRecognised() {
    #expect(FrameClock.recognise(framesPerSecond: 29.97) == FrameRate(numerator: 30_000, denominator: 1001))
    #expect(FrameClock.recognise(framesPerSecond: 23.98) == FrameRate(numerator: 24_000, denominator: 1001))
    #expect(FrameClock.recognise(framesPerSecond: 30) == FrameRate(numerator: 30, denominator: 1))
    #expect(FrameClock.recognise(framesPerSecond: 59.94) == FrameRate(numerator: 60_000, denominator: 1001))
    #expect(FrameClock.recognise(framesPerSecond: 27.3) == nil)
    #expect(FrameClock.recognise(framesPerSecond: .nan) == nil)
    #expect(FrameClock.recognise(framesPerSecond: .infinity) == nil)
    #expect(FrameClock.recognise(FrameRate(numerator: 45_000, denominator: 1)) == nil)
    #expect(
      FrameClock.recognise(FrameRate(numerator: 2997, denominator: 100))
        == FrameRate(numerator: 30_000, denominator: 1001))
  }

  @Test(arguments: rates)
  func framesThatAreReorderedKeepBothTimesExactly(_ fraction: (UInt32, UInt32)) throws {
    let rate = try #require(FrameRate(numerator: fraction.0, denominator: fraction.1))
    var grid = FrameGrid(rate: rate)
    let step = Int64(try #require(grid.frameDuration))
    // I P B B in decoding order: presentation, in frames, of each group of four, delayed by two.
    let order: [Int64] = [2, 5, 3, 4]
    for index in 0..<Int64(800) {
      let shown = index / 4 * 4 + order[Int(index % 4)]
      // Both times are rounded for themselves, as ffmpeg's FLV muxer does.
      let decode = Rounding.nearest.milliseconds(index * Int64(fraction.1), Int64(fraction.0))
      let presentation = Rounding.nearest.milliseconds(shown * Int64(fraction.1), Int64(fraction.0))
      let place = grid.place(milliseconds: decode, composition: Int32(presentation - decode))
      #expect(place.decodeTime == index * step)
      #expect(place.decodeTime + Int64(place.compositionOffset) == shown * step)
    }
  }

  @Test func droppedFramesAreGapsOfWholeSteps() throws {
    var grid = FrameGrid(rate: FrameRate(numerator: 30, denominator: 1))
    var random = SplitMix(state: 7)
    var frame: Int64 = 0
    for _ in 0..<3000 {
      let place = grid.place(milliseconds: Rounding.nearest.milliseconds(frame, 30), composition: 0)
      #expect(place.decodeTime == frame * 1000)
      frame += Int64(random.next() % 8 == 0 ? random.next() % 9 + 1 : 1)
    }
  }

  /// An encoder on a busy machine leaves out every second frame for a while; a steady one always does.
  @Test func whatIsPredictedIsNeverMoreThanWhatTheRateHasBeen() throws {
    var grid = FrameGrid(rate: FrameRate(numerator: 30, denominator: 1))
    var predicted: Int64?
    var frame: Int64 = 0
    for steps in [Int64](repeating: 1, count: 20) + [Int64](repeating: 2, count: 40) + [Int64](repeating: 1, count: 20)
    {
      let place = grid.place(milliseconds: Rounding.nearest.milliseconds(frame, 30), composition: 0)
      #expect(place.decodeTime == frame * 1000)
      if let predicted { #expect(predicted <= place.decodeTime) }
      predicted = place.duration.map { place.decodeTime + Int64($0) }
      frame += steps
    }
    #expect(predicted == (frame * 1000), "and single steps are predicted again")

    var half = FrameGrid(rate: FrameRate(numerator: 60, denominator: 1))
    let durations = (0..<Int64(40)).map {
      half.place(milliseconds: Rounding.nearest.milliseconds(2 * $0, 60), composition: 0).duration
    }
    #expect(durations.dropFirst(2).allSatisfy { $0 == 2000 })
  }

  @Test func aVariableRateIsNeverOffByMoreThanAMillisecond() throws {
    for rate in [nil, FrameRate(numerator: 30, denominator: 1), FrameRate(numerator: 60_000, denominator: 1001)] {
      var grid = FrameGrid(rate: rate)
      var random = SplitMix(state: 3)
      var time: Int64 = 1000
      var last = Int64.min
      for _ in 0..<3000 {
        time += Int64(random.next() % 120 + 1)
        let composition = Int32(random.next() % 200)
        let place = grid.place(milliseconds: time, composition: composition)
        let ticks = Int64(grid.timescale / 1000)
        #expect(abs(place.decodeTime - time * ticks) <= ticks)
        #expect(
          abs(place.decodeTime + Int64(place.compositionOffset) - (time + Int64(composition)) * ticks) <= ticks)
        #expect(place.decodeTime > last)
        last = place.decodeTime
      }
    }
  }

  @Test func aFrameOffTheGridComesOutAsItCameAndTheGridReturns() throws {
    var grid = FrameGrid(rate: FrameRate(numerator: 25, denominator: 1))
    for index in 0..<Int64(10) { _ = grid.place(milliseconds: index * 40, composition: 0) }
    let stray = grid.place(milliseconds: 10 * 40 + 13, composition: 0)
    #expect(stray.decodeTime == (10 * 40 + 13) * 25)
    #expect(stray.duration == nil)
    for index in Int64(11)..<26 {
      #expect(grid.place(milliseconds: index * 40, composition: 0).duration == nil)
    }
    let back = grid.place(milliseconds: 26 * 40, composition: 0)
    #expect(back.decodeTime == 26 * 1000)
    #expect(grid.rate != nil)
  }

  @Test func decodeTimesRiseEvenWhereTheWiresDoNot() {
    var grid = FrameGrid(rate: FrameRate(numerator: 30, denominator: 1))
    var last = Int64.min
    for time: Int64 in [0, 33, 33, 33, 30, 67, 66, 100, 100] {
      let place = grid.place(milliseconds: time, composition: 10)
      #expect(place.decodeTime > last)
      #expect(abs(place.decodeTime + Int64(place.compositionOffset) - (time + 10) * 30) <= 30)
      last = place.decodeTime
    }
  }

  @Test(arguments: rates.filter { $0.0 != 120 }, Rounding.allCases)
  func aRateThatWasNotStatedIsLearned(_ fraction: (UInt32, UInt32), _ rounding: Rounding) throws {
    var grid = FrameGrid(rate: nil)
    let rate = try #require(FrameRate(numerator: fraction.0, denominator: fraction.1))
    let frames = 12 * Int64(fraction.0) / Int64(fraction.1)
    var worst: Int64 = 0
    var steps: Set<Int64> = []
    var last: Int64?
    for index in 0..<frames {
      let time = rounding.milliseconds(index * Int64(fraction.1), Int64(fraction.0))
      let place = grid.place(milliseconds: time, composition: 0)
      worst = max(worst, abs(place.decodeTime - time * 90))
      if index > frames / 2 {
        if let last { steps.insert(place.decodeTime - last) }
        last = place.decodeTime
      }
    }
    #expect(grid.rate == rate)
    #expect(worst <= 90)
    // One step, or two neighbours where a frame is no whole number of ticks.
    #expect(steps.count <= 2)
    #expect((steps.max() ?? 0) - (steps.min() ?? 0) <= 1)
  }

  @Test func aRateThatTheMetadataGotWrongIsReplacedByTheTrueOne() throws {
    var grid = FrameGrid(rate: FrameRate(numerator: 30, denominator: 1))
    for index in 0..<Int64(900) {
      let time = Rounding.nearest.milliseconds(index * 1001, 30_000)
      let place = grid.place(milliseconds: time, composition: 0)
      #expect(abs(place.decodeTime - time * 30) <= 30)
    }
    #expect(grid.rate == FrameRate(numerator: 30_000, denominator: 1001))
    #expect(grid.timescale == 30_000)
  }

  @Test func aClockThatRunsFastIsFollowedWithinAMillisecond() throws {
    // 100 ppm, for ten minutes.
    var grid = FrameGrid(rate: FrameRate(numerator: 30, denominator: 1))
    for index in 0..<Int64(18_000) {
      let time = Rounding.nearest.milliseconds(index * 999_900, 30_000_000)
      let place = grid.place(milliseconds: time, composition: 0)
      #expect(abs(place.decodeTime - time * 30) <= 30)
    }
  }

  @Test func nanosecondsRefineThePresentationTime() {
    var grid = FrameGrid(rate: nil)
    let place = grid.place(milliseconds: 100, composition: 5, nanoseconds: 500_000)
    #expect(place.decodeTime == 9000)
    #expect(place.compositionOffset == 495)
  }

  /// MPEG-TS counts 90,000 ticks a second: on its grid, and off it by less than a millisecond.
  @Test func timesOfAFinerWireComeOutOnTheGridToo() throws {
    var grid = FrameGrid(rate: FrameRate(numerator: 30_000, denominator: 1001))
    var clock = WireClock(hertz: 90_000, bits: 33)
    let start: UInt64 = 1 << 33 - 300_000
    let first = clock.nanoseconds(start)
    for index in UInt64(0)..<9000 {
      let time = clock.nanoseconds((start + index * 3003 + (index % 2)) % (1 << 33))
      let place = grid.place(decode: time - first, composition: 2 * 1_001_000_000 / 30)
      #expect(place.decodeTime == Int64(index) * 1001)
      #expect(place.compositionOffset == 2002)
    }
  }

  @Test func timesBeyondAllBoundsDoNotTrap() {
    for rate in [nil, FrameRate(numerator: 60_000, denominator: 1001), FrameRate(numerator: 5, denominator: 1)] {
      var grid = FrameGrid(rate: rate)
      for time in [Int64.max, .min, 0, .max / 2, .min / 2, -1, 1 << 61] {
        _ = grid.place(milliseconds: time, composition: .min, nanoseconds: .max)
        _ = grid.place(milliseconds: time, composition: .max)
      }
    }
  }
}

extension FrameGrid {
  /// A frame whose times the wire has in milliseconds; `nanoseconds` are what it adds to the presentation time.
  fileprivate mutating func place(milliseconds: Int64, composition: Int32, nanoseconds: UInt32 = 0) -> Place {
    place(decode: milliseconds &* 1_000_000, composition: Int64(composition) &* 1_000_000 &+ Int64(nanoseconds))
  }
}
