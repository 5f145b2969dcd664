import CLibAV
import FMP4
import LibAV
import Testing
@testable import Transcode

@Suite("Audio brought to another rate and other channels")
struct AudioConverterTests {
  /// Planar samples of 32 bits; each channel is a ramp from 0 to 1, the second one negative.
  private func frame(_ count: Int, rate: Int32, channels: Int32) throws -> VideoFrame {
    let frame = try VideoFrame()
    frame.frame.pointee.sample_rate = rate
    frame.frame.pointee.format = AV_SAMPLE_FMT_FLTP.rawValue
    frame.frame.pointee.nb_samples = Int32(count)
    av_channel_layout_default(&frame.frame.pointee.ch_layout, channels)
    try LibAVError.check(av_frame_get_buffer(frame.frame, 0), "hold audio")
    for channel in 0..<Int(channels) {
      frame.frame.pointee.extended_data[channel]?.withMemoryRebound(to: Float.self, capacity: count) { samples in
        for index in 0..<count { samples[index] = Float(index) / Float(count) * (channel == 0 ? 1 : -1) }
      }
    }
    return frame
  }

  private func configuration(rate: UInt32, channels: UInt8) -> AudioTranscodeConfiguration {
    AudioTranscodeConfiguration(
      codec: .aac, record: [], timescale: 48_000, coding: .opus, sampleRate: rate, channels: channels, bitRate: 96_000)
  }

  private func near(_ a: [Float], _ b: [Float], _ tolerance: Float = 0.001) -> Bool {
    a.count == b.count && zip(a, b).allSatisfy { abs($0 - $1) <= tolerance }
  }

  @Test func `The same rate passes sample for sample`() throws {
    let source = try frame(1024, rate: 48_000, channels: 2)
    let converter = try AudioConverter(source.frame, to: configuration(rate: 48_000, channels: 2))
    let made = try converter.convert(source.frame, skipping: 0)
    let ramp = (0..<1024).map { Float($0) / 1024 }
    #expect(near(made.left, ramp) && near(made.right, ramp.map { -$0 }))
    #expect(try converter.finish().left.isEmpty)
  }

  @Test func `Samples that were there already are left out`() throws {
    let source = try frame(1000, rate: 48_000, channels: 2)
    let converter = try AudioConverter(source.frame, to: configuration(rate: 48_000, channels: 2))
    let made = try converter.convert(source.frame, skipping: 250)
    #expect(made.left.count == 750 && abs((made.left.first ?? 0) - 0.25) < 0.001)
    #expect(try converter.convert(source.frame, skipping: 1000).left.isEmpty)
    #expect(try converter.convert(source.frame, skipping: 5000).right.isEmpty)
  }

  @Test func `One channel is given on both sides`() throws {
    let source = try frame(960, rate: 48_000, channels: 1)
    let converter = try AudioConverter(source.frame, to: configuration(rate: 48_000, channels: 1))
    let made = try converter.convert(source.frame, skipping: 0)
    #expect(made.left.count == 960 && made.left == made.right)
  }

  @Test func `Two channels become one`() throws {
    let source = try frame(960, rate: 48_000, channels: 2)
    let converter = try AudioConverter(source.frame, to: configuration(rate: 48_000, channels: 1))
    let made = try converter.convert(source.frame, skipping: 0)
    // What is opposite on both sides is silence in their middle.
    #expect(near(made.left, [Float](repeating: 0, count: 960)))
  }

  /// 44100 to 48000 a second: nothing is lost, and the first sample that comes out is the first that went in.
  @Test func `Another rate gives as many samples as the time has`() throws {
    let source = try frame(4410, rate: 44_100, channels: 2)
    let converter = try AudioConverter(source.frame, to: configuration(rate: 48_000, channels: 2))
    var left: [Float] = []
    for _ in 0..<10 { left += try converter.convert(source.frame, skipping: 0).left }
    left += try converter.finish().left
    #expect(abs(left.count - 48_000) <= 16, "\(left.count)")
    // The ramp is half way up in the middle of a tenth of a second.
    #expect(abs(left[2400] - 0.5) < 0.01)
  }

  @Test func `Silence is as long as is asked for`() throws {
    let source = try frame(100, rate: 48_000, channels: 2)
    let converter = try AudioConverter(source.frame, to: configuration(rate: 48_000, channels: 2))
    let made = try converter.silence(4800)
    #expect(near(made.left, [Float](repeating: 0, count: 4800)) && made.right.count == 4800)
  }

  @Test func `Audio of another kind needs another converter`() throws {
    let source = try frame(100, rate: 48_000, channels: 2)
    let converter = try AudioConverter(source.frame, to: configuration(rate: 48_000, channels: 2))
    #expect(converter.takes(source.frame))
    #expect(!converter.takes(try frame(100, rate: 44_100, channels: 2).frame))
    #expect(!converter.takes(try frame(100, rate: 48_000, channels: 1).frame))
    let other = try frame(100, rate: 48_000, channels: 2)
    other.frame.pointee.format = AV_SAMPLE_FMT_FLT.rawValue
    #expect(!converter.takes(other.frame))
  }
}
