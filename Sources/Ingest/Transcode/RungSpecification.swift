package import LibAV

/// One rung of a ladder: frame size and bit rate.
package struct RungSpecification: Sendable, Hashable {
  /// Name in addresses: "720p".
  package let name: String
  /// The shorter side of its frames, in samples. Even.
  package let shortSide: Int
  /// Bits per second.
  package let bitRate: Int

  /// Encoder effort per bit.
  package let preset: VideoEncoding.Preset

  /// What becomes of a source that is not larger than the rung.
  package enum SmallSource: Sendable, Hashable {
    /// Nothing: it is used itself.
    case used
    /// It is encoded anew in its own size, by a bit rate that suits that, up to the rung's.
    case encoded
  }

  package let smallSource: SmallSource

  package init(
    shortSide: Int, bitRate: Int, preset: VideoEncoding.Preset = .veryfast, smallSource: SmallSource = .used
  ) {
    self.preset = preset
    self.smallSource = smallSource
    name = "\(shortSide)p"
    self.shortSide = shortSide
    self.bitRate = bitRate
  }

  /// Frame size in square samples: the source's aspect ratio, both sides even.
  ///
  /// - Parameter source: the source's size in square samples.
  package func size(ofSource source: (width: Int, height: Int)) -> (width: Int, height: Int) {
    // Nothing is scaled up.
    let own = min(source.width, source.height)
    let shortSide = smallSource == .encoded && own < shortSide ? max(2, own / 2 * 2) : shortSide
    func even(_ side: Int, _ short: Int) -> Int {
      max(2, (side * shortSide + short) / (2 * short) * 2)
    }
    return source.width < source.height
      ? (shortSide, even(source.height, max(source.width, 1)))
      : (even(source.width, max(source.height, 1)), shortSide)
  }

  /// Bits per second for a source of so many frames per second, whose frames get this size.
  package func bitRate(forSize size: (width: Int, height: Int), framesPerSecond: Double) -> Int {
    guard smallSource == .encoded else { return bitRate }
    return min(
      bitRate, VideoEncoding().bitRate(width: size.width, height: size.height, framesPerSecond: framesPerSecond))
  }

  /// Whether it is made of the source: of a larger one. Nothing is scaled up.
  package func applies(toSource source: (width: Int, height: Int)) -> Bool {
    smallSource == .encoded || shortSide < min(source.width, source.height)
  }
}
