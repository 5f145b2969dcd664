/// One rung of a ladder: how large its pictures are and how many bits it may use.
package struct RungSpecification: Sendable, Hashable {
  /// Names it in addresses: "720p".
  package let name: String
  /// The shorter side of its pictures, in samples; even.
  package let shortSide: Int
  /// Bits a second.
  package let bitRate: Int

  /// How much work its encoder takes for each bit.
  package let preset: VideoEncoding.Preset

  package init(shortSide: Int, bitRate: Int, preset: VideoEncoding.Preset = .veryfast) {
    self.preset = preset
    name = "\(shortSide)p"
    self.shortSide = shortSide
    self.bitRate = bitRate
  }

  /// Of its pictures, in square samples: the source's shape, both sides even.
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

  /// Nothing is scaled up, and a source of the rung's size is the rung.
  package func applies(toSource source: (width: Int, height: Int)) -> Bool {
    shortSide < min(source.width, source.height)
  }
}
