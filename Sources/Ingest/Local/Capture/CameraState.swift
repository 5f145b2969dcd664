internal import Base
internal import FMP4
internal import LibAV

/// State of the camera from before it went away, and of the stream from before the camera changed.
struct CameraState {
  /// Version of the requested settings.
  private(set) var version = -1
  var size: CameraSettings.Size?
  var rate: FrameRate?
  private(set) var place: CameraLocation?
  var told: CaptureError?
  var lastTime = MonotonicTime.min
  /// The driver's number of the last frame, and its arrival.
  private var last: (sequence: UInt32, time: MonotonicTime)?
  /// The slate, in the size of the video.
  var noSignal: (size: CameraSettings.Size, image: VideoFrame)?
  /// Frames that proved incomplete, and frames that drivers of earlier cameras marked as broken.
  var broken: Int64 = 0
  var brokenBefore: Int64 = 0

  /// Begins with another requested camera. Size and rate of the video stay unless others are requested.
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

  /// Number of frames that the driver dropped before the frame of this number and time. A jump beyond what the camera
  /// can have captured means that the counter has restarted (v4l2loopback's does when opened).
  mutating func lost(before sequence: UInt32, at time: MonotonicTime, rate: FrameRate) -> Int64 {
    defer { last = (sequence, time) }
    guard let last else { return 0 }
    let leap = max(0, Int64(Int32(bitPattern: sequence &- last.sequence)) - 1)
    let possible = Double(time &- last.time) / 1e9 * rate.framesPerSecond
    return Double(leap) <= 2 * possible + 8 ? leap : 0
  }
}
