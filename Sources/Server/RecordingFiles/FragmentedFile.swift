internal import Base
internal import FMP4
internal import Glibc
internal import NIOCore
internal import RecordingFormat

/// Makes an ordinary movie of a fragmented file in place. The file may have any name, and any program may have written it.
package enum FragmentedFile {
  package struct Result {
    package let text: String
    /// How the movie was made.
    package let way: String
    /// Seconds of media, where they were counted.
    package let seconds: Double?
  }

  /// The files that a path stands for: the file itself, or the unfinished recordings in a folder and one level below.
  package static func search(_ path: String) throws(RecordingError) -> [String] {
    var status = stat()
    guard stat(path, &status) == 0 else { throw .unopened(path, errno: errno) }
    guard status.st_mode & S_IFMT == S_IFDIR else { return [path] }
    let folder = try RecordingFolder.open(path)
    var found: [String] = []
    for name in try folder.names() {
      if RecordingName(unfinished: name) != nil {
        found.append("\(path)/\(name)")
      } else if let inner = try? RecordingFolder.open("\(path)/\(name)") {
        let names = try inner.names().filter { RecordingName(unfinished: $0) != nil }
        found += names.map { "\(path)/\(name)/\($0)" }
      }
    }
    return found
  }

  /// `progress` receives the bytes done and the total. A crash at any point leaves a file that a second call makes a movie of.
  package static func finalize(_ path: String, progress: (UInt64, UInt64) -> Void) throws(RecordingError) -> Result {
    let name = path.split(separator: "/").last.map(String.init) ?? path
    if RecordingName(unfinished: name) != nil { return try salvage(path, name) }
    let file = try LockedFile(path, .change)
    try file.requireNoOther()
    let room = try MoovReservation.find(in: file.descriptor, size: file.size, path: path)
    let found = try room == nil ? repaired(file, progress) : scan(file, behind: room, progress)
    switch found.content {
    case .finished:
      // An earlier run may have been killed before its result was durable.
      guard fdatasync(file.descriptor) == 0 else { throw .system("make durable", path, errno: errno) }
      return result(path, "is an ordinary movie already", "nothing to do", seconds: nil)
    case .unknown, .mixed: throw RecordingError("\(LogText.escaped(path)): \(found.content.objection)")
    case .fragmented(let tables, let length):
      let metadata = MovieMetadata(title: "", date: "", tool: "\(Version.name) \(Version.number)", creation: .zero)
      guard var builder = MovieBuilder(tables, metadata: metadata) else {
        throw RecordingError("\(LogText.escaped(path)) holds no whole fragment")
      }
      builder.annex = found.index.stored
      let torn = file.size - min(file.size, UInt64(room?.length ?? 0)) - length
      let way = try finish(file, builder, room, length: length, progress)
      let loss = torn > 0 ? "; \(torn) bytes at its end were not whole" : ""
      return result(path, "is an ordinary movie now (\(way))\(loss)", way, seconds: tables.seconds)
    }
  }

  /// Why nothing can be done with a file.
  package static func objection(to file: LockedFile) throws(RecordingError) -> RecordingError {
    RecordingError("\(LogText.escaped(file.path)): \(try scan(file).content.objection)")
  }

  static func scan(
    _ file: LockedFile, behind room: MoovReservation? = nil, _ progress: (UInt64, UInt64) -> Void = { _, _ in }
  ) throws(RecordingError) -> RecordingScan {
    let start = min(file.size, UInt64(room?.length ?? 0))
    return try RecordingScan(
      file.descriptor, path: file.path, from: start, size: file.size - start, seals: .ignored
    ) { progress($0, file.size - start) }
  }

  /// Scans the file after removing what a crash may have left of a moov that was being inserted.
  private static func repaired(
    _ file: LockedFile, _ progress: (UInt64, UInt64) -> Void
  ) throws(RecordingError) -> RecordingScan {
    let insertion = MoovInsertion(descriptor: file.descriptor, path: file.path)
    file.noteSize(file.size - (try insertion.takeBack(length: file.size)))
    let found = try scan(file, progress)
    guard case .fragmented(_, let length) = found.content, length < file.size else { return found }
    let hole = try insertion.closeHole(length: file.size)
    guard hole > 0 else { return found }
    file.noteSize(file.size - hole)
    return try scan(file, progress)
  }

  private static func result(_ path: String, _ text: String, _ way: String, seconds: Double?) -> Result {
    let length = seconds.map { ", \(Decimals.fixed(seconds: $0, digits: 1)) s" } ?? ""
    return Result(text: "\(LogText.escaped(path)): \(text)\(length)", way: way, seconds: seconds)
  }

  /// Finishes an unfinished recording as the next start of the server would.
  private static func salvage(_ path: String, _ name: String) throws(RecordingError) -> Result {
    let parent = path.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
    let folder = try RecordingFolder.open(parent.isEmpty ? (path.hasPrefix("/") ? "/" : ".") : parent)
    guard let recording = RecordingName(unfinished: name) else { throw RecordingError("\(path) is not a recording") }
    switch RecordingFile.reopen(in: folder, name: recording) {
    case .gone: throw RecordingError("\(LogText.escaped(path)) does not exist, or is not a file")
    case .unreadable(let error): throw error
    case .locked:
      throw RecordingError("\(LogText.escaped(path)) is being written by another process; it is left as it is")
    case .opened(let file):
      let title = parent.split(separator: "/").last.map(String.init) ?? ""
      switch try RecordingSalvage(file: file, title: title, effort: .whatItTakes).run() {
      case .finished(let outcome, let contents):
        let way = outcome.words
        return result("\(folder.path)/\(recording.finished)", "finished (\(way))", way, seconds: contents.seconds)
      case .renamed: return result("\(folder.path)/\(recording.finished)", "was finished", "renamed", seconds: nil)
      case .removed: return result(path, "held nothing and is removed", "removed", seconds: nil)
      case .unknown(let reason): throw RecordingError("\(LogText.escaped(path)): \(reason)")
      }
    }
  }

  // MARK: In place

  /// Returns how it was done.
  private static func finish(
    _ file: LockedFile, _ builder: MovieBuilder, _ room: MoovReservation?, length: UInt64,
    _ progress: (UInt64, UInt64) -> Void
  ) throws(RecordingError) -> String {
    let content = UInt64(room?.length ?? 0)..<UInt64(room?.length ?? 0) + length
    if content.upperBound < file.size, ftruncate(file.descriptor, off_t(clamping: content.upperBound)) != 0 {
      throw .system("truncate", file.path, errno: errno)
    }
    guard fdatasync(file.descriptor) == 0 else { throw .system("make durable", file.path, errno: errno) }
    let movieHeader = builder.movieHeader(contentLength: length, blockSize: MoovInsertion.blockSize(file.descriptor))
    do throws(MoovInsertion.Failure) {
      if let room {
        let filling = room.movieHeader(builder, contentLength: length)
        if let filling, !room.isTooLoose(for: filling, contentLength: length) {
          try room.fill(with: filling, of: file.descriptor, path: file.path, calls: .system)
          return RecordingFile.Outcome.filled.words
        }
      } else {
        let insertion = MoovInsertion(descriptor: file.descriptor, path: file.path)
        if try insertion.insert(movieHeader) == .inserted { return RecordingFile.Outcome.inserted.words }
      }
    } catch {
      throw error.error
    }
    let (folder, name) = try place(of: file)
    let copy = MovieCopy(
      source: file.descriptor, content: content, folder: folder, temporary: ".\(name).weir-tmp",
      permissions: file.permissions)
    let outcome = try copy.make(movieHeader, effort: .whatItTakes) { progress($0, length) }
    try folder.rename(copy.temporary, to: name)
    return outcome.words
  }

  /// The folder that contains the file, and its name there, with all links resolved.
  private static func place(of file: LockedFile) throws(RecordingError) -> (RecordingFolder, name: String) {
    guard let resolved = realpath(file.path, nil) else { throw .system("find", file.path, errno: errno) }
    defer { free(resolved) }
    let parts = String(cString: resolved).split(separator: "/")
    guard let name = parts.last else { throw .system("find", file.path, errno: EISDIR) }
    return (try RecordingFolder.open("/" + parts.dropLast().joined(separator: "/")), String(name))
  }
}

