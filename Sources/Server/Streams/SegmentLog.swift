/// The segments of a window, oldest first, in pieces. Renderers keep copies of a window while the publisher continues. A
/// change then costs a copy of one piece and of the list of pieces, whatever the length of the window.
package struct SegmentLog: RandomAccessCollection, MutableCollection, Sendable {
  /// Segments of a full piece.
  private static let length = 128

  /// All pieces are full, except for removed segments in the first and free places in the last.
  private var pieces: [[LiveSegment]] = []
  /// Segments that were removed from the first piece.
  private var gone = 0
  package private(set) var endIndex = 0
  package var startIndex: Int { 0 }

  init() {}

  init(_ segments: some Sequence<LiveSegment>) {
    for segment in segments { append(segment) }
  }

  package subscript(index: Int) -> LiveSegment {
    get {
      let (piece, offset) = place(index)
      return pieces[piece][offset]
    }
    _modify {
      let (piece, offset) = place(index)
      yield &pieces[piece][offset]
    }
  }

  private func place(_ index: Int) -> (piece: Int, offset: Int) {
    let (piece, offset) = (index + gone).quotientAndRemainder(dividingBy: Self.length)
    return (piece, piece == 0 ? offset - gone : offset)
  }

  mutating func append(_ segment: LiveSegment) {
    let piece = place(endIndex).piece
    if piece == pieces.count { pieces.append([segment]) } else { pieces[piece].append(segment) }
    endIndex += 1
  }

  mutating func removeFirst(_ count: Int) {
    endIndex -= count
    gone += count
    while gone >= Self.length {
      pieces.removeFirst()
      gone -= Self.length
    }
    guard let first = pieces.first else { return }
    pieces[0].removeFirst(first.count - Swift.min(endIndex, Self.length - gone))
  }
}
