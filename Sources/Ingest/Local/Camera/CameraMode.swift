package import FMP4

/// One way in which a camera can send pictures.
package struct CameraMode: Sendable, Hashable {
  package var format: CameraFormat
  package var size: CameraSettings.Size
  package var rate: FrameRate

  package init(format: CameraFormat, size: CameraSettings.Size, rate: FrameRate) {
    self.format = format
    self.size = size
    self.rate = rate
  }

  /// What is taken where nothing is asked for: the largest picture up to this that moves well.
  private static let usualPixels = 1280 * 720
  private static let leastUsualRate = 24.0

  /// The mode that comes closest to what is wanted: its format and size first, then its rate. Nil where nothing fits
  /// the format. A coded stream is taken only where it is asked for, or where there is nothing else.
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
    // The rate that is wanted, else the next quicker one, else the quickest.
    let wanted = requested.frameRate?.framesPerSecond ?? 30
    let tempo = rate >= wanted - 0.01 ? [0, rate] : [1, -rate]
    let order: [CameraFormat: Double] = [.yu12: 0, .nv12: 0, .yuyv: 1, .mjpeg: 2]
    return size + tempo + [order[mode.format] ?? 3]
  }
}
