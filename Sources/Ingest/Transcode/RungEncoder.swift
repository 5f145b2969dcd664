internal import CLibAV
internal import FMP4
internal import Glibc
internal import LibAV
internal import NIOCore

/// Scales frames to a rung's size and encodes them with H.264. Times are ticks of the source. Created on one thread and
/// used on another.
final class RungEncoder: @unchecked Sendable {
  private let encoder: LibAVEncoder
  private let rung: TranscodeConfiguration.Rung
  private let scaler = FrameScaler(flags: Int32(SWS_BICUBIC))
  let configuration: H264.Configuration
  private let timescale: UInt32
  /// Only for the thread that uses the encoder.
  private(set) var debt: VBVCarryOver

  /// - Parameter debt: of the encoder before this one. Nil if there was none.
  init(
    _ rung: TranscodeConfiguration.Rung, of source: TranscodeConfiguration, after debt: VBVCarryOver? = nil
  ) throws {
    self.rung = rung
    self.timescale = source.timescale
    self.debt = VBVCarryOver(bitRate: rung.bitRate)
    if let debt { self.debt.goOn(after: debt) }
    let inBuffer = Self.initialBuffer(Int64(rung.bitRate), self.debt.bits)
    let timescale = Int32(clamping: source.timescale)
    let bitRate = Int64(rung.bitRate)
    encoder = try LibAVEncoder(
      "libx264",
      options: [
        "preset": rung.preset.rawValue, "tune": "zerolatency", "forced-idr": "1",
        // One thread per encoder: rungs are encoded in parallel. Key frames are those of the source.
        "x264-params": "sliced-threads=0:scenecut=0",
      ]
    ) { context in
      context.width = Int32(rung.width)
      context.height = Int32(rung.height)
      context.pix_fmt = AV_PIX_FMT_YUV420P
      context.sample_aspect_ratio = AVRational(num: 1, den: 1)
      context.time_base = AVRational(num: 1, den: timescale)
      if source.frameDuration > 0 {
        context.framerate = AVRational(num: timescale, den: Int32(clamping: source.frameDuration))
      } else {
        context.framerate = AVRational(num: 30, den: 1)
      }
      context.bit_rate = bitRate
      context.rc_max_rate = bitRate
      context.rc_buffer_size = Int32(clamping: bitRate)
      context.rc_initial_buffer_occupancy = inBuffer
      context.gop_size = 1_000_000
      context.max_b_frames = 0
      context.thread_count = 1
      context.color_range = AVCOL_RANGE_MPEG
      context.color_primaries = AVColorPrimaries(UInt32(source.color[0]))
      context.color_trc = AVColorTransferCharacteristic(UInt32(source.color[1]))
      context.colorspace = AVColorSpace(UInt32(source.color[2]))
    }
    configuration = try H264.Configuration(stream: encoder.extradata)
  }

  /// Initial fill in bits of the rate control buffer of one second: nine tenths, as in libx264, less the carried-over
  /// bits.
  private static func initialBuffer(_ bitRate: Int64, _ owed: Int64) -> Int32 {
    Int32(clamping: max(1, bitRate * 9 / 10 - owed))
  }

  /// Encodes a frame that `scale` made.
  func encode(
    _ frame: DecodedFrame, _ receive: (_ time: Int64, _ isSync: Bool, _ payload: ByteBuffer) -> Void
  ) throws(LibAVError) {
    try encoder.encode(frame.image.frame) { pass($0, receive) }
  }

  /// Outputs the frames still in the encoder. It takes no frames afterwards.
  func finish(
    _ receive: (_ time: Int64, _ isSync: Bool, _ payload: ByteBuffer) -> Void
  ) throws(LibAVError) {
    try encoder.encode(nil) { pass($0, receive) }
  }

  private func pass(
    _ packet: LibAVEncoder.Packet, _ receive: (_ time: Int64, _ isSync: Bool, _ payload: ByteBuffer) -> Void
  ) {
    let unit = H264.accessUnit(annexB: packet.bytes)
    debt.add(
      bytes: unit.payload.readableBytes, at: MediaTime(ticks: packet.presentationTime, timescale: timescale))
    receive(packet.presentationTime, unit.isSync, unit.payload)
  }

  /// The frame in the rung's size, in limited range.
  func scale(_ decoded: DecodedFrame) throws(LibAVError) -> DecodedFrame {
    let source = decoded.image.frame
    // The colour values keep their meaning, except for the range.
    let scaler = try scaler.context(
      for: source.pointee, to: (Int(rung.width), Int(rung.height)), matrix: Int32(source.pointee.colorspace.rawValue))
    let scaled = try VideoFrame()
    let frame = scaled.frame
    frame.pointee.width = Int32(rung.width)
    frame.pointee.height = Int32(rung.height)
    frame.pointee.format = AV_PIX_FMT_YUV420P.rawValue
    frame.pointee.pts = decoded.time
    frame.pointee.pict_type = decoded.isKey ? AV_PICTURE_TYPE_I : AV_PICTURE_TYPE_NONE
    frame.pointee.color_range = AVCOL_RANGE_MPEG
    frame.pointee.colorspace = source.pointee.colorspace
    try LibAVError.check(av_frame_get_buffer(frame, 0), "allocate a frame of \(rung.width)×\(rung.height)")
    try LibAVError.check(sws_scale_frame(scaler, frame, source), "scale the frame")
    try scaled.set(captions: decoded.image.captions)
    return DecodedFrame(image: scaled, time: decoded.time, isKey: decoded.isKey)
  }
}
