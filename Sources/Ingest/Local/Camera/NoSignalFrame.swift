internal import CLibAV
internal import Glibc
internal import LibAV

/// The slate shown while a camera is away: a dark frame with a text.
enum NoSignalFrame {
  static func image(size: CameraSettings.Size) throws(LibAVError) -> VideoFrame {
    let noSignal = try VideoFrame(width: size.width, height: size.height, format: AV_PIX_FMT_YUV420P)
    let frame = noSignal.frame.pointee
    guard let luma = plane(frame.data.0, frame.linesize.0, size.width, size.height),
      let blue = plane(frame.data.1, frame.linesize.1, size.width / 2, size.height / 2),
      let red = plane(frame.data.2, frame.linesize.2, size.width / 2, size.height / 2)
    else { throw LibAVError("allocate a frame", code: -ENOMEM) }
    luma.fill(x: 0, y: 0, width: size.width, height: size.height, with: 40)
    for chroma in [blue, red] { chroma.fill(x: 0, y: 0, width: size.width / 2, height: size.height / 2, with: 128) }
    let words = "CAMERA LOST"
    let dot = max(1, size.width / 100)
    var text = BitmapText(
      x: (size.width - words.utf8.count * 6 * dot) / 2, y: (size.height - 7 * dot) / 2, dot: dot)
    text.show(words, in: luma, ink: LumaPlane.white, paper: 40)
    return noSignal
  }

  private static func plane(
    _ data: UnsafeMutablePointer<UInt8>?, _ stride: Int32, _ width: Int, _ height: Int
  ) -> LumaPlane? {
    guard let data else { return nil }
    return LumaPlane(
      pixels: UnsafeMutableRawBufferPointer(start: data, count: Int(stride) * height), stride: Int(stride),
      width: width, height: height)
  }
}
