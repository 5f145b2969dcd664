package import FMP4
package import NIOCore

/// Byte ranges of the parts of a recording's file, found by its outermost boxes.
package struct FileOutline: Sendable, Hashable {
  package enum Form: Sendable, Hashable {
    case fragmented
    /// A movie with one `mdat` that encloses everything recorded.
    case finished
  }

  package let form: Form
  /// The recorded bytes. They begin after the reserved space, if the file has any.
  package let content: Range<UInt64>
  /// Bytes between tables and media of a finished file, in a box that players skip.
  package let annex: Range<UInt64>?

  /// Reads the outline of a file of `size` bytes. Nil if it does not look like a recording of weir.
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
        // After reserved space, the enclosed content begins with `moov` instead of `ftyp`.
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

  /// Finds only the annex: after the `moov`, within the first boxes.
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

  /// Most boxes that are looked at for things within the first boxes.
  package static let maximumBoxes = 8

  /// The whole `moov`. Nil if it is not within the first `boxes` boxes, or has more than `limit` bytes.
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

  /// End of the boxes that may follow the fragments on their own, such as an index.
  package static func endOfTrailers<E: Error>(
    in stretch: Range<UInt64>, _ read: ByteSource<E>
  ) throws(E) -> UInt64 {
    var walk = BoxWalk(stretch)
    while let box = try walk.box(read), ["mfra", "free", "skip", "uuid"].contains(box.type) {}
    return walk.position
  }

  /// Whether a file begins at `offset`; `head` holds the bytes there. It needs a plausible `ftyp`, then a box that may
  /// follow one and begins before `end`.
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

  /// Largest plausible `ftyp`, in bytes. A longer one is not taken for an `ftyp`.
  private static let largestFileType: UInt64 = 1024
}
