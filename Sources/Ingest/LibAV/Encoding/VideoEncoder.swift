package import CLibAV
package import FMP4
package import NIOCore

/// Encodes video frames to H.264, HEVC or AV1 with libavcodec. Times are in ticks of its own time base. Used on one
/// thread.
package final class VideoEncoder {
  /// Format of the input frames: 4:2:0, limited range.
  package struct Format: Sendable, Hashable {
    /// Pixels; even sides.
    var width: Int
    var height: Int
    var rate: FrameRate
    /// `timescale` in ticks per second, and number of its ticks per tick of the encoder: 90000 and 1, or a frame rate.
    var timescale: UInt32
    var ticks: UInt32
    var matrix: Matrix

    package init(
      width: Int, height: Int, rate: FrameRate, timescale: UInt32, ticks: UInt32 = 1, matrix: Matrix = .bt709
    ) {
      self.width = width
      self.height = height
      self.rate = rate
      self.timescale = timescale
      self.ticks = ticks
      self.matrix = matrix
    }

    /// Conversion from red, green and blue to luma and chroma.
    package enum Matrix: Sendable, Hashable {
      case bt709
      /// Matrix of cameras, whatever their size (V4L2's default for sRGB).
      case bt601
    }
  }

  /// One coded frame as stored in a sample. The decode time may be negative with B-frames.
  package struct CodedFrame {
    package var presentationTime: Int64
    package var decodeTime: Int64
    package var isSync: Bool
    package var isDisposable: Bool
    package var payload: ByteBuffer
  }

  /// How a frame is to be coded.
  package enum FrameKind {
    case asEncoderLikes
    /// Decoding can start here.
    case keyFrame
  }

  package let name: VideoEncoderName
  /// Configuration of the coded frames. Hardware encoders state it only with their first key frame.
  package private(set) var codec: Codec?
  private let format: Format
  private let encoding: VideoEncoding
  private let hardware: HardwareFrames?
  private var encoder: LibAVEncoder
  /// No frame was encoded yet, so the next one becomes a key frame anyway.
  private var isFresh = true

  /// Opens an encoder. Throws if it does not work on this machine.
  package init(_ name: VideoEncoderName, _ format: Format, _ encoding: VideoEncoding) throws {
    if name.family == .v4l2 { try CodecDevices.check() }
    self.name = name
    self.format = format
    self.encoding = encoding
    hardware = name.family == .vaapi ? try HardwareFrames(width: format.width, height: format.height) : nil
    encoder = try Self.open(name, format, encoding, hardware)
    codec = encoder.extradata.readableBytes > 0 ? try Codec(name.coding, stream: encoder.extradata) : nil
  }

  private static func open(
    _ name: VideoEncoderName, _ format: Format, _ encoding: VideoEncoding, _ hardware: HardwareFrames?
  ) throws(LibAVError) -> LibAVEncoder {
    try LibAVEncoder(name.rawValue, options: encoding.options(for: name)) { context in
      configure(&context, name, format, encoding)
      guard let hardware else { return }
      context.pix_fmt = AV_PIX_FMT_VAAPI
      context.hw_frames_ctx = hardware.reference()
    }
  }

  deinit {
    // SVT-AV1 1.4 never finishes closing if it has encoded no frame.
    guard isFresh, name.family == .svtAV1,
      let blank = try? VideoFrame(width: format.width, height: format.height, format: AV_PIX_FMT_YUV420P)
    else { return }
    blank.frame.pointee.pts = 0
    try? encoder.encode(blank.frame) { _ in }
  }

  /// Whether the encoder places key frames itself, by counting frames. A requested key frame then needs a new encoder.
  package var keepsItsOwnCadence: Bool { name.family == .svtAV1 }

  /// Opens the first working encoder that the settings allow.
  ///
  /// - Parameter passedOver: called for each encoder that failed, with the error.
  package static func best(
    _ format: Format, _ encoding: VideoEncoding, except failed: Set<VideoEncoderName> = [],
    passedOver: (VideoEncoderName, any Error) -> Void = { _, _ in }
  ) throws -> VideoEncoder {
    let candidates = VideoEncoderName.candidates(encoding.encoder, coding: encoding.coding)
    // A failed encoder is tried again only if there is no other.
    let left = candidates.filter { !failed.contains($0) }
    var failure: any Error = LibAVError("find an encoder of \(encoding.coding.rawValue)", code: weir_averror_eof)
    for name in left.isEmpty ? candidates : left {
      do {
        return try VideoEncoder(name, format, encoding)
      } catch {
        failure = error
        passedOver(name, error)
      }
    }
    throw failure
  }

  private static func configure(
    _ context: inout AVCodecContext, _ name: VideoEncoderName, _ format: Format, _ encoding: VideoEncoding
  ) {
    let framesPerSecond = format.rate.framesPerSecond
    let bitRate = encoding.bitRate(width: format.width, height: format.height, framesPerSecond: framesPerSecond)
    context.width = Int32(clamping: format.width)
    context.height = Int32(clamping: format.height)
    context.pix_fmt = AV_PIX_FMT_YUV420P
    context.time_base = AVRational(num: Int32(clamping: format.ticks), den: Int32(clamping: format.timescale))
    context.framerate = AVRational(
      num: Int32(clamping: format.rate.numerator), den: Int32(clamping: format.rate.denominator))
    switch encoding.rateControl {
    case .constant: (context.bit_rate, context.rc_max_rate) = (Int64(bitRate), Int64(bitRate))
    case .variable: (context.bit_rate, context.rc_max_rate) = (Int64(bitRate), Int64(bitRate) * 3 / 2)
    case .quality: context.rc_max_rate = Int64(bitRate)
    }
    context.rc_buffer_size = Int32(clamping: encoding.rateControl == .variable ? 2 * bitRate : bitRate)
    // SVT-AV1 has its own parameters for a constant rate, and accepts a limit only in quality mode.
    if name.family == .svtAV1, context.bit_rate > 0 { (context.rc_max_rate, context.rc_buffer_size) = (0, 0) }
    let group = Int(max(1, min((framesPerSecond * Double(encoding.keyFrameMilliseconds) / 1000).rounded(), 1e6)))
    // Longer than any requested distance, because the source decides. SVT-AV1 1.4 accepts no requests for key frames.
    context.gop_size = Int32(clamping: name.family == .svtAV1 ? group : 16 * group)
    context.max_b_frames = Int32(clamping: encoding.bFrames)
    context.thread_count = Int32(clamping: encoding.threads)
    context.color_range = AVCOL_RANGE_MPEG
    context.color_primaries = AVCOL_PRI_BT709
    context.color_trc = AVCOL_TRC_BT709
    context.colorspace = format.matrix == .bt709 ? AVCOL_SPC_BT709 : AVCOL_SPC_SMPTE170M
  }

  package func encode(
    _ frame: UnsafeMutablePointer<AVFrame>, at time: Int64, as kind: FrameKind,
    _ receive: (CodedFrame) -> Void
  ) throws {
    if kind == .keyFrame, keepsItsOwnCadence, !isFresh {
      try encoder.encode(nil) { give($0, receive) }
      encoder = try Self.open(name, format, encoding, hardware)
    }
    isFresh = false
    let uploaded = try hardware?.upload(frame)
    let frame = uploaded?.frame ?? frame
    frame.pointee.pts = time
    frame.pointee.pict_type = kind == .keyFrame ? AV_PICTURE_TYPE_I : AV_PICTURE_TYPE_NONE
    try encoder.encode(frame) { give($0, receive) }
  }

  /// Outputs the frames still in the encoder. It takes no frames afterwards.
  package func finish(_ receive: (CodedFrame) -> Void) throws {
    try encoder.encode(nil) { give($0, receive) }
  }

  // MARK: Bitstreams

  private func give(_ packet: LibAVEncoder.Packet, _ receive: (CodedFrame) -> Void) {
    if codec == nil { codec = try? Codec(name.coding, stream: packet.bytes) }
    guard let unit = try? codec?.accessUnit(stream: packet.bytes), unit.payload.readableBytes > 0 else { return }
    receive(
      CodedFrame(
        presentationTime: packet.presentationTime, decodeTime: packet.decodeTime, isSync: unit.isSync,
        isDisposable: unit.isDisposable, payload: unit.payload))
  }
}
