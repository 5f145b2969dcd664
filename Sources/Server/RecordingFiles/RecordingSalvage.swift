internal import Base
package import FMP4
internal import Glibc
package import NIOCore
internal import RecordingFormat
internal import Streams

/// Makes a movie of a recording that an earlier run left unfinished. A second run has the same result as one.
package struct RecordingSalvage {
  let file: RecordingFile
  /// The movie's title, if the recording has no name of its own.
  let title: String
  let effort: RecordingFile.Effort
  /// The recorder's metadata; nil if only the file tells.
  let metadata: RecordingMetadata?
  /// The stored index for the finished file, if it is known and nothing of the file is torn.
  let index: ByteBuffer?
  /// Why it ended early, if neither `metadata` nor the file tells.
  let failure: String?
  /// Bytes that stay free on the disk where a copy is made.
  let keepFree: Int64
  /// Called with the bytes of the file that are done.
  let onProgress: (Work, UInt64) -> Void
  /// Called before the file gets its final name, with its bytes.
  let beforeFinalName: (Contents, UInt64) -> Void

  package init(
    file: RecordingFile, title: String, effort: RecordingFile.Effort, metadata: RecordingMetadata? = nil,
    index: ByteBuffer? = nil, failure: String? = nil, keepFree: Int64 = 0,
    onProgress: @escaping (Work, UInt64) -> Void = { _, _ in },
    beforeFinalName: @escaping (Contents, UInt64) -> Void = { _, _ in }
  ) {
    (self.file, self.title, self.effort, self.metadata, self.index) = (file, title, effort, metadata, index)
    (self.failure, self.keepFree, self.onProgress, self.beforeFinalName) = (
      failure, keepFree, onProgress, beforeFinalName
    )
  }

  /// The slow steps.
  package enum Work: Sendable {
    /// Reading the headers of all fragments.
    case reading
    /// Copying the media after the moov.
    case copying
  }

  /// What the file contains.
  package struct Contents: Sendable, Hashable {
    /// Wall-clock time of its first video or audio; nil where only its name tells.
    package var startedAt: WallTime?
    /// Seconds of media.
    package var seconds: Double
    /// RFC 6381, one for each track.
    package var codecs: [String]
    package var gaps: [RecordingGap] = []
    /// Why it ended before its stream.
    package var failure: String?
    /// Bytes at the end of the file that were not whole.
    package var tornBytes: UInt64 = 0
  }

  package enum Outcome: Sendable, Hashable {
    case finished(RecordingFile.Outcome, Contents)
    /// It was a movie already and only lacked its final name.
    case renamed(Contents)
    /// It held no sample.
    case removed
    /// Not a recording of weir, with the reason. The file is left as it is.
    case unknown(String)
  }

  package func run() throws(RecordingError) -> Outcome {
    try file.takeBackUnfinishedHead()
    var found = try scan()
    if case .fragmented(_, let length) = found.content, length < file.length, try file.closeHole() {
      found = try scan()
    }
    switch found.content {
    case .unknown, .mixed:
      guard file.length == 0 else { return .unknown(found.content.objection) }
      file.discard()
      return .removed
    case .finished: return .renamed(try rename())
    case .fragmented(let tables, let length):
      let torn = file.length - length
      let annex = annex(
        found.notes.filter { $0.offset < length }.map(\.content), found.index, isWhole: torn == 0)
      let title = annex.metadata.title ?? title
      guard var builder = MovieBuilder(tables, metadata: .recording(title: title, name: file.name)) else {
        file.discard()
        return .removed
      }
      if torn > 0 { try file.truncate(to: length) }
      builder.annex = annex.bytes
      let contents = Contents(
        startedAt: annex.metadata.startedAt, seconds: tables.seconds, codecs: tables.codecs, gaps: annex.metadata.gaps,
        failure: annex.metadata.failure, tornBytes: torn)
      // Without this value: it holds the file, and a file that holds itself keeps its lock.
      file.beforeFinalName = { [beforeFinalName] in beforeFinalName(contents, $0) }
      defer { file.beforeFinalName = { _ in } }
      let outcome = try file.finish(builder, effort: effort, keepFree: keepFree) { onProgress(.copying, $0) }
      return .finished(outcome, contents)
    }
  }

  private func scan() throws(RecordingError) -> RecordingScan {
    try RecordingScan(
      file.descriptor, path: file.path, from: file.contentStart, size: file.length, seals: .heeded(.uncertain)
    ) { onProgress(.reading, $0) }
  }

  /// Gives a movie its final name. It was written completely before, but may not be durable.
  private func rename() throws(RecordingError) -> Contents {
    try file.confirmHead()
    if metadata == nil {
      try RecordingMetadata.noteSalvaged(file.descriptor, size: file.length, path: file.path)
    }
    let movie = file.folder.contents(of: file.name.unfinished)
    let contents = Contents(
      startedAt: movie.metadata?.startedAt, seconds: movie.seconds, codecs: [], gaps: movie.metadata?.gaps ?? [],
      failure: movie.metadata?.failure)
    beforeFinalName(contents, file.length)
    try file.folder.rename(file.name.unfinished, to: file.name.finished)
    return contents
  }

  /// The metadata and the index for the finished file: from its recorder if known, otherwise from the file.
  private func annex(
    _ notes: [ByteBuffer], _ found: RecordingIndex, isWhole: Bool
  ) -> (metadata: RecordingMetadata, bytes: ByteBuffer) {
    let start = found.segments.first?.wallStart ?? .zero
    let metadata =
      metadata
      ?? RecordingMetadata(
        startedAt: start > .zero ? start : file.name.startTime ?? .zero,
        gaps: notes.compactMap(RecordingGap.init(note:)),
        failure: notes.compactMap(RecordingMetadata.failure(note:)).last ?? failure, isSalvaged: true,
        title: notes.compactMap(RecordingTitle.init(note:)).first?.description,
        captions: notes.compactMap(CaptionDeclarations.text(note:)).last)
    var bytes = metadata.stored
    let known = isWhole ? index : nil
    bytes.writeImmutableBuffer(known ?? found.stored)
    return (metadata, bytes)
  }
}

extension MovieMetadata {
  /// Title and date in the movie's own metadata: the stream's name and the start.
  package static func recording(title: String, name: RecordingName) -> MovieMetadata {
    let start = name.startTime ?? .zero
    return MovieMetadata(
      title: title, date: UTCText(start).internet, tool: "\(Version.name) \(Version.number)", creation: start)
  }
}
