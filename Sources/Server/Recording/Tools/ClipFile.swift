internal import Base
internal import FMP4
internal import Glibc
internal import NIOCore
internal import Publishing
internal import RecordingFiles
internal import Storage

/// Writes a clip of a file to a file of its own.
package enum ClipFile {
  package struct Result {
    package let text: String
    package let seconds: Double
    package let bytes: Int
  }

  /// `progress` receives the bytes done and the total.
  package static func write(
    _ path: String, from: String?, to: String?, out: String, progress: (UInt64, UInt64) -> Void
  ) throws -> Result {
    let file = try LockedFile(path, .read)
    let start = try from.map { text in try moment(text, "--from") }
    let end = try to.map { text in try moment(text, "--to") }
    guard let name = StreamName("clip"),
      let source = try RecordingArchive.load(file.shared, size: file.size, stream: name, name: stem(of: path))
    else { throw try FragmentedFile.objection(to: file) }
    let tool = "\(Version.name) \(Version.number)"
    let clip: RecordingClip
    do {
      clip = try source.clip(
        from: start, to: end, metadata: MovieMetadata(title: "", date: "", tool: tool, creation: .zero))
    } catch let failure as ReplaySource.ClipFailure {
      switch failure {
      case .noClock:
        throw RecordingError(
          "\(LogText.escaped(path)): neither the file nor its name contains a time of day; give --from and --to in"
            + " seconds of the recording")
      case .noAudio: throw RecordingError("the recording has no such audio track")
      case .tooLong: throw RecordingError("the clip is too long")
      case .empty: throw RecordingError("the clip would end before it begins; choose --to after --from")
      case .outside(let length):
        let length = Decimals.fixed(seconds: length, digits: 0)
        throw RecordingError("the recording is \(length) s long and has no media in that range")
      }
    }
    let target = open(out, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
    guard target >= 0 else { throw RecordingError.system("make", out, errno: errno) }
    defer { close(target) }
    do {
      let first = UInt64(clip.media.offset) + UInt64(clip.media.file.origin?.shift ?? 0)
      try RecordingFile.write(clip.movieHeader, to: target, at: 0, path: out)
      try MediaCopy(source: file.descriptor, target: target, path: out).copy(
        first..<first + UInt64(clip.media.length), to: clip.movieHeader.readableBytes
      ) { progress($0, UInt64(clip.media.length)) }
    } catch {
      unlink(out)
      throw error
    }
    let bytes = clip.movieHeader.readableBytes + clip.media.length
    let length = Decimals.fixed(seconds: clip.seconds, digits: 3)
    return Result(
      text: "\(LogText.escaped(out)): \(length) s, \(bytes) bytes", seconds: clip.seconds, bytes: bytes)
  }

  /// The file's name without its ending; that of a recording contains its start.
  private static func stem(of path: String) -> String {
    let name = path.split(separator: "/").last.map(String.init) ?? path
    for ending in [".part.mp4", ".mp4"] where name.hasSuffix(ending) { return String(name.dropLast(ending.utf8.count)) }
    return name
  }

  private static func moment(_ text: String, _ flag: String) throws -> ReplaySource.Moment {
    do throws(ReplaySource.Moment.Malformed) {
      return try ReplaySource.Moment(text, name: flag)
    } catch {
      throw RecordingError(error.detail)
    }
  }
}