extension RecordingFile.Outcome {
  fileprivate var words: String {
    switch self {
    case .filled: "room filled"
    case .inserted: "movie header inserted"
    case .shared: "blocks shared"
    case .copied: "copied"
    case .leftFragmented: "left as it is"
    }
  }
}

extension RecordingScanner.Content {
  /// Why a file cannot be worked on.
  var objection: String {
    switch self {
    case .finished: "it is an ordinary MP4 already; this takes fragmented ones, and recordings of weir"
    // ffmpeg writes such files without `empty_moov`.
    case .mixed:
      "its moov has samples of its own besides those in fragments, which this command cannot merge;"
        + " `ffmpeg -i FILE -c copy OUT.mp4` does"
    case .fragmented: "it holds no whole fragment"
    case .unknown(let error): error.objection
    }
  }
}

extension BoxError {
  fileprivate var objection: String {
    switch code {
    case .blank where offset == 0:
      "it begins with zeros: if its finishing was interrupted, `weir record finalize` repairs it"
    case .foreign: "that is no MP4"
    case .unfinished:
      "it has media but no moov before it: it was written as an ordinary MP4 and never finished, and"
        + " its samples cannot be located"
    case .missing where path.isEmpty: "it has no moov"
    case .codec(let error) where error.code == .unsupported:
      "\(LogText.escaped(description)), which weir does not know (it knows H.264, HEVC, AV1, VP9, AAC, Opus, AC-3 and E-AC-3)"
    default: LogText.escaped(description)
    }
  }
}
