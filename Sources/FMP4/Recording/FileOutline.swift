package import NIOCore

/// Where the parts of a recording's file lie, by its outermost boxes.
package struct FileOutline: Sendable, Hashable {
  package enum Form: Sendable, Hashable {
    case fragmented
    /// A movie whose one `mdat` takes in all that was recorded.
    case finished
  }

  package let form: Form
  /// What was recorded. Of a file that keeps room in front it begins behind that.
  package let content: Range<UInt64>
  /// What a finished file has between its tables and its media, in a box that players pass over.
  package let annex: Range<UInt64>?

  /// Of a file of `size` bytes; nil for one that weir's recordings do not look like.
  package init?<E: Error>(size: UInt64, _ read: ByteSource<E>) throws(E) {
    var walk = BoxWalk(0..<size)
    var (isMovie, isFragment) = (false, false)
    var free: Range<UInt64>?
    while !isFragment, let box = try walk.box(read) {
      switch box.type {
      case "moov": isMovie = true
      case "moof", "prft": isFragment = true
      case "free": free = box.payload
      case "mdat" where isMovie:
        walk.enter()
        // Behind room that was kept in front the `moov` comes first.
        guard let first = try walk.box(read), ["ftyp", "moov"].contains(first.type) else { return nil }
        (form, content, annex) = (.finished, box.payload, free)
        return
      default: break
      }
    }
    guard isFragment || isMovie && walk.failure == nil else { return nil }
    let room = try MoovReservation.find(size: size, read)
    (form, content, annex) = (.fragmented, min(size, UInt64(room?.length ?? 0))..<size, nil)
  }

  /// The annex alone, as soon as it is found: behind the `moov`, within the first boxes.
  package static func annex<E: Error>(size: UInt64, _ read: ByteSource<E>) throws(E) -> Range<UInt64>? {
    var walk = BoxWalk(0..<size)
    var isMovie = false
    for _ in 0..<maximumBoxes {
      guard let box = try walk.box(read) else { return nil }
      switch box.type {
      case "free" where isMovie: return box.payload
      case "moov": isMovie = true
      case "mdat", "moof": return nil
      default: break
      }
    }
    return nil
  }

  /// Boxes that are looked at where what is wanted stands within the first.
  package static let maximumBoxes = 8

  /// The `moov`, whole; nil where there is none within so many boxes, or it has more than `limit` bytes.
  package static func movie<E: Error>(
    size: UInt64, within boxes: Int = .max, atMost limit: UInt64, _ read: ByteSource<E>
  ) throws(E) -> BoxView? {
    var walk = BoxWalk(0..<size)
    var left = boxes
    while left > 0, let box = try walk.box(read) {
      if box.type == "moov" { return box.size <= limit ? try walk.payload(read) : nil }
      left -= 1
    }
    return nil
  }

  /// Where in a stretch behind the fragments those boxes end that may stand there on their own, as an index does.
  package static func endOfTrailers<E: Error>(
    in stretch: Range<UInt64>, _ read: ByteSource<E>
  ) throws(E) -> UInt64 {
    var walk = BoxWalk(stretch)
    while let box = try walk.box(read), ["mfra", "free", "skip", "uuid"].contains(box.type) {}
    return walk.position
  }

  /// Whether a file begins at `offset`, where `head` stands: with an `ftyp` as programs write it, and a box behind it that
  /// may follow one and lies before `end`.
  package static func begins<E: Error>(
    at offset: UInt64, before end: UInt64, with head: ByteBuffer, _ read: ByteSource<E>
  ) throws(E) -> Bool {
    guard let type = try? BoxHeader(head, in: offset..<max(offset, end)), type.type == "ftyp", type.length == 8,
      (16...largestFileType).contains(type.size), type.size % 4 == 0, type.extent == .stated,
      let brand = head.getBytes(at: head.readerIndex + 8, length: 4), brand.allSatisfy({ (0x20...0x7E).contains($0) })
    else { return false }
    var walk = BoxWalk(type.range.upperBound..<end)
    return try walk.box(read).map { FourCC.outermost.contains($0.type) && $0.extent == .stated } ?? false
  }

  /// An `ftyp` with more brands is none.
  private static let largestFileType: UInt64 = 1024
}
