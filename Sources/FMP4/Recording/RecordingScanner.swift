package import FMP4
package import NIOCore

/// Reads a recording that was left fragmented and rebuilds its tables from every complete fragment. A value type: it
/// asks for byte ranges, and the caller reads the file. In sealed recordings, it has checksums compared for the bytes
/// that were not known to be durable at the last seal.
package struct RecordingScanner: Sendable {
  package enum Step: Sendable, Hashable {
    /// The caller reads these bytes of the file and passes them to `receive`.
    case read(offset: UInt64, length: Int)
    /// The caller compares the checksum of these bytes of the file and calls `compared`.
    case compare(offset: UInt64, length: Int, checksum: UInt32)
    case finished
  }

  /// Kind of the file.
  package enum Content: Sendable {
    /// Not a recording: no movie, or an unreadable one, and the reason.
    case unknown(BoxError)
    /// A movie with complete tables.
    case finished
    /// A movie with samples of its own and with fragments after it. Reading only the fragments would lose the first
    /// samples.
    case mixed
    /// Fragments. The first `length` bytes of the file are complete.
    case fragmented(MovieTables, length: UInt64)
  }

  /// Which sealed fragments are compared with their checksums.
  package enum Comparison: Sendable {
    /// Fragments that a power failure may have damaged. The usable file ends before the first that differs.
    case uncertain
    /// Every fragment once its headers are read, also those after one that differs.
    case all
  }

  /// A complete part of the file.
  package enum Found: Sendable {
    /// Tracks of the fragments that follow. `offset` is the file offset of the `moov`, or of the `free` with a changed
    /// one.
    case tracks([TrackDescription], offset: UInt64)
    case fragment(WalkedFragment)
  }

  package private(set) var step = Step.finished
  package private(set) var content = Content.unknown(BoxError(.missing("moov"), [], at: 0))

  /// Notes of a sealed recording with their file offsets, including notes of incomplete parts.
  package private(set) var notes: [(offset: UInt64, content: ByteBuffer)] = []

  /// Results of the comparisons so far.
  package struct ComparedCounts: Sendable, Hashable {
    package var compared = 0
    package var different = 0
    /// File offset of the first fragment that differs.
    package var firstDifferent: UInt64?
  }

  package private(set) var compared = ComparedCounts()

  private let comparison: Comparison
  private let crc: (@Sendable (ByteBuffer) -> UInt32)?
  private var walk: BoxWalk
  /// All boxes are read. Only uncertain pieces remain to be compared.
  private var isRead = false
  /// Type of the file's first box, and offset of its first media.
  private var firstType: FourCC?
  private var mediaStart: UInt64?
  /// End of a `moov` that is too large to read as a whole, and the number of boxes seen in it.
  private var longMovie: (end: UInt64, children: Int)?
  private var tables: MovieTables?
  private var wholeLength: UInt64 = 0
  private var assembler = FragmentAssembler()
  private var found: [Found] = []
  /// The newest seal, and the start of the bytes it seals, until they are known to be complete.
  private var seal: (seal: RecordingSeal, start: UInt64)?
  private var sealing = Sealing.unknown
  /// Pieces complete by their boxes but not yet compared; oldest first.
  private var uncertain = CircularBuffer<Piece>()

  /// Whether the file's fragments are sealed. Either all are or none.
  private enum Sealing {
    case unknown
    case sealed
    case unsealed
  }

  /// A fragment or a parameter change.
  private struct Piece {
    var found: Found?
    var start: UInt64
    var end: UInt64
    var checksum: UInt32 = 0
    /// Bytes of the notes right after it.
    var notes: UInt64 = 0

    /// End of the usable file if this is its last complete piece.
    var wholeEnd: UInt64 { end &+ notes }

    init(found: Found?, _ box: BoxHeader) {
      self.found = found
      (start, end) = (box.range.lowerBound, box.range.upperBound)
    }
  }

  /// Largest box that is read as a whole, in bytes.
  private static let maximumBoxSize: UInt64 = 16 << 20
  /// A `prft` of another size is ignored.
  private static let referenceSize = UInt64(ProducerReferenceTime.size)
  /// Most boxes within a `moov`; no real movie has so many.
  private static let maximumChildren = 1024

  /// `crc` computes the CRC-32C of bytes. Without it seals are ignored.
  package init(
    fileSize: UInt64, comparing comparison: Comparison = .uncertain, crc: (@Sendable (ByteBuffer) -> UInt32)? = nil
  ) {
    self.comparison = comparison
    self.crc = crc
    walk = BoxWalk(0..<fileSize, block: BoxWalk.page)
    advance()
  }

  /// Takes the bytes that `step` asked for. Fewer bytes end the scan.
  package mutating func receive(_ bytes: ByteBuffer) {
    walk.receive(bytes)
    advance()
  }

  /// Parts found since the last call, in order. Call it regularly: they are kept until then.
  package mutating func takeFound() -> [Found] {
    defer { found.removeAll(keepingCapacity: true) }
    return found
  }

  private mutating func advance() {
    do throws(BoxError) {
      while !isRead {
        if case .all = comparison, let next = uncertain.first { return compare(next) }
        switch try walk.next() {
        case .read(let offset, let length): return step = .read(offset: offset, length: length)
        case .box(let box) where longMovie != nil: try movieChild(box)
        case .box(let box): try header(box)
        case .payload(let box): try payload(of: box)
        case .end: try end()
        }
      }
    } catch {
      isRead = true
      if tables == nil { content = .unknown(reason(error)) }
    }
    if tables != nil, let next = uncertain.first { return compare(next) }
    step = .finished
    if let tables { content = .fragmented(tables, length: wholeLength) }
  }

  private mutating func compare(_ piece: Piece) {
    step = .compare(offset: piece.start, length: Int(clamping: piece.end &- piece.start), checksum: piece.checksum)
  }

  /// Handles the end of the boxes.
  private mutating func end() throws(BoxError) {
    isRead = true
    guard tables == nil else { return }
    guard let (end, children) = longMovie else { throw BoxError(.missing("moov"), [], at: walk.position) }
    guard walk.position == end, children > 0 else { throw BoxError(.invalid, ["moov"], at: walk.position) }
    // A movie with fragments has an `mvex` among these boxes. So these tables are complete.
    content = .finished
  }

  /// The error to report when the file is unusable, with its place.
  private func reason(_ error: BoxError) -> BoxError {
    guard let firstType = firstType ?? error.path.first, FourCC.outermost.contains(firstType) else {
      return error.code == .blank ? error : BoxError(.foreign, [], at: 0)
    }
    let start = mediaStart ?? (error.path == ["mdat"] ? error.offset : nil)
    guard let start, error.path.first != "moov" else { return error }
    return BoxError(.unfinished, ["mdat"], at: start)
  }

  private mutating func header(_ box: BoxHeader) throws(BoxError) {
    firstType = firstType ?? box.type
    switch box.type {
    case "mdat":
      mediaStart = mediaStart ?? box.range.lowerBound
      let walked = try assembler.media(box)
      if walked == nil { try requireEnd(of: box) }
      try add(Piece(found: walked.map(Found.fragment), box))
    case "moov" where box.size > Self.maximumBoxSize && tables == nil:
      longMovie = (box.range.upperBound, 0)
      walk.narrow()
    case "moov", "moof": try walk.wantWhole(atMost: Self.maximumBoxSize)
    // A `prft` belongs to the next fragment.
    case "prft": if box.size == Self.referenceSize { walk.want() }
    case "free": walk.want(ParameterChange.look)
    default: try pass(box)
    }
  }

  private mutating func payload(of box: BoxView) throws(BoxError) {
    switch box.type {
    case "moov":
      guard tables == nil else { throw box.error(.invalid) }
      let (tracks, kind) = try MovieReader.read(box)
      let samples = (try? MovieSummary.samples(box)) ?? 0
      guard kind == .fragmented, samples == 0 else {
        isRead = true
        return content = kind == .finished ? .finished : .mixed
      }
      assembler.change(to: tracks, movie: box)
      begin(tracks, at: box.header.range.lowerBound)
      try pass(box.header)
    case "free": try free(box)
    case "prft": assembler.reference(box)
    default:
      try assembler.head(box)
      try pass(box.header)
    }
  }

  /// Reads a `free` box; for most of them only the first bytes.
  private mutating func free(_ box: BoxView) throws(BoxError) {
    var fields = BoxFields(box)
    let first = try? fields.fourCC()
    let magic = crc == nil ? nil : first
    let isNote = magic == RecordingMetadataBox.magic && box.header.size <= UInt64(RecordingMetadataBox.maximumSize)
    guard isNote || magic == RecordingSeal.magic || ParameterChange.begins(box) else { return try pass(box.header) }
    guard box.isWhole else { return try walk.wantWhole(atMost: Self.maximumBoxSize) }
    if let crc, magic == RecordingSeal.magic {
      let read = try RecordingSeal(box, crc: crc)
      guard seal == nil else { throw box.error(.invalid) }
      // The seal belongs to the boxes after it.
      seal = (read, box.header.range.upperBound)
      sealing = .sealed
      return acceptPieces(before: read.durableLength)
    }
    if let crc, isNote {
      note(box, crc)
    } else if let known = tables {
      let movie = try box.child("moov")
      let (tracks, _) = try MovieReader.read(movie)
      guard known.canContinue(with: tracks) else { throw movie.error(.invalid) }
      assembler.change(to: tracks, movie: movie)
      return try add(Piece(found: .tracks(tracks, offset: box.header.range.lowerBound), box.header))
    }
    try pass(box.header)
  }

  private mutating func note(_ box: BoxView, _ crc: (ByteBuffer) -> UInt32) {
    guard notes.count < Self.maximumNotes, let content = try? RecordingMetadataBox.content(box, crc: crc) else {
      return
    }
    // A copy, so that the buffer around it is not kept.
    notes.append((box.header.range.lowerBound, ByteBuffer(bytes: content.readableBytesView)))
    // A note right after a complete fragment is complete too.
    guard !assembler.hasPendingSamples, seal == nil, let last = uncertain.indices.last,
      uncertain[last].wholeEnd == box.header.range.lowerBound
    else { return }
    uncertain[last].notes &+= box.header.size
  }

  /// Most notes that are kept; more are ignored.
  private static let maximumNotes = 10_000

  private mutating func begin(_ tracks: [TrackDescription], at offset: UInt64) {
    let tables = MovieTables(tracks: tracks)
    self.tables = tables
    found.append(.tracks(tracks, offset: offset))
    content = .fragmented(tables, length: offset)
  }

  /// Handles a box within a `moov` with long tables.
  private mutating func movieChild(_ box: BoxHeader) throws(BoxError) {
    let before = longMovie?.children ?? 0
    // Only sample tables make a `moov` this large.
    if box.type == "mvex" {
      isRead = true
      return content = .mixed
    }
    guard before > 0 || box.type == "mvhd", before < Self.maximumChildren else {
      throw BoxError(.invalid, ["moov", box.type], at: box.range.lowerBound)
    }
    longMovie?.children = before + 1
  }

  // MARK: Pieces

  /// Adds a piece that is complete by its boxes.
  private mutating func add(_ piece: Piece) throws(BoxError) {
    var piece = piece
    if let sealed = seal {
      guard sealed.start &+ UInt64(sealed.seal.length) == piece.end else {
        throw BoxError(.invalid, ["free"], at: sealed.start)
      }
      piece.start = sealed.start
      piece.checksum = sealed.seal.checksum
      uncertain.append(piece)
      seal = nil
    } else {
      guard sealing != .sealed else { throw BoxError(.missing("free"), [], at: piece.start) }
      sealing = .unsealed
      take(piece)
    }
  }

  /// Accepts pieces before `durable` without comparison.
  private mutating func acceptPieces(before durable: UInt64) {
    guard case .uncertain = comparison else { return }
    while let first = uncertain.first, first.end <= durable { take(uncertain.removeFirst()) }
  }

  private mutating func take(_ piece: Piece) {
    // Nothing after a differing fragment counts.
    guard compared.different == 0 else { return }
    switch piece.found {
    case .tracks(let tracks, _): tables?.change(to: tracks)
    case .fragment(let walked):
      for (run, offset) in zip(walked.fragment.runs, walked.mediaOffsets) { tables?.append(run, at: offset) }
    case nil: break
    }
    if let found = piece.found { self.found.append(found) }
    wholeLength = piece.wholeEnd
  }

  /// Handles a box that is not part of a fragment or precedes its media.
  private mutating func pass(_ box: BoxHeader) throws(BoxError) {
    try requireEnd(of: box)
    // Between a moof and its mdat the fragment is incomplete.
    if !assembler.hasPendingSamples, seal == nil, uncertain.isEmpty, compared.different == 0 {
      wholeLength = box.range.upperBound
    }
  }

  /// Throws if the box does not state its end. Such a box cannot be known to be complete, and media bytes may look like
  /// one.
  private func requireEnd(of box: BoxHeader) throws(BoxError) {
    guard box.extent == .stated else { throw BoxError(.invalid, [box.type], at: box.range.lowerBound) }
  }

  /// Takes the result of the comparison that `step` asked for. Bytes after a differing fragment are cut off.
  package mutating func compared(_ result: ComparisonResult) {
    guard case .compare = step, let piece = uncertain.popFirst() else { return }
    compared.compared += 1
    switch result {
    case .equal: take(piece)
    case .different:
      compared.different += 1
      if compared.firstDifferent == nil { compared.firstDifferent = piece.start }
      if case .uncertain = comparison { uncertain.removeAll() }
    }
    advance()
  }

  package enum ComparisonResult: Sendable {
    case equal
    case different
  }
}
