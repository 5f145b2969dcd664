package import NIOCore

/// Reads the duration of a movie and the codecs of its tracks, and nothing else: a few pages of the file. A value type:
/// it asks for byte ranges, and the caller reads the file.
package struct MovieOutline: Sendable {
  package enum Step: Sendable, Hashable {
    /// The caller reads these bytes of the file and passes them to `receive`.
    case read(offset: UInt64, length: Int)
    case finished
  }

  package private(set) var step = Step.finished
  /// Duration of the whole movie. Nil until its header was read.
  package private(set) var duration: MediaTime?
  /// RFC 6381 codec strings in the order of the tracks, each once per track.
  package private(set) var codecs: [String] = []

  private var walk: BoxWalk
  private var boxesLeft = Self.maximumBoxes

  /// Largest `mvhd` or `stsd` that is read, in bytes.
  private static let maximumLeaf: UInt64 = 64 << 10
  /// Most boxes that are looked at. A movie of a hundred tracks has far fewer outside of its media.
  private static let maximumBoxes = 4096

  package init(fileSize: UInt64) {
    walk = BoxWalk(0..<fileSize, block: BoxWalk.page)
    advance()
  }

  /// Takes the bytes that `step` asked for. Fewer bytes end the reading.
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
    // Nothing after the `moov` is needed.
    case "moov": walk.narrow()
    case "trak", "mdia", "minf", "stbl": walk.enter()
    case "mvhd", "stsd": if box.payloadSize <= Self.maximumLeaf { walk.want() }
    default: break
    }
  }
}
