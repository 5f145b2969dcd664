import CLibAV
import FMP4
import Glibc
import IngestSupport
@testable import LibAV
@testable import Local
import NIOCore
import Support
import Testing

@Suite struct VideoEncoderTests {
  private static let settings = TestSourceSettings(width: 320, height: 180, videoBitRate: 400_000)

  /// Codes frames of the test source, one after the other, and gives out what comes, and how many were still missing
  /// when the last one had been put in.
  private func coded(
    _ encoding: VideoEncoding, count: Int64, keyFrames: Set<Int64>
  ) throws -> (codec: Codec, frames: [VideoEncoder.CodedFrame], held: Int) {
    let settings = Self.settings
    let canvas = try TestCanvas(
      settings: settings, schedule: TestSchedule(wallStart: PatternClock.wallStart, rate: settings.frameRate))
    let encoder = try VideoEncoder.best(settings.format, encoding)
    var frames: [VideoEncoder.CodedFrame] = []
    for number in 0..<count {
      try canvas.draw(number)
      try encoder.encode(canvas.frame, at: number, as: keyFrames.contains(number) ? .keyFrame : .asEncoderLikes) {
        frames.append($0)
      }
    }
    let held = Int(count) - frames.count
    try encoder.finish { frames.append($0) }
    return (try #require(encoder.codec), frames, held)
  }

  /// The numbers burned into the frames, in the order of their presentation, as a decoder sees them.
  private func numbers(_ codec: Codec, _ frames: [VideoEncoder.CodedFrame]) throws -> [UInt32] {
    let decoder = try LibAVDecoder(codec.id.libAV.id, extradata: codec.record())
    var seen: [UInt32] = []
    let receive = { (time: Int64, frame: AVFrame) in
      let stride = Int(frame.linesize.0)
      let luma = LumaPlane(
        pixels: UnsafeMutableRawBufferPointer(start: frame.data.0, count: stride * Int(frame.height)), stride: stride,
        width: Int(frame.width), height: Int(frame.height))
      seen.append(CounterBlock(frameWidth: Int(frame.width)).read(from: luma))
    }
    for frame in frames { try decoder.decode((frame.presentationTime, frame.payload), receive) }
    try decoder.decode(nil, receive)
    return seen
  }

  @Test(arguments: [VideoEncoderName.x264, .x265, .svtAV1])
  func everyFrameComesOutAtOnceInOrderAndKeyFramesWhereTheyAreAskedFor(name: VideoEncoderName) throws {
    let encoding = VideoEncoding(encoder: name, bitRate: 400_000, preset: .ultrafast, threads: 1)
    let (codec, frames, held) = try coded(encoding, count: 24, keyFrames: [0, 10, 17])
    // SVT-AV1 works beside its caller, who gets a frame when the next one is put in.
    #expect(frames.count == 24 && (held == 0 || name == .svtAV1), "\(held) held back")
    #expect(frames.filter(\.isSync).map(\.presentationTime) == [0, 10, 17])
    #expect(frames.map(\.presentationTime) == frames.map(\.decodeTime))
    #expect(try numbers(codec, frames) == Array(0..<24))
  }

  @Test(arguments: [VideoEncoderName.x264, .x265])
  func bFramesDelayAndNothingIsLostAtTheEnd(name: VideoEncoderName) throws {
    let encoding = VideoEncoding(
      encoder: name, bitRate: 400_000, preset: .ultrafast, tune: .none, bFrames: 2, threads: 1)
    let (codec, frames, held) = try coded(encoding, count: 24, keyFrames: [0])
    #expect(held > 0 && frames.count == 24)
    #expect(Set(frames.map(\.presentationTime)) == Set(0..<24))
    #expect(zip(frames, frames.dropFirst()).allSatisfy { $0.decodeTime < $1.decodeTime })
    #expect(try numbers(codec, frames) == Array(0..<24))
  }

  @Test func theBitRateIsKeptAndQualityIsEven() throws {
    func bits(_ control: VideoEncoding.RateControl) throws -> Int {
      let encoding = VideoEncoding(
        encoder: .x264, bitRate: 300_000, rateControl: control, preset: .ultrafast, threads: 1)
      return try coded(encoding, count: 60, keyFrames: [0]).frames.reduce(0) { $0 + $1.payload.readableBytes * 8 } / 2
    }
    let constant = try bits(.constant)
    #expect((150_000...375_000).contains(constant), "\(constant) bits a second")
    let (fine, coarse) = (try bits(.quality(18)), try bits(.quality(44)))
    #expect(fine > coarse * 2, "\(fine) and \(coarse) bits a second")
  }

  /// The judge is a decoder that knows nothing of the encoder, against the very pixels that went in.
  @Test func atTheDefaultSettingsFramesKeepTheirQuality() throws {
    let settings = TestSourceSettings()
    let schedule = TestSchedule(wallStart: PatternClock.wallStart, rate: settings.frameRate)
    let canvas = try TestCanvas(settings: settings, schedule: schedule)
    let encoder = try VideoEncoder(.x264, settings.format, VideoEncoding(threads: 1))
    var frames: [VideoEncoder.CodedFrame] = []
    var sources: [[UInt8]] = []
    for number in 0..<24 as Range<Int64> {
      try canvas.draw(number)
      sources.append(Self.luma(canvas.frame.pointee))
      try encoder.encode(canvas.frame, at: number, as: number == 0 ? .keyFrame : .asEncoderLikes) {
        frames.append($0)
      }
    }
    let codec = try #require(encoder.codec)
    let decoder = try LibAVDecoder(AV_CODEC_ID_H264, extradata: codec.record())
    var errors: [Double] = []
    let receive = { (time: Int64, frame: AVFrame) in
      errors.append(zip(Self.luma(frame), sources[Int(time)]).reduce(0.0) { $0 + Self.square(Int($1.0) - Int($1.1)) })
    }
    for frame in frames { try decoder.decode((frame.presentationTime, frame.payload), receive) }
    try decoder.decode(nil, receive)
    let mean = errors.reduce(0, +) / Double(sources.reduce(0) { $0 + $1.count })
    let decibels = 20 * log10(255) - 10 * log10(mean)
    #expect(errors.count == 24 && decibels >= 38, "\(decibels) dB")
  }

  private static func square(_ value: Int) -> Double { Double(value * value) }

  /// Of a seventh of the pixels, of each row and each column: tests are not optimised.
  private static func luma(_ frame: AVFrame) -> [UInt8] {
    (0..<Int(frame.height)).flatMap { row in
      stride(from: row % 7, to: Int(frame.width), by: 7).compactMap { frame.data.0?[row * Int(frame.linesize.0) + $0] }
    }
  }

  @Test func whatTheMachineLacksIsPassedOver() throws {
    var passed: [VideoEncoderName] = []
    let encoding = VideoEncoding(encoder: .h264NVENC, preset: .ultrafast, threads: 1)
    let encoder = try VideoEncoder.best(Self.settings.format, encoding) { name, _ in passed.append(name) }
    // A machine with the hardware takes it.
    #expect(encoder.name == (passed.isEmpty ? .h264NVENC : .x264))
    let software = try VideoEncoder.best(Self.settings.format, VideoEncoding(preset: .ultrafast, threads: 1))
    #expect(software.name.coding == .h264)
  }

  @Test func theHardwareIsTriedFirstAndTheSoftwareStandsIn() {
    #expect(VideoEncoderName.candidates(nil, coding: .h264) == [.h264NVENC, .h264VAAPI, .h264V4L2, .x264])
    #expect(VideoEncoderName.candidates(.hevcVAAPI, coding: .hevc) == [.hevcVAAPI, .x265])
    #expect(VideoEncoderName.candidates(.x264, coding: .h264) == [.x264])
    #expect(VideoEncoderName.candidates(.x264, coding: .av1) == [.svtAV1])
  }

  @Test(arguments: [CodecID.aac, .opus])
  func audioComesOutWithTheTimesItWentInWith(coding: CodecID) throws {
    let encoder = try AudioEncoder(coding, sampleRate: 48000, bitRate: 128_000)
    let size = encoder.samplesPerFrame
    var frames: [(time: Int64, payload: ByteBuffer)] = []
    let tone = (0..<size * 50).map { index in Float(sin440(index)) * (index < size * 20 ? 0 : 0.5) }
    for frame in 0..<50 {
      let samples = Array(tone[frame * size..<(frame + 1) * size])
      try encoder.encode(left: samples, right: samples, at: Int64(frame * size)) { frames.append(($0, $1)) }
    }
    try encoder.finish { frames.append(($0, $1)) }
    #expect(zip(frames, frames.dropFirst()).allSatisfy { $1.time - $0.time == Int64(size) })
    #expect(frames.first.map { (0..<Int64(size)).contains($0.time) } == true)
    // OpusHead (RFC 7845 §5.1): two channels, 312 samples of priming, 48 kHz.
    let opusHead = Array("OpusHead".utf8) + [1, 2, 0x38, 1, 0x80, 0xBB, 0, 0, 0, 0, 0]
    let decoder = try LibAVDecoder(
      coding.libAV.id, extradata: coding == .opus ? opusHead : encoder.codec.record())
    var onset: Int64?
    let receive = { (time: Int64, frame: AVFrame) in
      guard onset == nil, let left = frame.extended_data?.pointee else { return }
      let step = frame.format == AV_SAMPLE_FMT_FLT.rawValue ? 2 : 1
      left.withMemoryRebound(to: Float.self, capacity: Int(frame.nb_samples) * step) { samples in
        onset = (0..<Int(frame.nb_samples)).first { abs(samples[$0 * step]) > 0.1 }.map { time + Int64($0) }
      }
    }
    for frame in frames { try decoder.decode(frame, receive) }
    try decoder.decode(nil, receive)
    // The tone begins with its twentieth frame; coders of blocks hear it coming.
    #expect(abs(try #require(onset) - Int64(20 * size)) < 600, "heard at \(onset ?? -1), put in at \(20 * size)")
  }

  private func sin440(_ index: Int) -> Double {
    var phase = Double(index) * 440 / 48000
    phase -= phase.rounded(.down)
    // A triangle is enough of a tone.
    return phase < 0.5 ? 4 * phase - 1 : 3 - 4 * phase
  }
}
