internal import FMP4
internal import Publishing

extension PublishRequest.KeyFrames {
  /// The distance of key frames of an own source, and of a publisher that makes them as it is asked. Nil for others.
  ///
  /// - Parameter measured: that of the name's last publisher. Some say that they make them as they are asked and do not.
  func promised(for settings: StreamSettings, measured: MediaTime?) -> MediaTime? {
    switch self {
    case .every(let distance): distance
    case .asAsked: max(settings.segmentTarget, measured ?? .zero)
    case .asItsEncoderHasThem: nil
    }
  }
}
