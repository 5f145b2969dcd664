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

  package init(shortSide: Int, bitRate: Int, preset: VideoEncoding.Preset = .veryfast) {
    self.preset = preset
    name = "\(shortSide)p"
    self.shortSide = shortSide
    self.bitRate = bitRate
  }

  /// Frame size in square samples: the source's aspect ratio, both sides even.
  ///
  /// - Parameter source: the source's size in square samples.
  package func size(ofSource source: (width: Int, height: Int)) -> (width: Int, height: Int) {
    func even(_ side: Int, _ short: Int) -> Int {
      max(2, (side * shortSide + short) / (2 * short) * 2)
    }
    return source.width < source.height
      ? (shortSide, even(source.height, max(source.width, 1)))
      : (even(source.width, max(source.height, 1)), shortSide)
  }

  /// Whether the rung is smaller than the source. Nothing is scaled up, and a source of the rung's size is used itself.
  package func applies(toSource source: (width: Int, height: Int)) -> Bool {
    shortSide < min(source.width, source.height)
  }
}
