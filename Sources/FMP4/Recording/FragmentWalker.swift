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

  /// Where the stretch ends.
  private let end: UInt64
  /// Where the next box begins.
  package private(set) var position: UInt64
  private var buffer = ByteBuffer()
  private var bufferStart: UInt64 = 0
  private var wanted: (offset: UInt64, length: Int)?
  private var isOver = false

  private var assembler = FragmentAssembler()

  /// Bytes read at once: the heads of a fragment, mostly.
  private static let readSize: UInt64 = 4096
  /// The largest box that is read whole.
  private static let maximumBoxSize: UInt64 = 16 << 20

  /// A whole file, whose `moov` comes first, or a stretch of one in which `tracks` lie.
  package init(_ range: Range<UInt64>, tracks: [TrackDescription] = []) {
    position = range.lowerBound
    end = range.upperBound
    assembler.change(to: tracks)
  }

  /// The bytes that were wanted; fewer end the walk.
  package mutating func receive(_ bytes: ByteBuffer) {
    guard let (offset, length) = wanted, bytes.readableBytes == length else { return isOver = true }
    wanted = nil
    buffer = bytes
    bufferStart = offset
  }

  package mutating func next() -> Step {
    while !isOver {
      if let wanted { return .read(offset: wanted.offset, length: wanted.length) }
      guard let header = header() else { continue }
      if let step = take(header) { return step }
    }
    return .finished
  }

  /// Goes on at a box further on, with the tracks that are known.
  package mutating func skip(to offset: UInt64) {
    position = max(position, offset)
    wanted = nil
    assembler.forgetPending()
  }

  /// The next box's size and type; nil when bytes are wanted for it, or nothing follows.
  private mutating func header() -> BoxHeader? {
    guard position < end, end - position >= 8 else {
      isOver = true
      return nil
    }
    guard let head = bytes(min(UInt64(BoxHeader.longest), end - position)) else { return nil }
    guard let header = BoxHeader(head, room: end - position) else {
      isOver = true
      return nil
    }
    return header
  }

  /// Bytes of the file from `position` on; nil when they have to be read first.
  private mutating func bytes(_ count: UInt64) -> ByteBuffer? {
    if position >= bufferStart, position - bufferStart <= UInt64(buffer.readableBytes),
      UInt64(buffer.readableBytes) - (position - bufferStart) >= count
    {
      return buffer.getSlice(at: buffer.readerIndex + Int(position - bufferStart), length: Int(count))
    }
    // Behind a large box its successor's header is wanted next.
    let length = min(max(Self.readSize, count + 64), end - position)
    wanted = (position, Int(length))
    return nil
  }

  /// Nil when there is nothing to tell yet.
  private mutating func take(_ header: BoxHeader) -> Step? {
    switch header.type {
    case "mdat": return media(header)
    case "moov", "moof", "prft": break
    case "free":
      // A parameter change is an init segment in a box that players pass over.
      guard header.size >= 24 else { return pass(header) }
      guard let start = bytes(16) else { return nil }
      guard start.getInteger(at: start.readerIndex + 12, as: UInt32.self).map(FourCC.init) == "ftyp" else {
        return pass(header)
      }
    default: return pass(header)
    }
    guard header.size <= Self.maximumBoxSize else {
      isOver = true
      return nil
    }
    guard let box = bytes(header.size),
      let payload = box.getSlice(
        at: box.readerIndex + Int(header.length), length: box.readableBytes - Int(header.length))
    else { return nil }
    let start = position
    position += header.size
    switch header.type {
    case "moov": return movie(payload, at: start)
    case "free": return payload.firstBox("moov").flatMap { movie($0, at: start) }
    case "prft":
      assembler.reference(payload, at: start)
      return nil
    default:
      if case .unreadable = assembler.head(payload, at: start) { isOver = true }
      return nil
    }
  }

  private mutating func pass(_ header: BoxHeader) -> Step? {
    position += header.size
    return nil
  }

  private mutating func movie(_ payload: ByteBuffer, at offset: UInt64) -> Step? {
    guard let (tracks, kind) = MovieReader.read(payload), kind == .fragmented else {
      isOver = true
      return nil
    }
    assembler.change(to: tracks, movie: payload)
    return .tracks(tracks, offset: offset)
  }

  /// An mdat that is whole: its fragment counts, if its runs lie within.
  private mutating func media(_ header: BoxHeader) -> Step? {
    let body = position + header.length
    position += header.size
    switch assembler.media(body..<position) {
    case .fragment(let walked): return .fragment(walked)
    case .stray: return nil
    case .unfit:
      isOver = true
      return nil
    }
  }
}
