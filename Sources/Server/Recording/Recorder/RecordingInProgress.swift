internal import Base
internal import FMP4
internal import NIOCore
internal import Publishing
internal import RecordingFiles
internal import RecordingFormat
internal import Storage
internal import Streams

/// The file that a recording is writing, and the contents of its movie so far. Every call may wait for the disk.
struct RecordingInProgress {
  let file: RecordingFile
  let stream: StreamName
  /// The name that a client gave to it.
  let title: RecordingTitle?
  /// Wall-clock time of its first video or audio.
  let startedAt: WallTime
  /// The file for viewers who watch it while it is written.
  let replay: ReplaySource?
  private(set) var tables: MovieTables
  private(set) var gaps: [RecordingGap] = []
  /// Closed captions that its playlists declare, as the metadata have them.
  private(set) var captions: String?
  private let initSegment: InitSegment
  /// Of the media written last.
  private(set) var tracks: [TrackDescription]
  private var lastSync: MonotonicTime

  init(
    file: RecordingFile, stream: StreamName, title: RecordingTitle? = nil, initSegment: InitSegment,
    startedAt: WallTime, replay: ReplaySource?,
    now: MonotonicTime
  ) {
    self.file = file
    self.stream = stream
    self.title = title
    self.initSegment = initSegment
    self.startedAt = startedAt
    self.replay = replay
    (tracks, tables) = (initSegment.tracks, MovieTables(tracks: initSegment.tracks))
    lastSync = now
  }

  /// Writes what precedes the first fragment.
  func begin() throws(RecordingError) {
    try file.reserve(media: initSegment.whole.readableBytes, head: headRoom)
    replay?.change(to: initSegment, at: 0)
    try file.begin(initSegment.whole)
    if let note = title?.note, let box = RecordingMetadataBox.box(note, crc: Checksum.of) { try file.append(box) }
  }

  mutating func change(to initSegment: InitSegment) throws(RecordingError) {
    let box = ParameterChange.box(initSegment)
    try file.append(seal(box.readableBytes, Checksum.of(box)))
    replay?.change(to: initSegment, at: file.length)
    try file.append(box)
    tracks = initSegment.tracks
    tables.change(to: initSegment.tracks)
  }

  /// `bytes`: those of the fragment, where they are not those of its range.
  mutating func write(
    _ published: PublishedFragment, bytes: ByteBuffer? = nil, anchor: WallClockAnchor?
  ) throws(RecordingError) {
    let length = bytes?.readableBytes ?? published.range.length
    try file.reserve(media: length + RecordingSeal.size, head: headRoom)
    let start: UInt64
    if let bytes {
      var sealed = seal(length, Checksum.of(bytes))
      start = file.length + UInt64(sealed.readableBytes)
      sealed.writeImmutableBuffer(bytes)
      try file.append(sealed)
    } else {
      start = try file.append(published.range, behind: seal(length, published.checksum))
    }
    tables.append(published.fragment.runs, mediaOffset: start &+ UInt64(published.headLength))
    replay?.add(published, at: start, length: length, anchor: anchor)
  }

  /// Notes that media is missing before the next fragment. The note is also written to the file, where a salvage reads it.
  mutating func note(_ gap: RecordingGap) throws(RecordingError) {
    gaps.append(gap)
    if let box = RecordingMetadataBox.box(gap.note, crc: Checksum.of) { try file.append(box) }
  }

  /// A segment is complete. New closed captions of its stream are also written to the file, where a salvage reads them.
  mutating func complete(_ end: SegmentEnd) throws(RecordingError) {
    replay?.complete(end)
    let text = end.captions.text(maximumBytes: RecordingMetadata.maximumTextBytes)
    guard let text, text != captions else { return }
    captions = text
    if let box = RecordingMetadataBox.box(CaptionDeclarations.note(text), crc: Checksum.of) { try file.append(box) }
  }

