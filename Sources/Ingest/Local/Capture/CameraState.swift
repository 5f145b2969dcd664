internal import FMP4

/// What is known of the camera from before it went away, and of the stream from before another one was taken.
struct CameraState {
  /// The pictures' size in the stream; even sides.
  private(set) var version = -1
  var size: CameraSettings.Size?
  var rate: FrameRate?
  private(set) var place: CameraLocation?
  var told: CaptureError?
  /// Nanoseconds on the monotonic clock.
  var lastTime: Int64 = .min
  /// The driver's number of the last picture, and when that came, on the monotonic clock.
  private var last: (sequence: UInt32, time: Int64)?
  /// What is shown while it is away, in the pictures' size.
  var noSignal: (size: CameraSettings.Size, picture: VideoFrame)?
  /// Pictures that were no whole ones after all, and those that drivers called broken.
  var broken: Int64 = 0
  var brokenBefore: Int64 = 0

  /// A camera is asked for: the first, or another one. The pictures keep their size and rate unless others are wanted.
  mutating func begin(_ settings: CameraSettings, version: Int) {
    self.version = version
    (place, told, last) = (nil, nil, nil)
    if let wanted = settings.size, wanted != size { size = nil }
    if let wanted = settings.frameRate, wanted != rate { rate = nil }
  }

  mutating func found(_ camera: Camera) {
    place = CameraLocation(name: camera.handle.name, bus: camera.handle.bus)
    last = nil
    size = size ?? CameraSettings.Size(width: camera.mode.size.width & ~1, height: camera.mode.size.height & ~1)
    rate = rate ?? camera.mode.rate
  }

  /// How many pictures the driver has left out before the one of this number, which came at this time. A count that leaps by
  /// more than the camera can have taken meanwhile began anew (v4l2loopback's does, when it is opened).
  mutating func lost(before sequence: UInt32, at time: Int64, rate: FrameRate) -> Int64 {
    defer { last = (sequence, time) }
    guard let last else { return 0 }
    let leap = max(0, Int64(Int32(bitPattern: sequence &- last.sequence)) - 1)
    let possible = Double(time &- last.time) / 1e9 * rate.framesPerSecond
    return Double(leap) <= 2 * possible + 8 ? leap : 0
  }
}
