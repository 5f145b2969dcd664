package import NIOCore

/// Reads what a movie says of itself and nothing else: its length and the codecs of its tracks, from a few pages of it. A value: it says which bytes it wants next, and is given them; it knows no file.
package struct MovieOutline: Sendable {
  package enum Step: Sendable, Hashable {
    /// `receive` wants these bytes of the file.
    case read(offset: UInt64, length: Int)
    case finished
  }

  package private(set) var step = Step.finished
  /// Of the whole movie; nil until its header was read.
  package private(set) var duration: MediaTime?
  /// RFC 6381, in the order of the tracks, of each of them each once.
  package private(set) var codecs: [String] = []

  private var walk: BoxWalk
  private var boxesLeft = Self.maximumBoxes

  /// The largest `mvhd` or `stsd` that is read.
  private static let maximumLeaf: UInt64 = 64 << 10
  /// Boxes that are looked at: far more than a movie of a hundred tracks has above its media.
  private static let maximumBoxes = 4096

  package init(fileSize: UInt64) {
    walk = BoxWalk(0..<fileSize, block: BoxWalk.page)
    advance()
  }

  /// The bytes that `step` asked for; fewer end the reading.
  package mutating func receive(_ bytes: ByteBuffer) {
    walk.receive(bytes)
    advance()
  }

  private mutating func advance() {
    step = .finished
    while boxesLeft > 0, let next = try? walk.next() {
      switch next {
      case .read(let offset, let length): return step = .read(offset: offset, length: length)
      case .box(let box): look(at: box)
      case .payload(let box) where box.type == "mvhd": duration = try? MovieReader.duration(box)
      case .payload(let box):
        let others = codecs.count
        for entry in SampleTableReader.entries(box) {
          let codec = (try? Codec(sampleEntry: entry))?.codecString ?? entry.type.description
          if !codecs[others...].contains(codec) { codecs.append(codec) }
        }
      case .end: return
      }
    }
  }

  private mutating func look(at box: BoxHeader) {
    boxesLeft -= 1
    switch box.type {
    // There is nothing to read behind it.
    case "moov": walk.narrow()
    case "trak", "mdia", "minf", "stbl": walk.enter()
    case "mvhd", "stsd": if box.payloadSize <= Self.maximumLeaf { walk.want() }
    default: break
    }
  }
}
