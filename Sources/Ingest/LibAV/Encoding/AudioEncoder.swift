internal import CLibAV
internal import FMP4
internal import Glibc
internal import NIOCore

/// How libavcodec makes audio into what a codec is.
struct AudioEncoding: Sendable {
  /// The encoder's name.
  let encoder: String
  /// What it takes: a plane for each channel, or one in which they take turns.
  let format: AVSampleFormat
  /// Of one frame.
  let samples: UInt32
  /// Hz that it and every player take.
  let rates: Set<UInt32>
  /// Bits a second that suit music in two channels.
  let musicBitRate: Int

  static let all: [CodecID: AudioEncoding] = [
    .aac: AudioEncoding(
      encoder: "aac", format: AV_SAMPLE_FMT_FLTP, samples: 1024, rates: [32_000, 44_100, 48_000], musicBitRate: 160_000),
    // It knows no other rate (RFC 7845 §5.1).
    .opus: AudioEncoding(
      encoder: "libopus", format: AV_SAMPLE_FMT_FLT, samples: 960, rates: [48_000], musicBitRate: 96_000),
  ]
}

/// Audio to AAC Low Complexity or Opus by libavcodec, one or two channels. Times are counted in samples and exclude the
/// encoder's priming: what is given out at the first time decodes to what was put in first. It lives on one thread.
final class AudioEncoder {
  let encoding: AudioEncoding
  let codec: Codec
  /// Samples of one frame.
  let samplesPerFrame: Int
  private let encoder: LibAVEncoder
  private let channels: Int
  private let frame: UnsafeMutablePointer<AVFrame>
  /// Of the first sample.
  private var start: Int64?

  /// - Parameters:
  ///   - sampleRate: Hz; Opus takes 48000 here.
  ///   - bitRate: bits a second.
  init(_ coding: CodecID, sampleRate: Int, bitRate: Int, channels: Int = 2) throws {
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
    guard let frame = av_frame_alloc() else { throw LibAVError("make a frame of audio", code: -ENOMEM) }
    self.frame = frame
    frame.pointee.format = encoding.format.rawValue
    frame.pointee.sample_rate = Int32(clamping: sampleRate)
    frame.pointee.nb_samples = Int32(clamping: samplesPerFrame)
    av_channel_layout_default(&frame.pointee.ch_layout, Int32(clamping: channels))
    try LibAVError.check(av_frame_get_buffer(frame, 0), "make a frame of audio")
  }

  deinit {
    var frame: UnsafeMutablePointer<AVFrame>? = frame
    av_frame_free(&frame)
  }

  /// Encodes the next `samplesPerFrame` samples of each channel, from −1 to 1; of one channel, the left ones.
  ///
  /// - Parameter time: of the first of them.
  func encode(
    left: [Float], right: [Float], at time: Int64, _ receive: (Int64, ByteBuffer) -> Void
  ) throws(LibAVError) {
    precondition(left.count == samplesPerFrame && right.count == samplesPerFrame, "a frame has its own length")
    try LibAVError.check(av_frame_make_writable(frame), "write a frame of audio")
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

  /// Takes the frames that the encoder still holds; it takes none afterwards.
  func finish(_ receive: (Int64, ByteBuffer) -> Void) throws(LibAVError) {
    try encoder.encode(nil) { pass($0, receive) }
  }

  /// libavcodec states the time of what a packet decodes to; the priming is before the first sample.
  private func pass(_ packet: LibAVEncoder.Packet, _ receive: (Int64, ByteBuffer) -> Void) {
    if let start, packet.presentationTime >= start { receive(packet.presentationTime, packet.bytes) }
  }
}
