import CLibAV
import FMP4
@testable import LibAV
import NIOCore
import Support
import Testing
@testable import Transcode

/// What a worker may give out as a rung, and that encoders need no more.
@Suite struct RungBudgetTests {
  private let budget = RungBudget(bitRate: 3_000_000, macroblocks: 3600, frameDuration: 3000, timescale: 90_000)

  @Test func aFrameOfTheCapacityIsTakenAndOneByteMoreIsNot() {
    for (bytes, isTaken) in [(budget.capacity, true), (budget.capacity + 1, false)] {
      var budget = budget
      #expect(budget.take(bytes, after: .max) == isTaken)
    }
    // Four seconds of its rate, and what key frames have at least.
    #expect((1_500_000...1_700_000).contains(budget.capacity))
  }

  @Test func theRateMayBeTwiceAsHighForEverAndNoMore() {
    var twice = budget
    var thrice = budget
    let isTaken = (0..<100_000).allSatisfy { _ in twice.take(25_000, after: 3000) }
    let isRefused = (0..<1000).contains { _ in !thrice.take(37_500 + 7456, after: 3000) }
    #expect(isTaken && isRefused)
  }

  @Test func framesThatComeAllAtOnceHaveTheCapacityTogether() {
    var budget = budget
    var taken = 0
    while taken < 100_000_000, budget.take(10_000, after: 1) { taken += 10_000 }
    #expect(taken <= budget.capacity + 50_000)
  }

  @Test func whatWasUsedIsUsedAfterAnotherConfiguration() {
    var before = budget
    let isFilled = before.take(before.capacity, after: .max)
    #expect(isFilled)
    var after = budget
    after.goOn(after: before)
    let share = 25_000 + 7456
    for (bytes, isTaken) in [(share, true), (share + 1, false)] {
      var after = after
      #expect(after.take(bytes, after: .max) == isTaken)
    }
  }

  @Test func noDurationAndNoRateTrapsNothing() {
    for (rate, duration, timescale) in [(0, 0, 0), (.max, .max, 1), (.max, .max, .max)] as [(UInt32, UInt32, UInt32)] {
      var budget = RungBudget(bitRate: rate, macroblocks: 4096 * 256, frameDuration: duration, timescale: timescale)
      let isTaken = [0, -5, .max].allSatisfy { budget.take(1, after: $0) }
      #expect(isTaken)
    }
  }

  /// The worst that a publisher can have encoded: noise, each frame of it a key frame, more of them than it tells.
  @Test(
    arguments: isLong
      ? [(160, 90, 50_000), (160, 90, 800_000), (640, 360, 50_000), (640, 360, 2_000_000)]
      : [(160, 90, 50_000), (160, 90, 800_000)])
  func ourEncoderStaysWithinItWhateverItIsGiven(width: Int, height: Int, bitRate: UInt32) throws {
    for preset in [VideoEncoding.Preset.ultrafast, .veryfast] {
      for (spacing, allKeys) in [(3000, true), (3000, false), (750, true)] as [(Int64, Bool)] {
        let rung = TranscodeConfiguration.Rung(
          width: UInt16(width), height: UInt16(height), bitRate: bitRate, preset: preset)
        let configuration = TranscodeConfiguration(
          codec: .h264, record: [], timescale: 90_000, frameDuration: 0, color: [1, 1, 1], rungs: [rung])
        var budget = RungBudget(
          bitRate: bitRate, macroblocks: (width + 15) / 16 * ((height + 15) / 16), frameDuration: 3000,
          timescale: 90_000)
        let encoder = try RungEncoder(rung, of: configuration)
        var random = SplitMix(state: 7)
        for number in 0..<60 {
          let image = try VideoFrame(width: width, height: height, format: AV_PIX_FMT_YUV420P)
          noise(image.frame.pointee, height: height, &random)
          image.frame.pointee.pts = Int64(number) * spacing
          let isKey = allKeys || number == 0
          image.frame.pointee.pict_type = isKey ? AV_PICTURE_TYPE_I : AV_PICTURE_TYPE_NONE
          try encoder.encode(DecodedFrame(image: image, time: Int64(number) * spacing, isKey: isKey)) {
            let size = $2.readableBytes
            let isTaken = budget.take(size, after: spacing)
            #expect(isTaken, "\(size) bytes in frame \(number) with \(preset)")
          }
        }
      }
    }
  }

  /// A publisher that changes the size of its frames with each of them has an encoder for each.
  @Test(arguments: isLong ? [(640, 360, 50_000), (640, 360, 800_000), (640, 360, 3_000_000)] : [(320, 180, 400_000)])
  func encodersThatBeginAnewWithEachFrameStayWithinItTogether(width: Int, height: Int, bitRate: UInt32) throws {
    #expect(try refusals(width, height, bitRate) { $0 } == 0)
  }

  @Test func encodersThatKnowNothingOfTheOneBeforeDoNot() throws {
    #expect(try refusals(320, 180, 200_000) { _ in nil } > 0)
  }

  /// How many of 120 frames are too much, each from an encoder of its own; `heritage` is what it knows of the one before.
  private func refusals(
    _ width: Int, _ height: Int, _ bitRate: UInt32, _ heritage: (VBVCarryOver) -> VBVCarryOver?
  ) throws -> Int {
    var refusals = 0
    var budget: RungBudget?
    var debt: VBVCarryOver?
    var random = SplitMix(state: 7)
    for number in 0..<120 {
      let width = width - number % 2 * 16
      let rung = TranscodeConfiguration.Rung(
        width: UInt16(width), height: UInt16(height), bitRate: bitRate, preset: .veryfast)
      let configuration = TranscodeConfiguration(
        codec: .h264, record: [], timescale: 90_000, frameDuration: 3000, color: [1, 1, 1], rungs: [rung])
      var next = RungBudget(
        bitRate: bitRate, macroblocks: (width + 15) / 16 * ((height + 15) / 16), frameDuration: 3000, timescale: 90_000)
      if let budget { next.goOn(after: budget) }
      let encoder = try RungEncoder(rung, of: configuration, after: debt)
      let image = try VideoFrame(width: width, height: height, format: AV_PIX_FMT_YUV420P)
      noise(image.frame.pointee, height: height, &random)
      image.frame.pointee.pts = Int64(number) * 3000
      image.frame.pointee.pict_type = AV_PICTURE_TYPE_I
      let receive = { (_: Int64, _: Bool, payload: ByteBuffer) in
        if !next.take(payload.readableBytes, after: 3000) { refusals += 1 }
      }
      try encoder.encode(DecodedFrame(image: image, time: Int64(number) * 3000, isKey: true), receive)
      try encoder.finish(receive)
      (budget, debt) = (next, heritage(encoder.debt))
    }
    return refusals
  }

  private func noise(_ frame: AVFrame, height: Int, _ random: inout SplitMix) {
    for (plane, width, rows) in [
      (frame.data.0, frame.linesize.0, height), (frame.data.1, frame.linesize.1, height / 2),
      (frame.data.2, frame.linesize.2, height / 2),
    ] {
      guard let plane else { continue }
      let bytes = UnsafeMutableRawBufferPointer(start: plane, count: Int(width) * rows)
      for at in stride(from: 0, to: bytes.count - 7, by: 8) {
        bytes.storeBytes(of: random.next(), toByteOffset: at, as: UInt64.self)
      }
    }
  }
}
