import CLibAV
import FMP4
import IngestSupport
import LibAV
@testable import Local
import Testing

/// What an independent decoder sees and hears in a still picture.
struct DecodedStill {
  struct Pixel {
    var luma: UInt8
    var blue: UInt8
    var red: UInt8

    func isNear(_ luma: Int, _ blue: Int, _ red: Int, within tolerance: Int = 4) -> Bool {
      zip([self.luma, self.blue, self.red], [luma, blue, red]).allSatisfy { abs(Int($0) - $1) <= tolerance }
    }
  }

  /// Of each frame: its presentation time and its size.
  var frames: [(time: Int64, size: PictureSize)] = []
  /// The wanted pixel of each frame.
  var pixels: [Pixel] = []
  /// The number in the counter block of each frame, as the test pattern has it.
  var numbers: [UInt32] = []
  /// The loudest of the samples of audio.
  var loudest: Float = 0

  /// Decodes two passes of the video, and the silence ten times.
  init(_ picture: StillPicture, column: Int = 0, row: Int = 0) throws {
    let video = try #require(picture.tracks.first?.codec.configuration as? H264.Configuration)
    let decoder = try LibAVDecoder(AV_CODEC_ID_H264, extradata: video.record())
    var (frames, pixels, numbers) = (self.frames, self.pixels, self.numbers)
    let receive = { (time: Int64, frame: AVFrame) in
      let (width, height) = (Int(frame.width), Int(frame.height))
      let (stride, chroma) = (Int(frame.linesize.0), row / 2 * Int(frame.linesize.1) + column / 2)
      frames.append((time, PictureSize(width: width, height: height)))
      pixels.append(
        Pixel(
          luma: frame.data.0?[row * stride + column] ?? 0, blue: frame.data.1?[chroma] ?? 0,
          red: frame.data.2?[chroma] ?? 0))
      guard width >= 160 else { return }
      let luma = LumaPlane(
        pixels: UnsafeMutableRawBufferPointer(start: frame.data.0, count: stride * height), stride: stride,
        width: width, height: height)
      numbers.append(CounterBlock(frameWidth: width).read(from: luma))
    }
    for pass in 0..<2 {
      for sample in picture.video {
        try decoder.decode((sample.presentationTime + Int64(pass) * 60_000, sample.payload), receive)
      }
    }
    try decoder.decode(nil, receive)
    (self.frames, self.pixels, self.numbers) = (frames, pixels, numbers)
    let audio = try #require(picture.tracks.last?.codec.configuration as? AAC.Configuration)
    loudest = try Self.loudest(of: picture.silence, audio)
  }

  private static func loudest(of silence: Sample, _ configuration: AAC.Configuration) throws -> Float {
    let decoder = try LibAVDecoder(AV_CODEC_ID_AAC, extradata: configuration.audioSpecificConfig)
    var (loudest, count): (Float, Int) = (0, 0)
    let receive = { (_: Int64, frame: AVFrame) in
      guard let left = frame.extended_data?.pointee else { return }
      left.withMemoryRebound(to: Float.self, capacity: Int(frame.nb_samples)) { samples in
        for index in 0..<Int(frame.nb_samples) { loudest = max(loudest, abs(samples[index])) }
      }
      count += Int(frame.nb_samples)
    }
    for number in 0..<10 { try decoder.decode((Int64(number) * 1024, silence.payload), receive) }
    try decoder.decode(nil, receive)
    #expect(count >= 9 * 1024)
    return loudest
  }
}
