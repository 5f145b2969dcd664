extension TrackDescription {
  /// "1280×720 H.264 30 fps" or "AAC 48 kHz stereo", for log lines and web pages.
  package var summary: String {
    var words: [String] = []
    if let size = codec.displaySize { words.append("\(size.width)×\(size.height)") }
    words.append(codec.name)
    if let rate = frameRate { words.append("\(Decimals.trimmed(thousandths: rate)) fps") }
    if let audio = codec.audio {
      words.append("\(Decimals.trimmed(thousandths: Int(audio.sampleRate))) kHz")
      words.append(audio.channels == 1 ? "mono" : audio.channels == 2 ? "stereo" : "\(audio.channels) channels")
    }
    return words.joined(separator: " ")
  }

  /// Frame rate in frames per 1000 seconds; nil if unknown.
  package var frameRate: Int? {
    if let frameDuration, frameDuration > 0 { return Int((Double(timescale) * 1000 / Double(frameDuration)).rounded()) }
    if let rate = codec.frameRate, rate.denominator > 0 {
      return Int((Double(rate.numerator) * 1000 / Double(rate.denominator)).rounded())
    }
    return nil
  }
}