  /// The seal that precedes `length` bytes with that checksum.
  private func seal(_ length: Int, _ checksum: UInt32) -> ByteBuffer {
    RecordingSeal(length: UInt32(clamping: length), checksum: checksum, durableLength: file.durableLength)
      .box(crc: Checksum.of)
  }

  /// Bytes that a moov of the present contents needs, with a margin.
  private var headRoom: Int {
    let index = replay?.withIndex { $0.storedSize } ?? 0
    return tables.headSize + index + RecordingMetadata.maximumBytes(gaps: gaps.count) + Self.headMargin
  }

  /// Metadata, rounding to blocks, and the file system's own records.
  private static let headMargin = 256 << 10

  /// Makes written bytes durable if that is due. True if it did.
  mutating func syncIfDue(_ interval: Int64, _ now: MonotonicTime) throws(RecordingError) -> Bool {
    guard file.hasUnsynced, now &- lastSync >= interval else { return false }
    try sync(now)
    return true
  }

  mutating func sync(_ now: MonotonicTime) throws(RecordingError) {
    lastSync = now
    try file.sync()
  }

  // MARK: Finishing

  /// Makes a movie of the file if that needs no copy. `failure` says why the recording ended early.
  func finish(
    failure: String? = nil, effort: RecordingFile.Effort = .inPlace
  ) throws(RecordingError) -> RecordingFile.Outcome {
    let movieMetadata = MovieMetadata.recording(title: title?.description ?? stream.description, name: file.name)
    replay?.end()
    guard var builder = MovieBuilder(tables, metadata: movieMetadata) else { return .leftFragmented }
    builder.annex = metadata(failure).stored
    if let index = replay?.stored { builder.annex.writeImmutableBuffer(index) }
    return try file.finish(builder, effort: effort)
  }

  private func metadata(_ failure: String?) -> RecordingMetadata {
    var facts = facts
    facts.failure = failure
    return RecordingMetadata(facts)
  }

  /// Finishes the file after an error: cuts off what is not known to be durable and reads the rest again. Also returns the
  /// seconds that remain.
  func rescue(
    failure: String?, beforeFinalName: @escaping (RecordingSalvage.Contents, UInt64) -> Void = { _, _ in }
  ) throws(RecordingError) -> (RecordingFile.Outcome, seconds: Double) {
    // The media of a file with its moov in front is whole and durable: nothing is to be cut.
    try file.requireFragments()
    file.releaseReserve()
    let cut = try file.cutToDurable()
    // A later attempt to finish the file reads the failure here. If the disk refuses this box, the file is as it was before.
    if let note = failure.map(RecordingMetadata.failureNote), let box = RecordingMetadataBox.box(note, crc: Checksum.of)
    {
      try? file.append(box)
    }
    guard case .cut = cut else { return (try finish(failure: failure), tables.seconds) }
    let salvage = RecordingSalvage(
      file: file, title: stream.description, effort: .inPlace, metadata: metadata(failure),
      beforeFinalName: beforeFinalName)
    guard case .finished(let outcome, let found) = try salvage.run() else { return (.leftFragmented, 0) }
    return (outcome, found.seconds)
  }

  // MARK: Facts

  var progress: RecordingProgress {
    RecordingProgress(
      file: "\(stream)/\(file.name.finished)", bytes: file.length,
      unsyncedBytes: file.length - min(file.length, file.durableLength), seconds: tables.seconds, gaps: gaps)
  }

  var facts: RecordingFacts {
    RecordingFacts(
      stream: stream, name: file.name, startedAt: startedAt, seconds: tables.seconds, bytes: file.length,
      codecs: tables.codecs, gaps: gaps, title: title?.description, captions: captions)
  }

  /// Upper bound of the movie's bytes, for file systems with blocks of 4 KiB.
  var expectedBytes: UInt64 { file.length + max(file.contentStart, UInt64(tables.headSize) + 8192) }
}
