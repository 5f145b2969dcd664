internal import CLibAV
package import FMP4
internal import Glibc
internal import LibAV

/// The test pattern before encoding, as YUV4MPEG2 (planar 4:2:0), for comparison with a player's output. It depends
/// only on the settings and the wall clock time of frame 0, like the source itself.
package struct TestPatternFile: Sendable {
  private let settings: TestSourceSettings
  private let schedule: TestSchedule

  /// - Parameter wallStart: time of frame 0.
  package init(settings: TestSourceSettings = TestSourceSettings(), wallStart: WallTime) {
    self.settings = settings
    schedule = TestSchedule(wallStart: wallStart, rate: settings.frameRate)
  }

  /// Draws the given frames and outputs the file's bytes, a row at a time. They are valid only during the callback.
  package func write(_ numbers: Range<Int64>, to sink: (UnsafeRawBufferPointer) throws -> Void) throws {
    let canvas = try TestCanvas(settings: settings, schedule: schedule)
    let rate = settings.frameRate
    var header =
      "YUV4MPEG2 W\(settings.width) H\(settings.height) F\(rate.timescale):\(rate.frameDuration) Ip A1:1 C420\n"
    try header.withUTF8 { try sink(UnsafeRawBufferPointer($0)) }
    for number in numbers {
      try canvas.draw(number)
      var mark = "FRAME\n"
      try mark.withUTF8 { try sink(UnsafeRawBufferPointer($0)) }
      let (data, strides) = (canvas.frame.pointee.data, canvas.frame.pointee.linesize)
      try write(data.0, stride: strides.0, width: settings.width, height: settings.height, to: sink)
      try write(data.1, stride: strides.1, width: settings.width / 2, height: settings.height / 2, to: sink)
      try write(data.2, stride: strides.2, width: settings.width / 2, height: settings.height / 2, to: sink)
    }
  }

  private func write(
    _ plane: UnsafeMutablePointer<UInt8>?, stride: Int32, width: Int, height: Int,
    to sink: (UnsafeRawBufferPointer) throws -> Void
  ) throws {
    guard let plane else { throw LibAVError("draw a frame", code: -ENOMEM) }
    for row in 0..<height {
      try sink(UnsafeRawBufferPointer(start: plane + row * Int(stride), count: width))
    }
  }
}
