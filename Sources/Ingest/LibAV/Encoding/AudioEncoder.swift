internal import CLibAV
internal import FMP4
internal import Glibc
internal import NIOCore

/// What sound is coded as.
package enum AudioCoding: String, Sendable, Hashable, CaseIterable {
  case aac
  case opus

  /// The encoder's name in libavcodec.
  var encoder: String {
    switch self {
    case .aac: "aac"
    case .opus: "libopus"
    }
  }
}

/// Sound to AAC Low Complexity or Opus by libavcodec, one or two channels. Times are counted in samples and exclude the
/// encoder's priming: what is given out at the first time decodes to what was put in first. It lives on one thread.
final class AudioEncoder {
  let coding: AudioCoding
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
  init(_ coding: AudioCoding, sampleRate: Int, bitRate: Int, channels: Int = 2) throws {
    self.coding = coding
    self.channels = channels
    let format = coding == .aac ? AV_SAMPLE_FMT_FLTP : AV_SAMPLE_FMT_FLT
    encoder = try LibAVEncoder(coding.encoder, options: [:]) { context in
      context.sample_rate = Int32(clamping: sampleRate)
      context.sample_fmt = format
      context.bit_rate = Int64(bitRate)
      context.time_base = AVRational(num: 1, den: Int32(clamping: sampleRate))
      av_channel_layout_default(&context.ch_layout, Int32(clamping: channels))
    }
    codec =
      switch coding {
      case .aac: .aac(try AAC.Configuration(audioSpecificConfig: encoder.extradata))
      case .opus: .opus(try Opus.Configuration(opusHead: encoder.extradata))
      }
    samplesPerFrame = encoder.samplesPerFrame
    guard let frame = av_frame_alloc() else { throw LibAVError("make a frame of sound", code: -ENOMEM) }
    self.frame = frame
    frame.pointee.format = format.rawValue
    frame.pointee.sample_rate = Int32(clamping: sampleRate)
    frame.pointee.nb_samples = Int32(clamping: samplesPerFrame)
    av_channel_layout_default(&frame.pointee.ch_layout, Int32(clamping: channels))
    try LibAVError.check(av_frame_get_buffer(frame, 0), "make a frame of sound")
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
    try LibAVError.check(av_frame_make_writable(frame), "write a frame of sound")
    frame.pointee.pts = time
    if start == nil { start = time }
    // Opus takes its channels interleaved in one plane.
    let (planes, step) =
      coding == .aac ? ([frame.pointee.data.0, frame.pointee.data.1], 1) : ([frame.pointee.data.0], channels)
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
