internal import Glibc

/// Why a file cannot be a source. The text says what to do.
enum FileError: Error, Sendable, Hashable, CustomStringConvertible {
  /// `code` is errno.
  case unreadable(String, code: Int32)
  case noFile(String)
  /// `reason` is libavformat's.
  case unknownFormat(String, reason: String)
  case unsupportedCodec(String, kind: String, codec: String)
  case invalidCodec(String, reason: String)
  case empty(String)
  /// None of its video frames is usable.
  case noUsableFrame(String)
  case changed(String)

  var description: String {
    switch self {
    case .unreadable(let path, let code):
      "cannot read \(path): \(String(cString: strerror(code))); check the path and its permissions"
    case .noFile(let path): "\(path) is not a regular file; name a file of this machine"
    case .unknownFormat(let path, let reason):
      "\(path) is not a media file that weir can read (\(reason)); MP4, MOV, Matroska, WebM, MPEG-TS, FLV, Ogg and AAC work"
    case .unsupportedCodec(let path, let kind, let codec):
      "the \(kind) of \(path) is \(codec), which is not passed through; H.264, HEVC, AV1, AAC and Opus work: "
        + "ffmpeg -i FILE -c:v libx264 -c:a aac NEW.mp4 makes such a file"
    case .invalidCodec(let path, let reason): "\(path) cannot be played: \(reason)"
    case .empty(let path): "\(path) has no playable video or audio"
    case .noUsableFrame(let path):
      "\(path) is damaged: none of its frames can be played; ffmpeg -i FILE -vn -c copy NEW.mp4 makes a file of its audio"
    case .changed(let path): "\(path) was replaced by a file of another kind while it played; restart weir"
    }
  }
}
