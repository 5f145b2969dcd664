internal import CLibAV
package import FMP4
internal import Glibc
package import NIOCore

/// An audio encoder of libavcodec and its properties.
package struct AudioEncoding: Sendable {
  /// The encoder's name.
  let encoder: String
  /// Sample format of its input: one plane per channel, or interleaved.
  let format: AVSampleFormat
  /// Samples per frame.
  package let samples: UInt32
  /// Rates in Hz that the encoder and all players support.
  package let rates: Set<UInt32>
  /// Bits per second that suit stereo music.
  package let musicBitRate: Int

  package static let all: [CodecID: AudioEncoding] = [
    .aac: AudioEncoding(
      encoder: "aac", format: AV_SAMPLE_FMT_FLTP, samples: 1024, rates: [32_000, 44_100, 48_000], musicBitRate: 160_000),
    // Opus has no other rate (RFC 7845 §5.1).
    .opus: AudioEncoding(
      encoder: "libopus", format: AV_SAMPLE_FMT_FLT, samples: 960, rates: [48_000], musicBitRate: 96_000),
  ]
}

/// Encodes audio to AAC Low Complexity or Opus with libavcodec, one or two channels. Times are in samples and exclude
/// the encoder's priming: the output of a time decodes to the input of that time. Used on one thread.
package final class AudioEncoder {
  let encoding: AudioEncoding
  package let codec: Codec
  /// Samples per frame.
  package let samplesPerFrame: Int
  private let encoder: LibAVEncoder
  private let channels: Int
  private let frame: UnsafeMutablePointer<AVFrame>
  /// Time of the first sample.
  private var start: Int64?

  /// - Parameters:
  ///   - sampleRate: Hz; 48000 for Opus.
  ///   - bitRate: bits per second.
  package init(_ coding: CodecID, sampleRate: Int, bitRate: Int, channels: Int = 2) throws {
    guard let encoding = AudioEncoding.all[coding] else {
      throw LibAVError("find an encoder of \(coding.name)", code: weir_averror_eof)
    }
    self.encoding = encoding
    self.channels = channels
    encoder = try LibAVEncoder(encoding.encoder, options: [:]) { context in
      context.sample_rate = Int32(clamping: sampleRate)
      context.sample_fmt = encoding.format
      context.bit_rate = Int64(bitRate)
      context.time_base = AVRational(num: 1, den: Int32(clamping: sampleRate))
      av_channel_layout_default(&context.ch_layout, Int32(clamping: channels))
    }
    codec = try Codec(coding, record: encoder.extradata)
    samplesPerFrame = encoder.samplesPerFrame
    guard let frame = av_frame_alloc() else { throw LibAVError("allocate an audio frame", code: -ENOMEM) }
    self.frame = frame
    frame.pointee.format = encoding.format.rawValue
    frame.pointee.sample_rate = Int32(clamping: sampleRate)
    frame.pointee.nb_samples = Int32(clamping: samplesPerFrame)
    av_channel_layout_default(&frame.pointee.ch_layout, Int32(clamping: channels))
    try LibAVError.check(av_frame_get_buffer(frame, 0), "allocate an audio frame")
  }

  deinit {
    var frame: UnsafeMutablePointer<AVFrame>? = frame
    av_frame_free(&frame)
  }

  /// Encodes the next `samplesPerFrame` samples of each channel, from −1 to 1. With one channel, uses the left ones.
  ///
  /// - Parameter time: time of the first sample.
  package func encode(
    left: [Float], right: [Float], at time: Int64, _ receive: (Int64, ByteBuffer) -> Void
  ) throws(LibAVError) {
    precondition(left.count == samplesPerFrame && right.count == samplesPerFrame, "a frame has its own length")
    try LibAVError.check(av_frame_make_writable(frame), "write an audio frame")
    frame.pointee.pts = time
    if start == nil { start = time }
    let (planes, step) =
      encoding.format == AV_SAMPLE_FMT_FLTP
      ? ([frame.pointee.data.0, frame.pointee.data.1], 1) : ([frame.pointee.data.0], channels)
    for (channel, samples) in [left, right].prefix(channels).enumerated() {
      guard let plane = planes[channel % planes.count] else { continue }
      let offset = channel / planes.count
      plane.withMemoryRebound(to: Float.self, capacity: samplesPerFrame * step) { target in
        for index in 0..<samplesPerFrame { target[index * step + offset] = samples[index] }
      }
    }
    try encoder.encode(frame) { pass($0, receive) }
  }

  /// Outputs the frames still in the encoder. It takes no frames afterwards.
  package func finish(_ receive: (Int64, ByteBuffer) -> Void) throws(LibAVError) {
    try encoder.encode(nil) { pass($0, receive) }
  }

  /// libavcodec states the time of a packet's decoded samples. The priming is before the first sample.
  private func pass(_ packet: LibAVEncoder.Packet, _ receive: (Int64, ByteBuffer) -> Void) {
    if let start, packet.presentationTime >= start { receive(packet.presentationTime, packet.bytes) }
  }
}
