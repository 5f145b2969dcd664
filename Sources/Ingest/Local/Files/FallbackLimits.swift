/// Bounds of what may be shown while a publisher is away.
enum FallbackLimits {
  /// Most bytes of a picture's file.
  static let pictureBytes = 32 << 20
  /// No side of a picture in a file is longer.
  static let picture = PictureSize(width: 8192, height: 8192)
  /// A larger picture is scaled down to it.
  static let largestShown = PictureSize(width: 1920, height: 1080)
  /// A smaller picture is refused, since none is enlarged.
  static let smallestShown = PictureSize(width: 16, height: 16)
  /// Units of video and audio among which a film has its first key frame: a minute of both.
  static let unitsBeforeKeyFrame = 4000
}
