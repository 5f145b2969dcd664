package import NIOCore

/// Reads a recording that was left fragmented and rebuilds its tables: the samples of every fragment that is whole.
/// A value: it says which bytes it wants next, and is given them; it knows no file. Of sealed recordings it has the
/// checksums compared of whatever was not known to be durable when the last seal was written.
package struct RecordingScanner: Sendable {
  package enum Step: Sendable, Hashable {
    /// `receive` wants these bytes of the file.
    case read(offset: UInt64, length: Int)
    /// `compared` wants to know whether these bytes of the file have this checksum.
    case compare(offset: UInt64, length: Int, checksum: UInt32)
    case finished
  }

  /// What the file turned out to be.
  package enum Content: Sendable {
    /// Nothing of ours: no movie, or one that cannot be read, and why.
    case unknown(BoxError)
    /// A movie whose tables are complete already.
    case finished
    /// A movie that tells of samples itself and says that fragments with more follow: to take those alone would lose what
    /// comes before them.
    case mixed
    /// Fragments; `length` bytes of the file, from its beginning, are whole.
    case fragmented(MovieTables, length: UInt64)
  }

  /// Which sealed fragments are compared with their checksums.
  package enum Comparison: Sendable {
    /// Those that a power failure may have torn; the file ends before the first that differs.
    case uncertain
    /// Each as soon as its heads were read, also behind one that differs.
    case all
  }

  /// What lies in the file and is whole.
  package enum Found: Sendable {
    /// What follows has these tracks; `offset` is where the `moov`, or the `free` with a changed one, lies.
    case tracks([TrackDescription], offset: UInt64)
    case fragment(WalkedFragment)
  }

  package private(set) var step = Step.finished
  package private(set) var content = Content.unknown(BoxError(.missing("moov"), [], at: 0))

  /// What the file's notes tell, each with where it stands; of a sealed recording's only. Those of what is not whole, too.
  package private(set) var notes: [(offset: UInt64, content: ByteBuffer)] = []

  /// What became of the comparisons so far.
  package struct ComparedCounts: Sendable, Hashable {
    package var compared = 0
    package var different = 0
    /// Where the first that differs begins.
    package var firstDifferent: UInt64?
  }

  package private(set) var compared = ComparedCounts()

  private let comparison: Comparison
  private let crc: (@Sendable (ByteBuffer) -> UInt32)?
  private var walk: BoxWalk
  /// No more boxes are read; only what is uncertain remains to be compared.
  private var isRead = false
  /// What the file begins with, and where its first media is.
  private var firstType: FourCC?
  private var mediaStart: UInt64?
  /// The end of a `moov` that is too large to be read whole, and how many boxes were seen within it.
  private var longMovie: (end: UInt64, children: Int)?
  private var tables: MovieTables?
  private var wholeLength: UInt64 = 0
  private var assembler = FragmentAssembler()
  private var found: [Found] = []
  /// The newest seal, and where what it seals begins, until that is seen to be whole.
  private var seal: (seal: RecordingSeal, start: UInt64)?
  private var sealing = Sealing.unknown
  /// What is whole by its boxes, and not yet by its checksums; oldest first.
  private var uncertain = CircularBuffer<Piece>()

  /// Whether the file's fragments are sealed: all of them or none.
  private enum Sealing {
    case unknown
    case sealed
    case unsealed
  }

  /// A fragment, or a change of parameters.
  private struct Piece {
    var found: Found?
    var start: UInt64
    var end: UInt64
    var checksum: UInt32 = 0
    /// Bytes of the notes that stand right behind it.
    var notes: UInt64 = 0

    /// Where the file ends that has nothing else that is whole.
    var wholeEnd: UInt64 { end &+ notes }

    init(found: Found?, _ box: BoxHeader) {
      self.found = found
      (start, end) = (box.range.lowerBound, box.range.upperBound)
    }
  }

  /// The largest box that is read whole.
  private static let maximumBoxSize: UInt64 = 16 << 20
  /// A `prft` of another size is passed over.
  private static let referenceSize = UInt64(ProducerReferenceTime.size)
  /// Boxes within a `moov`: more than a movie has.
  private static let maximumChildren = 1024

  /// `crc` gives the CRC-32C of bytes; without it seals are passed over.
  package init(
    fileSize: UInt64, comparing comparison: Comparison = .uncertain, crc: (@Sendable (ByteBuffer) -> UInt32)? = nil
  ) {
    self.comparison = comparison
    self.crc = crc
    walk = BoxWalk(0..<fileSize, block: BoxWalk.page)
    advance()
  }

  /// The bytes that `step` asked for; fewer end the scan.
  package mutating func receive(_ bytes: ByteBuffer) {
    walk.receive(bytes)
    advance()
  }

  /// What was found since this was called last, in order. To be called now and then: it is kept until then.
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

  /// There is no more to read.
  private mutating func end() throws(BoxError) {
    isRead = true
    guard tables == nil else { return }
    guard let (end, children) = longMovie else { throw BoxError(.missing("moov"), [], at: walk.position) }
    guard walk.position == end, children > 0 else { throw BoxError(.invalid, ["moov"], at: walk.position) }
    // Whoever writes fragments says so in one of these boxes: the tables are complete.
    content = .finished
  }

  /// Why nothing can be made of the file, where that was met in it.
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
    // It belongs to the fragment that follows.
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

  /// A `free`: of most only the first bytes are looked at.
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
      // It belongs to what follows.
      seal = (read, box.header.range.upperBound)
      sealing = .sealed
      return believe(durable: read.durableLength)
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
    // A copy: what was read around it need not be kept.
    notes.append((box.header.range.lowerBound, ByteBuffer(bytes: content.readableBytesView)))
    // Behind a fragment that is whole it is whole, too.
    guard !assembler.hasPendingSamples, seal == nil, let last = uncertain.indices.last,
      uncertain[last].wholeEnd == box.header.range.lowerBound
    else { return }
    uncertain[last].notes &+= box.header.size
  }

  /// More are passed over.
  private static let maximumNotes = 10_000

  private mutating func begin(_ tracks: [TrackDescription], at offset: UInt64) {
    let tables = MovieTables(tracks: tracks)
    self.tables = tables
    found.append(.tracks(tracks, offset: offset))
    content = .fragmented(tables, length: offset)
  }

  /// A box within a movie with long tables.
  private mutating func movieChild(_ box: BoxHeader) throws(BoxError) {
    let before = longMovie?.children ?? 0
    // Only tables of samples make one so large.
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

  /// Whole by its boxes.
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

  /// What lies before `durable` needs no comparison.
  private mutating func believe(durable: UInt64) {
    guard case .uncertain = comparison else { return }
    while let first = uncertain.first, first.end <= durable { take(uncertain.removeFirst()) }
  }

  private mutating func take(_ piece: Piece) {
    // Nothing counts behind what differs.
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

  /// A box that is no part of a fragment, or comes before its media.
  private mutating func pass(_ box: BoxHeader) throws(BoxError) {
    try requireEnd(of: box)
    // Between a moof and its mdat the fragment is not whole yet.
    if !assembler.hasPendingSamples, seal == nil, uncertain.isEmpty, compared.different == 0 {
      wholeLength = box.range.upperBound
    }
  }

  /// Nobody knows whether a box is whole that does not say where it ends; bytes of media may look like one.
  private func requireEnd(of box: BoxHeader) throws(BoxError) {
    guard box.extent == .stated else { throw BoxError(.invalid, [box.type], at: box.range.lowerBound) }
  }

  /// Whether the bytes that `step` asked to compare have the checksum. What follows those that do not is cut off.
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
