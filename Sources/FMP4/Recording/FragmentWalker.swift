package import NIOCore

/// Walks over the fragments of a file, or of a stretch of one, and reads nothing but their heads. A value: it says which
/// bytes it wants next, and is given them; it knows no file.
package struct FragmentWalker: Sendable {
  package enum Step: Sendable {
    /// `receive` wants these bytes of the file.
    case read(offset: UInt64, length: Int)
    /// What follows has these tracks; `offset` is where the `moov`, or the `free` with a changed one, lies.
    case tracks([TrackDescription], offset: UInt64)
    case fragment(WalkedFragment)
    /// The stretch is over, or what follows is not whole.
    case finished
  }

  private var walk: BoxWalk
  private var isOver = false
  private var assembler = FragmentAssembler()

  /// The largest box that is read whole.
  private static let maximumBoxSize: UInt64 = 16 << 20

  /// A whole file, whose `moov` comes first, or a stretch of one in which `tracks` lie.
  package init(_ range: Range<UInt64>, tracks: [TrackDescription] = []) {
    walk = BoxWalk(range, block: BoxWalk.page)
    assembler.change(to: tracks)
  }

  /// The bytes that were wanted; fewer end the walk.
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

  /// Goes on at a box further on, with the tracks that are known.
  package mutating func skip(to offset: UInt64) {
    walk.skip(to: offset)
    assembler.forgetPending()
  }

  private mutating func head(_ box: BoxHeader) throws(BoxError) -> Step? {
    switch box.type {
    case "mdat": return try assembler.media(box).map(Step.fragment)
    case "moov", "moof", "prft": try walk.wantWhole(atMost: Self.maximumBoxSize)
    // A parameter change is an init segment in a box that players pass over.
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
