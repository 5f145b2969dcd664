package import FMP4
package import NIOCore

/// Walks over the fragments of a file or of a part of it, and reads only their headers. A value type: it asks for byte
/// ranges, and the caller reads the file.
package struct FragmentWalker: Sendable {
  package enum Step: Sendable {
    /// The caller reads these bytes of the file and passes them to `receive`.
    case read(offset: UInt64, length: Int)
    /// Tracks of the fragments that follow. `offset` is the file offset of the `moov`, or of the `free` with a changed
    /// one.
    case tracks([TrackDescription], offset: UInt64)
    case fragment(WalkedFragment)
    /// The range is over, or the next box is not complete.
    case finished
  }

  private var walk: BoxWalk
  private var isOver = false
  private var assembler = FragmentAssembler()

  /// Largest box that is read as a whole, in bytes.
  private static let maximumBoxSize: UInt64 = 16 << 20

  /// Walks over a whole file that begins with its `moov`, or over a range of one with the given tracks.
  package init(_ range: Range<UInt64>, tracks: [TrackDescription] = []) {
    walk = BoxWalk(range, block: BoxWalk.page)
    assembler.change(to: tracks)
  }

  /// Takes the bytes that were asked for. Fewer bytes end the walk.
  package mutating func receive(_ bytes: ByteBuffer) {
    walk.receive(bytes)
  }

  package mutating func next() -> Step {
    do throws(BoxError) {
      while !isOver {
        let found: Step?
        switch try walk.next() {
        case .read(let offset, let length): return .read(offset: offset, length: length)
        case .box(let box): found = try head(box)
        case .payload(let box): found = try content(box)
        case .end: return .finished
        }
        if let found { return found }
      }
    } catch {
      isOver = true
    }
    return .finished
  }

  /// Continues at a later box, with the known tracks.
  package mutating func skip(to offset: UInt64) {
    walk.skip(to: offset)
    assembler.forgetPending()
  }

  private mutating func head(_ box: BoxHeader) throws(BoxError) -> Step? {
    switch box.type {
    case "mdat": return try assembler.media(box).map(Step.fragment)
    case "moov", "moof", "prft": try walk.wantWhole(atMost: Self.maximumBoxSize)
    // A parameter change is an init segment in a `free` box.
    case "free": walk.want(ParameterChange.look)
    default: break
    }
    return nil
  }

  private mutating func content(_ box: BoxView) throws(BoxError) -> Step? {
    switch box.type {
    case "moov": return try movie(box, at: box.header.range.lowerBound)
    case "free":
      guard ParameterChange.begins(box) else { return nil }
      if !box.isWhole {
        try walk.wantWhole(atMost: Self.maximumBoxSize)
      } else if let movie = box.first("moov") {
        return try self.movie(movie, at: box.header.range.lowerBound)
      }
    case "prft": assembler.reference(box)
    default: try assembler.head(box)
    }
    return nil
  }

  private mutating func movie(_ box: BoxView, at offset: UInt64) throws(BoxError) -> Step {
    let (tracks, kind) = try MovieReader.read(box)
    guard kind == .fragmented else { throw box.error(.invalid) }
    assembler.change(to: tracks, movie: box)
    return .tracks(tracks, offset: offset)
  }
}
