package import FMP4

/// A combination of format, size and frame rate of a camera.
package struct CameraMode: Sendable, Hashable {
  package var format: CameraFormat
  package var size: CameraSettings.Size
  package var rate: FrameRate

  package init(format: CameraFormat, size: CameraSettings.Size, rate: FrameRate) {
    self.format = format
    self.size = size
    self.rate = rate
  }

  /// Default: the largest size up to this with at least this frame rate.
  private static let usualPixels = 1280 * 720
  private static let leastUsualRate = 24.0

  /// The mode closest to the requested one: first by format and size, then by rate. Nil if no mode has the format. A
  /// mode encoded by the camera is used only on request, or if there is no other.
  package static func best(of modes: [CameraMode], for requested: CameraSettings) -> CameraMode? {
    var modes = modes.filter { requested.format == nil || $0.format == requested.format }
    if requested.format == nil, modes.contains(where: { !$0.format.isCoded }) {
      modes.removeAll(where: \.format.isCoded)
    }
    return modes.min { penalty($0, requested).lexicographicallyPrecedes(penalty($1, requested)) }
  }

  private static func penalty(_ mode: CameraMode, _ requested: CameraSettings) -> [Double] {
    let pixels = Double(mode.size.width * mode.size.height)
    let rate = mode.rate.framesPerSecond
    var size: [Double]
    if let wanted = requested.size {
      size = [Double(abs(mode.size.width - wanted.width) + abs(mode.size.height - wanted.height))]
    } else {
      let least = min(requested.frameRate?.framesPerSecond ?? leastUsualRate, leastUsualRate)
      size = [rate < least ? 1 : 0, pixels > Double(usualPixels) ? 1 : 0]
      size.append(pixels > Double(usualPixels) ? pixels : -pixels)
    }
    // The requested rate, else the next higher one, else the highest.
    let wanted = requested.frameRate?.framesPerSecond ?? 30
    let tempo = rate >= wanted - 0.01 ? [0, rate] : [1, -rate]
    let order: [CameraFormat: Double] = [.yu12: 0, .nv12: 0, .yuyv: 1, .mjpeg: 2]
    return size + tempo + [order[mode.format] ?? 3]
  }
}
