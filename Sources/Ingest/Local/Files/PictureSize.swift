/// Width and height of a picture, in pixels.
struct PictureSize: Sendable, Hashable, CustomStringConvertible {
  var width: Int
  var height: Int

  var description: String { "\(width)×\(height)" }

  /// Height and width exchanged.
  var turned: PictureSize { PictureSize(width: height, height: width) }

  /// Whether no side is longer than the other size's.
  func fits(in other: PictureSize) -> Bool { width <= other.width && height <= other.height }

  /// The largest size of this shape within `most`, with even sides. It is never larger than this one. Sides are at
  /// least 1 and at most a million.
  func scaled(into most: PictureSize) -> PictureSize {
    var size = self
    if !fits(in: most) {
      size =
        width * most.height >= height * most.width
        ? PictureSize(width: most.width, height: height * most.width / width)
        : PictureSize(width: width * most.height / height, height: most.height)
    }
    return PictureSize(width: size.width & ~1, height: size.height & ~1)
  }
}
