package import NIOCore

/// Reads what a movie says of itself and nothing else: its length and the codecs of its tracks, from some dozens of
/// small reads at its front. A value: it says which bytes it wants next, and is given them; it knows no file.
package struct MovieOutline: Sendable {
  package enum Step: Sendable, Hashable {
    /// `receive` wants these bytes of the file.
    case read(offset: UInt64, length: Int)
    case finished
  }

  package private(set) var step: Step
  /// Of the whole movie; nil until its header was read.
  package private(set) var duration: MediaTime?
  /// RFC 6381, each once, in the order of the tracks.
  package private(set) var codecs: [String] = []

  private let fileSize: UInt64
  private var position: UInt64 = 0
  /// Where `moov` ends: there is nothing to read behind it.
  private var end: UInt64
  private var wanted: (type: FourCC, next: UInt64)?
  private var boxesLeft = Self.maximumBoxes

  /// The largest `mvhd` or `stsd` that is read.
  private static let maximumLeaf: UInt64 = 64 << 10
  /// Boxes that are looked at: far more than a movie of a hundred tracks has above its media.
  private static let maximumBoxes = 4096

  package init(fileSize: UInt64) {
    self.fileSize = fileSize
    end = fileSize
    step = .finished
    next(at: 0)
  }

  /// The bytes that `step` asked for; fewer end the reading.
  package mutating func receive(_ bytes: ByteBuffer) {
    guard case .read(_, let length) = step, bytes.readableBytes == length else { return step = .finished }
    if let (type, next) = wanted {
      wanted = nil
      leaf(type, bytes)
      self.next(at: next)
    } else {
      header(bytes)
    }
  }

  private mutating func next(at offset: UInt64) {
    position = offset
    boxesLeft -= 1
    guard boxesLeft > 0, offset < end, end &- offset >= 8 else { return step = .finished }
    step = .read(offset: offset, length: Int(min(UInt64(BoxHeader.longest), fileSize &- offset)))
  }

  private mutating func header(_ bytes: ByteBuffer) {
    guard let header = BoxHeader(bytes, room: end &- position) else { return step = .finished }
    let following = position &+ header.size
    switch header.type {
    case "moov":
      end = following
      next(at: position &+ header.length)
    case "trak", "mdia", "minf", "stbl": next(at: position &+ header.length)
    case "mvhd", "stsd":
      guard (1...Self.maximumLeaf).contains(header.payloadSize) else { return next(at: following) }
      wanted = (header.type, following)
      step = .read(offset: position &+ header.length, length: Int(header.payloadSize))
    default: next(at: following)
    }
  }

  private mutating func leaf(_ type: FourCC, _ payload: ByteBuffer) {
    guard type == "stsd" else {
      duration = MovieReader.duration(payload)
      return
    }
    var entries = payload
    guard entries.skip(8) else { return }
    for entry in BoxReader(entries) {
      let codec = (try? Codec(sampleEntry: entry))?.codecString ?? entry.type.description
      if !codecs.contains(codec) { codecs.append(codec) }
    }
  }
}
