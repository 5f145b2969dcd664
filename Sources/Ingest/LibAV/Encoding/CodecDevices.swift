internal import CV4L2
internal import Glibc

/// Whether libavcodec may look for an encoder among V4L2's devices, which it does by trying every one. FFmpeg 5.1 takes a
/// device that is written to and read from for an encoder, and follows a null pointer where that one holds coded pictures:
/// a fed v4l2loopback, as virtual cameras are, would take the process down. So it is let at them only where there is
/// an encoder, and no such device.
enum CodecDevices {
  struct Unsuitable: Error, CustomStringConvertible {
    let description: String
  }

  /// Asks each device what it is; a few milliseconds.
  static func check() throws(Unsuitable) {
    var hasCodec = false
    for path in VideoDevices.paths() {
      let descriptor = weir_v4l2_open(path)
      // What cannot be opened here, cannot be there.
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
            "\(path) (\(VideoDevices.text(&capability.card))) is a loopback, over which libavcodec would stumble")
      }
    }
    guard hasCodec else { throw Unsuitable(description: "no video device of this machine is an encoder") }
  }

  private static func ask<Argument>(_ descriptor: Int32, _ request: UInt, _ argument: inout Argument) -> Bool {
    withUnsafeMutableBytes(of: &argument) { weir_v4l2_ioctl(descriptor, request, $0.baseAddress) } >= 0
  }
}
