internal import FMP4
internal import Glibc
internal import NIOCore

/// Makes a movie of a recording that an earlier run left unfinished. Doing it twice is the same as doing it once.
struct RecordingSalvage {
  let file: RecordingFile
  let title: String
  let effort: RecordingFile.Effort
  /// What its recorder knew of it; nil where nobody is left to ask, and the file alone tells.
  var remark: RecordingRemark?
  /// Where the segments lie, for the finished file, if that is known and nothing of the file is torn.
  var index: ByteBuffer?
  /// Hears how many bytes have been copied, where it takes a copy.
  var onProgress: (UInt64) -> Void = { _ in }

  /// What was found in the file.
  struct Contents: Sendable, Hashable {
    /// Nanoseconds since 1970, of its first picture or sound; nil where only its name tells.
    var startedAt: Int64?
    /// Of media.
    var seconds: Double
    /// RFC 6381, one a track.
    var codecs: [String]
    var gaps: [RecordingGap] = []
    /// Why it ended before its stream did.
    var failure: String?
    /// Bytes at the end of the file that were not whole.
    var tornBytes: UInt64 = 0
  }

  enum Outcome: Sendable, Hashable {
    case finished(RecordingFile.Outcome, Contents)
    /// Only its name was missing.
    case renamed(Contents)
    /// It held no sample.
    case removed
    /// Not a recording of ours: left alone.
    case unknown
  }

  func run() throws(RecordingError) -> Outcome {
    try file.takeBackUnfinishedHead()
    var (content, notes) = try scan()
    if case .fragmented(_, let length) = content, length < file.length, try file.closeHole() {
      (content, notes) = try scan()
    }
    switch content {
    case .unknown, .mixed:
      guard file.length == 0 else { return .unknown }
      file.discard()
      return .removed
    case .finished: return .renamed(try rename())
    case .fragmented(let tables, let length):
      guard var builder = MovieBuilder(tables, metadata: .recording(title: title, name: file.name)) else {
        file.discard()
        return .removed
      }
      let torn = file.length - length
      if torn > 0 { try file.truncate(to: length) }
      let annex = annex(notes.filter { $0.offset < length }.map(\.content), isWhole: torn == 0)
      builder.annex = annex.bytes
      let outcome = try file.finish(builder, effort: effort, onProgress: onProgress)
      return .finished(
        outcome,
        Contents(
          startedAt: annex.remark.startedAt, seconds: tables.seconds, codecs: tables.codecs, gaps: annex.remark.gaps,
          failure: annex.remark.failure, tornBytes: torn))
    }
  }

  private func scan() throws(RecordingError) -> (
    RecordingScanner.Content, notes: [(offset: UInt64, content: ByteBuffer)]
  ) {
    // Heads lie far apart: what is between them need not be read.
    posix_fadvise(file.descriptor, 0, 0, POSIX_FADV_RANDOM)
    var scanner = RecordingScanner(fileSize: file.length, crc: Checksum.of)
    while true {
      switch scanner.step {
      case .read(let offset, let length): scanner.receive(try file.read(at: offset, count: length))
      case .compare(let offset, let length, let checksum):
        let isEqual = try file.checksum(at: offset, count: length) == checksum
        scanner.compared(isEqual ? .equal : .different)
      case .finished: return (scanner.content, scanner.notes)
      }
    }
  }

  /// Gives a movie its name. It was written whole before, but perhaps by a process whose last sync failed.
  private func rename() throws(RecordingError) -> Contents {
    try file.sync()
    if remark == nil {
      try RecordingRemark.noteSalvaged(file.descriptor, size: file.length, path: file.path)
    }
    let known = RecordingRemark.read(file.descriptor, size: file.length)
    try file.folder.rename(file.name.unfinished, to: file.name.finished)
    let seconds = MovieDuration.read(try file.read(at: 0, count: 512))?.seconds ?? 0
    return Contents(
      startedAt: known?.startedAt, seconds: seconds, codecs: [], gaps: known?.gaps ?? [], failure: known?.failure)
  }

  /// What the finished file says of itself besides its media, and where its segments lie.
  private func annex(_ notes: [ByteBuffer], isWhole: Bool) -> (remark: RecordingRemark, bytes: ByteBuffer) {
    let known = isWhole ? index : nil
    let walked = known == nil ? walk() : nil
    let start = walked?.segments.first?.wallStart ?? 0
    let remark =
      remark
      ?? RecordingRemark(
        startedAt: start > 0 ? start : file.name.startNanoseconds ?? 0,
        gaps: notes.compactMap(RecordingGap.init(note:)),
        failure: notes.compactMap(RecordingRemark.failure(note:)).last, isSalvaged: true)
    var bytes = remark.stored
    if let index = known ?? walked?.stored { bytes.writeImmutableBuffer(index) }
    return (remark, bytes)
  }

  /// The index by the fragments' heads, which the scan has just read. Nil when the disk does not let it: a movie without
  /// one is a movie.
  private func walk() -> RecordingIndex? {
    guard let shared = file.shared() else { return nil }
    return try? RecordingFileReader(file: shared).index(length: file.length)
  }
}

extension MovieMetadata {
  /// What a recording says of itself: the stream's name and when it began.
  static func recording(title: String, name: RecordingName) -> MovieMetadata {
    let nanoseconds = name.startNanoseconds ?? 0
    return MovieMetadata(
      title: title, date: UTCText(nanosecondsSince1970: nanoseconds).internet,
      tool: "\(Version.name) \(Version.number)", creation: nanoseconds / 1_000_000_000)
  }
}
