internal import Base
internal import CV4L2
internal import FMP4
internal import Glibc

/// A running camera. The driver's buffers are mapped once and always given back. Used on one thread.
final class Camera {
  /// One frame in the driver's memory. Valid only during the callback.
  struct Shot {
    let bytes: UnsafeRawBufferPointer
    /// Capture time from the driver. Nil if it is implausible.
    let time: MonotonicTime?
    /// The driver's frame counter. It skips numbers if the driver dropped frames.
    let sequence: UInt32
  }

  let mode: CameraMode
  /// Bytes from one row of the first plane to the next.
  let stride: Int
  let handle: CameraHandle
  private var buffers: [UnsafeMutableRawBufferPointer] = []
  /// Frames that the driver marked as broken.
  private(set) var broken = 0
  /// Start time. Nil once a frame has come.
  private var started: MonotonicTime?
  private var times = TimestampFilter()

  private static let bufferCount: UInt32 = 4
  /// Largest buffer in bytes: 8K in 4:2:2. A larger one is not a frame.
  private static let largestBuffer = 8192 * 4608 * 2

  /// Opens the camera in the most suitable mode and starts it.
  init(_ settings: CameraSettings) throws(CaptureError) {
    handle = try CameraHandle(settings.device)
    try handle.set(settings.controls)
    guard let mode = CameraMode.best(of: handle.modes(), for: settings) else {
      let wanted = settings.format?.rawValue ?? "a format that weir knows (yuyv, nv12, yu12, mjpeg, h264)"
      throw CaptureError(.camera(settings.device), .unusable("it does not offer \(wanted)"))
    }
    var format = v4l2_format()
    format.type = V4L2_BUF_TYPE_VIDEO_CAPTURE.rawValue
    format.fmt.pix.width = UInt32(clamping: mode.size.width)
    format.fmt.pix.height = UInt32(clamping: mode.size.height)
    format.fmt.pix.pixelformat = mode.format.code
    format.fmt.pix.field = V4L2_FIELD_ANY.rawValue
    try handle.call(weir_s_fmt, &format, "set its format")
    let given = format.fmt.pix
    guard let known = CameraFormat(code: given.pixelformat), (16...8192).contains(given.width),
      (16...8192).contains(given.height)
    else { throw CaptureError(.camera(settings.device), .unusable("it refuses \(mode.format.rawValue)")) }
    stride = Int(given.bytesperline)
    var rate = mode.rate
    var parameters = v4l2_streamparm()
    parameters.type = V4L2_BUF_TYPE_VIDEO_CAPTURE.rawValue
    parameters.parm.capture.timeperframe = v4l2_fract(numerator: rate.denominator, denominator: rate.numerator)
    // Drivers without a choice of rates refuse this call and keep their rate.
    if handle.ask(weir_s_parm, &parameters) {
      let step = parameters.parm.capture.timeperframe
      rate = FrameRate(numerator: step.denominator, denominator: step.numerator) ?? rate
    }
    self.mode = CameraMode(
      format: known, size: CameraSettings.Size(width: Int(given.width), height: Int(given.height)), rate: rate)
    try start()
  }

  deinit {
    var type = V4L2_BUF_TYPE_VIDEO_CAPTURE.rawValue
    _ = handle.ask(weir_streamoff, &type)
    for buffer in buffers { v4l2_munmap(buffer.baseAddress, buffer.count) }
  }

  private func start() throws(CaptureError) {
    var request = v4l2_requestbuffers()
    request.count = Self.bufferCount
    request.type = V4L2_BUF_TYPE_VIDEO_CAPTURE.rawValue
    request.memory = V4L2_MEMORY_MMAP.rawValue
    try handle.call(weir_reqbufs, &request, "share memory with it")
    for index in 0..<min(request.count, 32) {
      var buffer = Self.buffer(index)
      try handle.call(weir_querybuf, &buffer, "share memory with it")
      guard buffer.length <= Self.largestBuffer,
        let memory = weir_v4l2_map(handle.descriptor, Int(buffer.length), Int64(buffer.m.offset))
      else { throw CaptureError(.camera(handle.path), .unusable("cannot map \(buffer.length) bytes of its memory")) }
      buffers.append(UnsafeMutableRawBufferPointer(start: memory, count: Int(buffer.length)))
      try handle.call(weir_qbuf, &buffer, "give it a buffer")
    }
    var type = V4L2_BUF_TYPE_VIDEO_CAPTURE.rawValue
    started = .now()
    try handle.call(weir_streamon, &type, "start it")
  }

  /// Waits for the next frame and passes it to `look`. False if none came in time, or a broken one. The buffer is
  /// always given back, also before an error is thrown.
  func next(milliseconds: Int32, _ look: (Shot) throws -> Void) throws -> Bool {
    var waiting = pollfd(fd: handle.descriptor, events: Int16(POLLIN), revents: 0)
    guard poll(&waiting, 1, milliseconds) > 0 else { return false }
    var buffer = Self.buffer(0)
    let code = handle.send(weir_dqbuf, &buffer)
    if code == -EAGAIN { return false }
    guard code >= 0 else {
      // A missing device fails in several ways. A retry would not help.
      throw CaptureError(.camera(handle.path), .lost)
    }
    var returning = Self.buffer(buffer.index)
    defer { _ = handle.ask(weir_qbuf, &returning) }
    guard buffer.flags & weir_buffer_error == 0, buffers.indices.contains(Int(buffer.index)) else {
      broken += 1
      return false
    }
    let memory = UnsafeRawBufferPointer(buffers[Int(buffer.index)])
    let stamp = Int64(buffer.timestamp.tv_sec) &* 1_000_000_000 &+ Int64(buffer.timestamp.tv_usec) &* 1000
    let time = MonotonicTime(nanoseconds: stamp)
    // Some drivers (v4l2loopback) do not state the clock and leave 0.
    let isMonotonic = [weir_buffer_timestamp_monotonic, 0].contains(buffer.flags & weir_buffer_timestamp_mask)
    let begin = started
    started = nil
    // v4l2loopback starts with the last frame written, however old it is.
    if let begin, time > .zero, time < begin { return false }
    let believed = times.believed(isMonotonic ? time : .zero, now: .now())
    try look(
      Shot(
        bytes: UnsafeRawBufferPointer(rebasing: memory.prefix(Int(buffer.bytesused))),
        time: believed, sequence: buffer.sequence))
    return true
  }

  private static func buffer(_ index: UInt32) -> v4l2_buffer {
    var buffer = v4l2_buffer()
    buffer.index = index
    buffer.type = V4L2_BUF_TYPE_VIDEO_CAPTURE.rawValue
    buffer.memory = V4L2_MEMORY_MMAP.rawValue
    return buffer
  }
}
