/// Why a file cannot be shown while a publisher is away. The text says what to do.
enum FallbackError: Error, Sendable, Hashable, CustomStringConvertible {
  case empty(String)
  /// Neither picture nor film. `reason` is libavformat's.
  case unknownFormat(String, reason: String)
  case noPicture(String)
  case tooLarge(String, bytes: Int)
  case tooManyPixels(String, PictureSize)
  /// The size is that of the picture as it would be shown.
  case tooSmall(String, PictureSize)
  case damaged(String, PictureFormat, reason: String)
  case noVideo(String)
  case noKeyFrame(String)

  private static let formats = PictureFormat.allCases.map(\.rawValue).joined(separator: ", ")

  var description: String {
    switch self {
    case .empty(let path): "\(path) is empty; write a picture or a film to it, or name another file"
    case .unknownFormat(let path, let reason):
      "\(path) is neither a picture (\(Self.formats)) nor a film (MP4, MOV, Matroska, WebM, MPEG-TS, FLV) that weir "
        + "can read: \(reason)"
    case .noPicture(let path):
      "\(path) is no picture that weir can read; \(Self.formats) work: ffmpeg -i FILE NEW.png makes such a file"
    case .tooLarge(let path, let bytes):
      "the picture \(path) has \(bytes) bytes, and may have \(FallbackLimits.pictureBytes >> 20) MiB; "
        + "ffmpeg -i FILE -vf scale=1920:-2 NEW.png makes a smaller one"
    case .tooManyPixels(let path, let size):
      "the picture \(path) has \(size) pixels, and may have \(FallbackLimits.picture); "
        + "scale it down, \(FallbackLimits.largestShown) is all that is shown"
    case .tooSmall(let path, let size):
      "the picture \(path) would be shown with \(size) pixels, and needs \(FallbackLimits.smallestShown); "
        + "take a larger one, or one that is less narrow"
    case .damaged(let path, let format, let reason):
      "the picture \(path) is a damaged \(format.rawValue): \(reason); write the file again"
    case .noVideo(let path):
      "\(path) has no video; what is shown while a publisher is away is a picture, or a film with H.264, HEVC or AV1"
    case .noKeyFrame(let path):
      "\(path) cannot be played: no key frame is among its first \(FallbackLimits.unitsBeforeKeyFrame) frames of video "
        + "and audio; ffmpeg -i FILE -c:v libx264 -c:a aac NEW.mp4 makes a file with key frames"
    }
  }
}
