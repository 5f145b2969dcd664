internal import CV4L2
internal import Glibc

/// Checks whether libavcodec may search V4L2's devices for an encoder, which it does by trying each one. FFmpeg 5.1
/// takes a readable and writable device for an encoder. If that device holds coded frames, it follows a null pointer. A
/// fed v4l2loopback, such as a virtual camera, would crash the process. So the search is allowed only if there is an
/// encoder and no such device.
enum CodecDevices {
  struct Unsuitable: Error, CustomStringConvertible {
    let description: String
  }

  /// Queries each device; takes a few milliseconds.
  static func check() throws(Unsuitable) {
    var hasCodec = false
    for path in VideoDevices.paths() {
      let descriptor = weir_v4l2_open(path)
      // If it cannot be opened here, libavcodec cannot open it either.
      guard descriptor >= 0 else { continue }
      defer { v4l2_close(descriptor) }
      var capability = v4l2_capability()
      guard ask(descriptor, weir_querycap, &capability) else { continue }
      let abilities =
        capability.capabilities & weir_cap_device_caps != 0 ? capability.device_caps : capability.capabilities
      if abilities & weir_cap_memory_to_memory != 0 {
        hasCodec = true
        continue
      }
      var format = v4l2_fmtdesc()
      format.type = V4L2_BUF_TYPE_VIDEO_OUTPUT.rawValue
      if ask(descriptor, weir_enum_fmt, &format) {
        throw Unsuitable(
          description:
            "\(path) (\(VideoDevices.text(&capability.card))) is a loopback, which would crash libavcodec")
      }
    }
    guard hasCodec else { throw Unsuitable(description: "no video device of this machine is an encoder") }
  }

  private static func ask<Argument>(_ descriptor: Int32, _ request: UInt, _ argument: inout Argument) -> Bool {
    withUnsafeMutableBytes(of: &argument) { weir_v4l2_ioctl(descriptor, request, $0.baseAddress) } >= 0
  }
}
