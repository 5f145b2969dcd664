internal import Basics
internal import FMP4
internal import Ingest
internal import NIOCore
internal import Storage

/// The file that a recording writes at the moment, with what its movie will say of it. May wait for the disk anywhere.
struct RecordingInProgress {
  let file: RecordingFile
  let stream: StreamName
  /// Wall-clock time of its first picture or audio, in nanoseconds since 1970.
  let startedAt: Int64
  /// The file for those who watch it already.
  let replay: ReplaySource?
  private(set) var tables: MovieTables
  private(set) var gaps: [RecordingGap] = []
  private let initSegment: InitSegment
  private var lastSync: Int64

  /// `now`: monotonic nanoseconds.
  init(
    file: RecordingFile, stream: StreamName, initSegment: InitSegment, startedAt: Int64, replay: ReplaySource?,
    now: Int64
  ) {
    self.file = file
    self.stream = stream
    self.initSegment = initSegment
    self.startedAt = startedAt
    self.replay = replay
    tables = MovieTables(tracks: initSegment.tracks)
    lastSync = now
  }

  /// Writes what stands before the first fragment.
  func begin() throws(RecordingError) {
    try file.reserve(media: initSegment.whole.readableBytes, head: headRoom)
    replay?.change(to: initSegment, at: 0)
    try file.begin(initSegment.whole)
  }

  mutating func change(to initSegment: InitSegment) throws(RecordingError) {
    let box = ParameterChange.box(initSegment)
    try file.append(seal(box.readableBytes, Checksum.of(box)))
    replay?.change(to: initSegment, at: file.length)
    try file.append(box)
    tables.change(to: initSegment.tracks)
  }

  mutating func write(_ published: PublishedFragment, anchor: WallClockAnchor?) throws(RecordingError) {
    try file.reserve(media: published.range.length + RecordingSeal.size, head: headRoom)
    let start = try file.append(published.range, behind: seal(published.range.length, published.checksum))
    tables.append(published.fragment.runs, mediaOffset: start &+ UInt64(published.headLength))
    replay?.add(published, at: start, anchor: anchor)
  }

  /// Media is missing before the next fragment. That is also written down: a salvage has nobody to ask.
  mutating func note(_ gap: RecordingGap) throws(RecordingError) {
    gaps.append(gap)
    if let box = RecordingMetadataBox.box(gap.note, crc: Checksum.of) { try file.append(box) }
  }

  /// What stands before so many bytes of that checksum.
  private func seal(_ length: Int, _ checksum: UInt32) -> ByteBuffer {
    RecordingSeal(length: UInt32(clamping: length), checksum: checksum, durableLength: file.durableLength)
      .box(crc: Checksum.of)
  }

  /// Bytes of a head for what there is, and some more.
  private var headRoom: Int {
    let index = replay?.withIndex { $0.storedSize } ?? 0
    return tables.headSize + index + RecordingMetadata.maximumBytes(gaps: gaps.count) + Self.headMargin
  }

  /// Metadata, rounding to blocks, and what the file system needs to account for it.
  private static let headMargin = 256 << 10

  /// Makes durable what is not, if that is due. True when it did.
  mutating func syncIfDue(_ interval: Int64, _ now: Int64) throws(RecordingError) -> Bool {
    guard file.hasUnsynced, now &- lastSync >= interval else { return false }
    try sync(now)
    return true
  }

  mutating func sync(_ now: Int64) throws(RecordingError) {
    lastSync = now
    try file.sync()
  }

  // MARK: The end

  /// Makes a movie of it, if that needs no copy. `failure` is why it ends before it was to.
  func finish(
    failure: String? = nil, effort: RecordingFile.Effort = .inPlace
  ) throws(RecordingError) -> RecordingFile.Outcome {
    let movieMetadata = MovieMetadata.recording(title: stream.description, name: file.name)
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

  /// The same after something failed: what is not known to be durable is given up, and what is left read again.
  /// Returns also how many seconds that is.
  func rescue(failure: String?) throws(RecordingError) -> (RecordingFile.Outcome, seconds: Double) {
    // Its media is whole and durable, and lies behind a head: nothing is to be given up.
    try file.requireFragments()
    file.releaseReserve()
    let cut = try file.cutToDurable()
    // Whatever becomes of what follows: who finishes the file one day reads it there. A disk that does not take it has
    // left the file as it was.
    if let note = failure.map(RecordingMetadata.failureNote), let box = RecordingMetadataBox.box(note, crc: Checksum.of)
    {
      try? file.append(box)
    }
    guard case .cut = cut else { return (try finish(failure: failure), tables.seconds) }
    let salvage = RecordingSalvage(
      file: file, title: stream.description, effort: .inPlace, metadata: metadata(failure))
    guard case .finished(let outcome, let found) = try salvage.run() else { return (.leftFragmented, 0) }
    return (outcome, found.seconds)
  }

  // MARK: What is told

  var progress: RecordingProgress {
    RecordingProgress(
      file: "\(stream)/\(file.name.finished)", bytes: file.length,
      unsyncedBytes: file.length - min(file.length, file.durableLength), seconds: tables.seconds, gaps: gaps)
  }

  var facts: RecordingFacts {
    RecordingFacts(
      stream: stream, name: file.name, startedAt: startedAt, seconds: tables.seconds, bytes: file.length,
      codecs: tables.codecs, gaps: gaps)
  }

  /// The movie that is made of it has no more bytes, where the file system's blocks are of 4 KiB.
  var expectedBytes: UInt64 { file.length + max(file.contentStart, UInt64(tables.headSize) + 8192) }
}
