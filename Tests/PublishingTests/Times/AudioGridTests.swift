@testable import Publishing
import Support
import Testing

@Suite("The audio grid")
struct AudioGridTests {
  @Test(
    arguments: [
      (44_100, 1024, 10, Rounding.nearest), (48_000, 1024, 10, .floor), (48_000, 960, 1, .nearest),
      (22_050, 2048, 1, .floor),
    ] as [(UInt32, UInt32, Int64, Rounding)])
  func tenHoursOfAudioHaveNoGapAndNoDrift(_ format: (UInt32, UInt32, hours: Int64, rounding: Rounding)) {
    var grid = AudioGrid(timescale: format.0)
    let frames = format.hours * 3600 * Int64(format.0) / Int64(format.1)
    var wrong = 0
    var corrections = 0
    for index in 0..<frames {
      let time = format.rounding.milliseconds(index * Int64(format.1), Int64(format.0))
      if grid.place(milliseconds: time, duration: format.1) != .at(index * Int64(format.1)) { wrong += 1 }
      if grid.correction != nil { corrections += 1 }
    }
    #expect(wrong == 0)
    #expect(corrections == 0)
  }

  @Test func jitterOfTheWireDoesNotReachTheSamples() {
    var grid = AudioGrid(timescale: 48_000)
    var random = SplitMix(state: 1)
    for index in 0..<Int64(20_000) {
      let jitter = Int64(random.next() % 61) - 30
      let place = grid.place(
        milliseconds: index == 0 ? 0 : max(0, index * 1024 / 48 + jitter), duration: 1024)
      #expect(place == .at(index * 1024))
    }
  }

  @Test func aDeviationOfAFrameThatLastsIsCorrectedOnceByAGap() {
    var grid = AudioGrid(timescale: 48_000)
    var corrections: [AudioGrid.Correction] = []
    var places: [Int64] = []
    for index in 0..<Int64(200) {
      // 100 ms are missing from frame 50 on.
      let time = Rounding.nearest.milliseconds(index * 1024, 48_000) + (index >= 50 ? 100 : 0)
      if case .at(let place) = grid.place(milliseconds: time, duration: 1024) { places.append(place) }
      if let correction = grid.correction { corrections.append(correction) }
    }
    #expect(corrections == [AudioGrid.Correction(milliseconds: 100, count: 1, fillsHole: true)])
    #expect(places.count == 200)
    // More than a second, less than one and a quarter.
    let jump = places.indices.dropFirst().first { places[$0] - places[$0 - 1] != 1024 }
    #expect((97...109).contains(jump ?? 0))
    let last = Rounding.nearest.milliseconds(199 * 1024, 48_000) + 100
    #expect(abs((places.last ?? 0) - last * 48) <= 48)
  }

  /// As GStreamer's FLV stamps them, in whole milliseconds: what lies before 0 is put at 0.
  @Test(arguments: [48_000, 44_100] as [UInt32])
  func aFrameThatPublisherAndGridAreApartFromTheStartStays(_ rate: UInt32) {
    var grid = AudioGrid(timescale: rate)
    for index in 0..<Int64(500) {
      let place = grid.place(milliseconds: max(0, index - 1) * 1_024_000 / Int64(rate), duration: 1024)
      #expect(place == .at(index * 1024) && grid.correction == nil)
    }
  }

  /// Wherever they were among frames whose times are whole milliseconds.
  @Test(
    arguments: [(48_000, 960), (48_000, 1024), (44_100, 1024), (22_050, 1024)] as [(UInt32, UInt32)], Int64(50)..<60)
  func missingFramesAreAGapOfTheirLength(_ format: (rate: UInt32, length: UInt32), missing: Int64) {
    var grid = AudioGrid(timescale: format.rate)
    var corrections: [AudioGrid.Correction] = []
    var last: AudioGrid.Place?
    let (rate, length) = (Int64(format.rate), Int64(format.length))
    let count = missing % 3 + 1
    for index in 0..<Int64(200) where !(missing..<missing + count).contains(index) {
      last = grid.place(milliseconds: Rounding.nearest.milliseconds(index * length, rate), duration: format.length)
      if let correction = grid.correction { corrections.append(correction) }
    }
    let gap = Rounding.nearest.milliseconds(count * length, rate)
    #expect(corrections == [AudioGrid.Correction(milliseconds: gap, count: 1, fillsHole: true)])
    #expect(last == AudioGrid.Place.at(199 * length))
  }

  /// Timestamps advance by 2 % more or less than the samples.
  @Test(arguments: [Int64(1020), 980]) func aWrongPaceIsNoHole(_ permille: Int64) {
    var grid = AudioGrid(timescale: 48_000)
    var corrections: [AudioGrid.Correction] = []
    for index in 0..<Int64(1000) {
      _ = grid.place(milliseconds: index * 1024 * permille / 48_000, duration: 1024)
      if let correction = grid.correction { corrections.append(correction) }
    }
    #expect(corrections.count >= 5 && corrections.allSatisfy { !$0.fillsHole }, "\(corrections)")
  }

  @Test func tooMuchAudioIsDroppedOnce() {
    var grid = AudioGrid(timescale: 48_000)
    var corrections: [AudioGrid.Correction] = []
    var dropped = 0
    for index in 0..<Int64(200) {
      let time = Rounding.nearest.milliseconds(index * 1024, 48_000) - (index >= 50 ? 100 : 0)
      if grid.place(milliseconds: time, duration: 1024) == .drop { dropped += 1 }
      if let correction = grid.correction { corrections.append(correction) }
    }
    #expect(corrections.count == 1)
    #expect(corrections.first?.milliseconds == -100)
    #expect((4...5).contains(dropped))
  }

  @Test func aJumpOfHalfASecondIsCorrectedAtOnce() {
    var grid = AudioGrid(timescale: 44_100)
    #expect(grid.place(milliseconds: 0, duration: 1024) == .at(0))
    #expect(grid.place(milliseconds: 524, duration: 1024) == .at(23_108))
    #expect(grid.correction?.milliseconds == 501)
    #expect(grid.place(milliseconds: 547, duration: 1024) == .at(24_132))
    #expect(grid.correction == nil)
  }

  @Test func aClockOfAHundredPartsInAMillionIsCorrectedOncePerFrame() {
    // One hour at +100 ppm is 360 ms: 16 or 17 frames of 21 ms.
    var grid = AudioGrid(timescale: 48_000)
    var corrections = 0
    for index in 0..<Int64(168_750) {
      let time = Rounding.nearest.milliseconds(index * 1024 * 10_001, 48_000 * 10_000)
      _ = grid.place(milliseconds: time, duration: 1024)
      if grid.correction != nil { corrections += 1 }
    }
    #expect((14...17).contains(corrections))
  }

  @Test func afterAJumpOfTheTimelineAudioBeginsWhereItsTimeSays() {
    var grid = AudioGrid(timescale: 48_000)
    _ = grid.place(milliseconds: 0, duration: 1024)
    grid.restart()
    #expect(grid.place(milliseconds: 40, duration: 1024) == .at(1920))
    #expect(grid.correction == nil)
    grid.restart()
    // Behind what was there: dropped until it has caught up.
    #expect(grid.place(milliseconds: 20, duration: 1024) == .drop)
    #expect(grid.place(milliseconds: 60, duration: 1024) == .at(2944))
  }
}

extension AudioGrid {
  /// A frame whose time the wire has in milliseconds.
  fileprivate mutating func place(milliseconds: Int64, duration: UInt32) -> Place {
    place(milliseconds * 1_000_000, duration: duration)
  }
}
