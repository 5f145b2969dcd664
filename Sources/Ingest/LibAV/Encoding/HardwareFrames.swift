internal import CLibAV
internal import Glibc

/// Frames in the memory of a graphics card, as input for VA-API encoders. Used on one thread.
final class HardwareFrames {
  private var device: UnsafeMutablePointer<AVBufferRef>?
  private var frames: UnsafeMutablePointer<AVBufferRef>?
  private var scaler: OpaquePointer?
  private let width: Int
  private let height: Int

  /// Most surfaces that an encoder may hold at once.
  private static let poolSize: Int32 = 16

  /// Opens the machine's first device. Throws if there is none.
  init(width: Int, height: Int) throws(LibAVError) {
    self.width = width
    self.height = height
    try LibAVError.check(
      av_hwdevice_ctx_create(&device, AV_HWDEVICE_TYPE_VAAPI, nil, nil, 0), "open a graphics card by VA-API")
    frames = av_hwframe_ctx_alloc(device)
    guard let frames else { throw LibAVError("allocate frames on the graphics card", code: -ENOMEM) }
    frames.pointee.data.withMemoryRebound(to: AVHWFramesContext.self, capacity: 1) { context in
      context.pointee.format = AV_PIX_FMT_VAAPI
      context.pointee.sw_format = AV_PIX_FMT_NV12
      context.pointee.width = Int32(clamping: width)
      context.pointee.height = Int32(clamping: height)
      context.pointee.initial_pool_size = Self.poolSize
    }
    try LibAVError.check(av_hwframe_ctx_init(frames), "allocate frames on the graphics card")
  }

  deinit {
    sws_freeContext(scaler)
    av_buffer_unref(&frames)
    av_buffer_unref(&device)
  }

  /// A reference for an encoder's context, which releases it.
  func reference() -> UnsafeMutablePointer<AVBufferRef>? { av_buffer_ref(frames) }

  /// Copies a planar frame to the card. Its chroma is interleaved, as graphics cards need it.
  func upload(_ frame: UnsafeMutablePointer<AVFrame>) throws(LibAVError) -> VideoFrame {
    let interleaved = try VideoFrame(width: width, height: height, format: AV_PIX_FMT_NV12)
    scaler = sws_getCachedContext(
      scaler, Int32(clamping: width), Int32(clamping: height), AV_PIX_FMT_YUV420P, Int32(clamping: width),
      Int32(clamping: height), AV_PIX_FMT_NV12, Int32(SWS_POINT), nil, nil, nil)
    guard let scaler else { throw LibAVError("interleave chroma", code: -EINVAL) }
    try LibAVError.check(sws_scale_frame(scaler, interleaved.frame, frame), "interleave chroma")
    let surface = try VideoFrame()
    try LibAVError.check(av_hwframe_get_buffer(frames, surface.frame, 0), "allocate a frame on the graphics card")
    try LibAVError.check(
      av_hwframe_transfer_data(surface.frame, interleaved.frame, 0), "copy a frame to the graphics card")
    return surface
  }
}
