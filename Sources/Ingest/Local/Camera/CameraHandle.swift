internal import CV4L2
internal import FMP4
internal import Glibc
internal import LibAV

/// An open video device and its properties. Used on one thread.
final class CameraHandle {
  let path: String
  let descriptor: Int32
  private(set) var name = ""
  /// The place where it is plugged in. It stays the same if the device returns with another number.
  private(set) var bus = ""

  /// Throws if the device is missing, forbidden, busy, or not a camera.
  init(_ path: String) throws(CaptureError) {
    self.path = path
    let descriptor = weir_v4l2_open(path)
    guard descriptor >= 0 else {
      // An unplugged device gives ENODEV, whether its node still exists or not.
      throw CaptureError(.camera(path), code: -descriptor == ENODEV ? ENOENT : -descriptor, "open it")
    }
    self.descriptor = descriptor
    var capability = v4l2_capability()
    try call(weir_querycap, &capability, "ask what it is")
    name = VideoDevices.text(&capability.card)
    bus = VideoDevices.text(&capability.bus_info)
    let abilities =
      capability.capabilities & weir_cap_device_caps != 0 ? capability.device_caps : capability.capabilities
    guard abilities & weir_cap_video_capture != 0, abilities & weir_cap_streaming != 0 else {
      throw CaptureError(.camera(path), .unusable("it captures no video"))
    }
  }

  deinit { v4l2_close(descriptor) }

  /// A V4L2 request. Errors state what was attempted.
  func call<Argument>(
    _ request: UInt, _ argument: inout Argument, _ attempt: String
  ) throws(CaptureError) {
    let code = send(request, &argument)
    guard code >= 0 else { throw CaptureError(.camera(path), code: -code, attempt) }
  }

  /// A request that may fail, such as one at the end of a list. False if it fails.
  func ask<Argument>(_ request: UInt, _ argument: inout Argument) -> Bool {
    send(request, &argument) >= 0
  }

  /// The result of a request: 0 or more, or errno negated. Its structures consist of numbers only.
  func send<Argument>(_ request: UInt, _ argument: inout Argument) -> Int32 {
    withUnsafeMutableBytes(of: &argument) { weir_v4l2_ioctl(descriptor, request, $0.baseAddress) }
  }

  /// Most entries that are read of a driver's list.
  private static let longestList: UInt32 = 256

  /// All modes that weir can use.
  func modes() -> [CameraMode] {
    var found: [CameraMode] = []
    for index in 0..<Self.longestList {
      var format = v4l2_fmtdesc()
      format.index = index
      format.type = V4L2_BUF_TYPE_VIDEO_CAPTURE.rawValue
      guard ask(weir_enum_fmt, &format) else { break }
      // Formats that libv4l2 emulates are converted twice. weir converts the camera's own format itself.
      guard let known = CameraFormat(code: format.pixelformat), format.flags & weir_format_emulated == 0 else {
        continue
      }
      for size in sizes(format.pixelformat) {
        for rate in rates(format.pixelformat, size) {
          found.append(CameraMode(format: known, size: size, rate: rate))
        }
      }
    }
    return found
  }

  private func sizes(_ format: UInt32) -> [CameraSettings.Size] {
    var found: [CameraSettings.Size] = []
    for index in 0..<Self.longestList {
      var entry = v4l2_frmsizeenum()
      entry.index = index
      entry.pixel_format = format
      guard ask(weir_enum_framesizes, &entry) else { break }
      if entry.type == V4L2_FRMSIZE_TYPE_DISCRETE.rawValue {
        found.append(CameraSettings.Size(width: Int(entry.discrete.width), height: Int(entry.discrete.height)))
        continue
      }
      let range = entry.stepwise
      let usual = [(320, 180), (640, 360), (640, 480), (1280, 720), (1920, 1080), (3840, 2160)]
      for (width, height) in usual
      where (Int(range.min_width)...max(Int(range.min_width), Int(range.max_width))).contains(width)
        && (Int(range.min_height)...max(Int(range.min_height), Int(range.max_height))).contains(height)
      {
        found.append(CameraSettings.Size(width: width, height: height))
      }
      break
    }
    return found.filter { $0.width > 0 && $0.height > 0 }
  }

  private func rates(_ format: UInt32, _ size: CameraSettings.Size) -> [FrameRate] {
    var found: [FrameRate] = []
    for index in 0..<Self.longestList {
      var entry = v4l2_frmivalenum()
      entry.index = index
      entry.pixel_format = format
      entry.width = UInt32(clamping: size.width)
      entry.height = UInt32(clamping: size.height)
      guard ask(weir_enum_frameintervals, &entry) else { break }
      let step = entry.type == V4L2_FRMIVAL_TYPE_DISCRETE.rawValue ? entry.discrete : entry.stepwise.min
      if let rate = FrameRate(numerator: step.denominator, denominator: step.numerator) { found.append(rate) }
      if entry.type != V4L2_FRMIVAL_TYPE_DISCRETE.rawValue { break }
    }
    // Some drivers list no rates.
    if found.isEmpty, let usual = FrameRate(numerator: 30, denominator: 1) { found.append(usual) }
    return found
  }
}

extension CameraFormat {
  /// V4L2's four-character code.
  var code: UInt32 {
    switch self {
    case .yuyv: weir_pix_yuyv
    case .nv12: weir_pix_nv12
    case .yu12: weir_pix_yu12
    case .mjpeg: weir_pix_mjpeg
    case .h264: weir_pix_h264
    }
  }

  init?(code: UInt32) {
    // Some cameras call MJPEG "JPEG".
    let code = code == weir_pix_jpeg ? weir_pix_mjpeg : code
    guard let format = Self.allCases.first(where: { $0.code == code }) else { return nil }
    self = format
  }
}
