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
    /// Nothing of ours: no movie, or one that cannot be read.
    case unknown
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

  package private(set) var step: Step
  package private(set) var content = Content.unknown

  /// What the file's notes tell, each with where it stands; of a sealed recording's only. Those of what is not whole, too.
  package private(set) var notes: [(offset: UInt64, content: ByteBuffer)] = []

  /// What became of the comparisons so far.
  package struct Tally: Sendable, Hashable {
    package var compared = 0
    package var different = 0
    /// Where the first that differs begins.
    package var firstDifferent: UInt64?
  }

  package private(set) var tally = Tally()

  private let fileSize: UInt64
  private let comparison: Comparison
  private let crc: (@Sendable (ByteBuffer) -> UInt32)?
  private var position: UInt64 = 0
  private var awaited = Awaited.header
  private var tables: MovieTables?
  private var wholeLength: UInt64 = 0
  private var assembler = FragmentAssembler()
  private var found: [Found] = []
  /// The newest seal, and where what it seals begins, until that is seen to be whole.
  private var seal: (seal: RecordingSeal, start: UInt64)?
  private var sealing = Sealing.unknown
  /// What is whole by its boxes, and not yet by its checksums; oldest first.
  private var uncertain = CircularBuffer<Piece>()
  /// Where reading goes on after the comparison that is under way.
  private var following: Step?

  private enum Awaited {
    case header
    case box(FourCC)
    /// The header of a box within a `moov` that is too large to be read whole, and how many came before it.
    case movieChild(at: UInt64, end: UInt64, before: Int)
  }

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
    var checksum: UInt32
    /// Bytes of the notes that stand right behind it.
    var notes: UInt64 = 0

    /// Where the file ends that has nothing else that is whole.
    var wholeEnd: UInt64 { end &+ notes }
  }

  /// The largest box that is read whole.
  private static let maximumBoxSize: UInt64 = 16 << 20
  /// A box's own header and that of the first box within it.
  private static let headerSize: UInt64 = 16
  /// A `prft` of another size is passed over.
  private static let referenceSize = UInt64(ProducerReferenceTime.size)
  /// Boxes within a `moov`: more than a movie has.
  private static let maximumChildren = 1024

  /// `crc` gives the CRC-32C of bytes; without it seals are passed over.
  package init(
    fileSize: UInt64, comparing comparison: Comparison = .uncertain, crc: (@Sendable (ByteBuffer) -> UInt32)? = nil
  ) {
    self.fileSize = fileSize
    self.comparison = comparison
    self.crc = crc
    step = fileSize < 8 ? .finished : .read(offset: 0, length: Int(min(Self.headerSize, fileSize)))
  }

  /// A parameter change in the middle of a recording: the new init segment in a `free` box, which players pass over.
  package static func parameterChange(_ initSegment: InitSegment) -> ByteBuffer {
    let bytes = Array(initSegment.interleaved.readableBytesView)
    return .boxes(capacity: bytes.count + 8) { $0.box("free") { $0.bytes(bytes) } }
  }

  /// The bytes that `step` asked for; fewer end the scan.
  package mutating func receive(_ bytes: ByteBuffer) {
    guard case .read(_, let length) = step, bytes.readableBytes == length else { return stop() }
    switch awaited {
    case .header: header(bytes)
    case .box(let type): box(type, bytes)
    case .movieChild(let offset, let end, let before): movieChild(bytes, at: offset, end: end, before: before)
    }
  }

  /// What was found since this was called last, in order. To be called now and then: it is kept until then.
  package mutating func takeFound() -> [Found] {
    defer { found.removeAll(keepingCapacity: true) }
    return found
  }

  private mutating func header(_ bytes: ByteBuffer) {
    guard let (type, size, length) = Self.parse(bytes), size <= fileSize &- position else { return stop() }
    switch type {
    case "mdat": media(size, header: length)
    case "moov" where size > Self.maximumBoxSize && tables == nil:
      wantMovieChild(at: position &+ length, end: position &+ size, before: 0)
    case "moov", "moof": want(type, size)
    // It belongs to the fragment that follows.
    case "prft": if size == Self.referenceSize { want(type, size) } else { pass(size) }
    case "free":
      let magic = bytes.getInteger(at: bytes.readerIndex + 8, as: UInt32.self).map(FourCC.init)
      let inner = bytes.getInteger(at: bytes.readerIndex + 12, as: UInt32.self).map(FourCC.init)
      let isSeal = crc != nil && magic == RecordingSeal.magic
      let isNote = crc != nil && magic == RecordingNote.magic && size <= RecordingNote.maximumSize
      if isSeal || isNote || inner == "ftyp" { want(type, size) } else { advance(by: size) }
    default: advance(by: size)
    }
  }

  /// A box's type, its size, and how many bytes of it are its header; nil for none.
  private static func parse(_ bytes: ByteBuffer) -> (type: FourCC, size: UInt64, header: UInt64)? {
    guard let short = bytes.getInteger(at: bytes.readerIndex, as: UInt32.self).map(UInt64.init),
      let type = bytes.getInteger(at: bytes.readerIndex + 4, as: UInt32.self).map(FourCC.init)
    else { return nil }
    // §4.2.2: a size that needs 64 bits follows the type.
    guard short == 1 else { return short >= 8 ? (type, short, 8) : nil }
    guard let long = bytes.getInteger(at: bytes.readerIndex + 8, as: UInt64.self), long >= 16 else { return nil }
    return (type, long, 16)
  }

  private mutating func want(_ type: FourCC, _ size: UInt64) {
    guard size <= Self.maximumBoxSize else { return stop() }
    awaited = .box(type)
    step = .read(offset: position, length: Int(size))
  }

  private mutating func box(_ type: FourCC, _ bytes: ByteBuffer) {
    guard let payload = bytes.getSlice(at: bytes.readerIndex + 8, length: bytes.readableBytes - 8) else {
      return stop()
    }
    switch type {
    case "moov":
      guard tables == nil, let (tracks, kind) = MovieReader.read(payload) else { return stop() }
      if kind == .finished {
        content = .finished
        return stop()
      }
      if (MovieSummary.samples(payload) ?? 0) > 0 {
        content = .mixed
        return stop()
      }
      assembler.change(to: tracks, movie: payload)
      begin(tracks)
    case "free" where crc != nil && payload.getInteger(at: payload.readerIndex) == RecordingSeal.magic.rawValue:
      guard let crc, let read = RecordingSeal.read(bytes, crc: crc), seal == nil else { return stop() }
      seal = (read, position &+ UInt64(bytes.readableBytes))
      sealing = .sealed
      believe(durable: read.durableLength)
      // It belongs to what follows.
      return pass(UInt64(bytes.readableBytes))
    case "free" where crc != nil && payload.getInteger(at: payload.readerIndex) == RecordingNote.magic.rawValue:
      note(bytes)
    case "free":
      // Other programs hide an `ftyp` in one before the `moov`, until the file is closed (hybrid MP4).
      guard let known = tables else { break }
      guard let movie = payload.firstBox("moov"), let (tracks, _) = MovieReader.read(movie),
        known.canContinue(with: tracks)
      else { return stop() }
      assembler.change(to: tracks, movie: movie)
      let end = position &+ UInt64(bytes.readableBytes)
      return add(Piece(found: .tracks(tracks, offset: position), start: position, end: end, checksum: 0))
    case "prft":
      assembler.reference(payload, at: position)
      return pass(UInt64(bytes.readableBytes))
    default:
      guard case .read = assembler.head(payload, at: position) else { return stop() }
    }
    advance(by: UInt64(bytes.readableBytes))
  }

  private mutating func note(_ bytes: ByteBuffer) {
    guard let crc, notes.count < Self.maximumNotes, let content = RecordingNote.read(bytes, crc: crc) else { return }
    // A copy: what was read around it need not be kept.
    notes.append((position, ByteBuffer(bytes: content.readableBytesView)))
    // Behind a fragment that is whole it is whole, too.
    guard !assembler.hasPendingSamples, seal == nil, let last = uncertain.indices.last,
      uncertain[last].wholeEnd == position
    else { return }
    uncertain[last].notes &+= UInt64(bytes.readableBytes)
  }

  /// More are passed over.
  private static let maximumNotes = 10_000

  private mutating func begin(_ tracks: [TrackDescription]) {
    let tables = MovieTables(tracks: tracks)
    self.tables = tables
    found.append(.tracks(tracks, offset: position))
    content = .fragmented(tables, length: position)
  }

  // MARK: A movie with long tables

  private mutating func wantMovieChild(at offset: UInt64, end: UInt64, before: Int) {
    guard offset < end else {
      // Whoever writes fragments says so in one of these boxes: the tables are complete.
      content = .finished
      return stop()
    }
    guard end &- offset >= 8, before < Self.maximumChildren else { return stop() }
    awaited = .movieChild(at: offset, end: end, before: before)
    step = .read(offset: offset, length: Int(min(Self.headerSize, end &- offset)))
  }

  private mutating func movieChild(_ bytes: ByteBuffer, at offset: UInt64, end: UInt64, before: Int) {
    guard let (type, size, _) = Self.parse(bytes), size <= end &- offset else { return stop() }
    // Only tables of samples make one so large.
    if type == "mvex" {
      content = .mixed
      return stop()
    }
    guard before > 0 || type == "mvhd" else { return stop() }
    wantMovieChild(at: offset &+ size, end: end, before: before + 1)
  }

  // MARK: Pieces

  /// An mdat that is whole: its fragment counts, if its runs lie within.
  private mutating func media(_ size: UInt64, header: UInt64) {
    let end = position &+ size
    var found: Found?
    switch assembler.media(position &+ header..<end) {
    case .fragment(let walked): found = .fragment(walked)
    case .stray: break
    case .unfit: return stop()
    }
    add(Piece(found: found, start: position, end: end, checksum: 0))
  }

  /// Whole by its boxes.
  private mutating func add(_ piece: Piece) {
    var piece = piece
    switch (seal, sealing) {
    case (let sealed?, _):
      guard sealed.start &+ UInt64(sealed.seal.length) == piece.end else { return stop() }
      piece.start = sealed.start
      piece.checksum = sealed.seal.checksum
      uncertain.append(piece)
    case (nil, .sealed): return stop()
    case (nil, .unknown), (nil, .unsealed):
      sealing = .unsealed
      take(piece)
    }
    seal = nil
    pass(piece.end &- position)
    guard case .all = comparison, case .read = step, let next = uncertain.first else { return }
    following = step
    step = .compare(offset: next.start, length: Int(clamping: next.end &- next.start), checksum: next.checksum)
  }

  /// What lies before `durable` needs no comparison.
  private mutating func believe(durable: UInt64) {
    guard case .uncertain = comparison else { return }
    while let first = uncertain.first, first.end <= durable { take(uncertain.removeFirst()) }
  }

  private mutating func take(_ piece: Piece) {
    // Nothing counts behind what differs.
    guard tally.different == 0 else { return }
    switch piece.found {
    case .tracks(let tracks, _): tables?.change(to: tracks)
    case .fragment(let walked):
      for (run, offset) in zip(walked.fragment.runs, walked.mediaOffsets) { tables?.append(run, at: offset) }
    case nil: break
    }
    if let found = piece.found { self.found.append(found) }
    wholeLength = piece.wholeEnd
  }

  private mutating func advance(by size: UInt64) {
    // Between a moof and its mdat the fragment is not whole yet.
    if !assembler.hasPendingSamples, seal == nil, uncertain.isEmpty, tally.different == 0 {
      wholeLength = position &+ size
    }
    pass(size)
  }

  private mutating func pass(_ size: UInt64) {
    position &+= size
    awaited = .header
    let left = fileSize &- position
    if left < 8 { return stop() }
    step = .read(offset: position, length: Int(min(Self.headerSize, left)))
  }

  /// There is no more to read; what is uncertain remains to be compared.
  private mutating func stop() {
    if tables != nil, let next = uncertain.first {
      step = .compare(offset: next.start, length: Int(clamping: next.end &- next.start), checksum: next.checksum)
      return
    }
    step = .finished
    if let tables { content = .fragmented(tables, length: wholeLength) }
  }

  /// Whether the bytes that `step` asked to compare have the checksum. What follows those that do not is cut off.
  package mutating func compared(_ result: ComparisonResult) {
    guard case .compare = step, let piece = uncertain.popFirst() else { return }
    tally.compared += 1
    switch result {
    case .equal: take(piece)
    case .different:
      tally.different += 1
      if tally.firstDifferent == nil { tally.firstDifferent = piece.start }
      if case .uncertain = comparison { uncertain.removeAll() }
    }
    guard let following else { return stop() }
    step = following
    self.following = nil
  }

  package enum ComparisonResult: Sendable {
    case equal
    case different
  }
}
