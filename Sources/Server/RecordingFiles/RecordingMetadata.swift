internal import Base
internal import FMP4
package import NIOCore
internal import Streams

/// Metadata in a finished recording, from which a lost catalogue can be rebuilt: the exact start, the gaps, why it ended before
/// its stream, and whether it was salvaged. It stands at the beginning of the `free` box between `moov` and media, which players
/// skip. Integers are big-endian:
///
/// | offset | bytes | |
/// |---|---|---|
/// | 0 | 8 | `weir-rm1` |
/// | 8 | 1 | 1: salvaged. Outside the checksum: it can be written alone, and a byte is written or not |
/// | 9 | 3 | 0 |
/// | 12 | 4 | bytes from offset 20 on |
/// | 16 | 4 | their CRC-32C |
/// | 20 | 8 | start, in nanoseconds since 1970 |
/// | 28 | 2 | which text tells why it failed, from 1 on; 0: it did not |
/// | 30 | 2, 4 | numbers of texts and of gaps |
/// | 36 | 2 + n each | the texts: length and UTF-8 |
/// | | 18 each | the gaps: seconds of the recording and seconds that are missing (IEEE 754), which text tells why, from 0 on |
/// | | 2 | only where a client gave it a name, or with the next: which text that is, from 1 on; 0: none |
/// | | 2 | only where it declares closed captions: which text says them (`CaptionDeclarations.text`), from 1 on |
package struct RecordingMetadata: Sendable, Hashable {
  /// Wall-clock time of its first video or audio.
  var startedAt: WallTime
  /// In order; at most `maximumGaps`.
  var gaps: [RecordingGap]
  /// Why it ended before its stream; nil if it did not.
  var failure: String?
  /// A killed run left it unfinished, and a later run finished it.
  var isSalvaged: Bool
  /// The name that a client gave to it.
  package var title: String?
  /// Closed captions that its playlists declare, as `CaptionDeclarations` writes them; nil for none.
  package var captions: String?

  /// Further gaps are merged into the last one.
  static let maximumGaps = 4096
  /// Longer texts are cut off at this many bytes.
  package static let maximumTextBytes = 512
  private static let maximumTexts = 256
  /// Upper bound of the metadata's bytes: the largest numbers of texts and gaps.
  static let maximumBytes = headSize + 20 + maximumTexts * (2 + maximumTextBytes) + maximumGaps * gapSize

  /// Upper bound of the bytes for that many gaps, each with a reason of its own.
  package static func maximumBytes(gaps: Int) -> Int {
    min(maximumBytes, headSize + 20 + (gaps + 3) * (2 + maximumTextBytes + gapSize))
  }

  private static let magic: StaticString = "weir-rm1"
  /// Bytes before the part that the checksum covers.
  package static let headSize = 20
  /// Offset of the byte that says whether the recording was salvaged.
  static let salvagedOffset = 8
  private static let gapSize = 18

  init(
    startedAt: WallTime, gaps: [RecordingGap] = [], failure: String? = nil, isSalvaged: Bool = false,
    title: String? = nil, captions: String? = nil
  ) {
    self.startedAt = startedAt
    self.gaps = Self.bounded(gaps)
    self.failure = failure
    self.isSalvaged = isSalvaged
    self.title = title
    self.captions = captions
  }

  private static func bounded(_ gaps: [RecordingGap]) -> [RecordingGap] {
    guard gaps.count > maximumGaps else { return gaps }
    let rest = gaps[(maximumGaps - 1)...]
    let seconds = rest.reduce(0) { $0 + $1.seconds }
    return gaps[..<(maximumGaps - 1)]
      + [RecordingGap(at: rest.first?.at ?? 0, seconds: seconds, reason: "\(rest.count) more gaps")]
  }

  // MARK: As bytes

  package var stored: ByteBuffer {
    var texts: [String] = []
    let name = title.map { Self.place(of: $0, in: &texts) + 1 }
    let captioned = captions.map { Self.place(of: $0, in: &texts) + 1 }
    let why = failure.map { Self.place(of: $0, in: &texts) + 1 } ?? 0
    let reasons = gaps.map { Self.place(of: $0.reason, in: &texts) }
    var rest = ByteBuffer()
    rest.writeInteger(startedAt.nanoseconds)
    rest.writeInteger(UInt16(clamping: why))
    rest.writeInteger(UInt16(clamping: texts.count))
    rest.writeInteger(UInt32(clamping: gaps.count))
    for text in texts {
      let bytes = text.utf8.prefix(Self.maximumTextBytes)
      rest.writeInteger(UInt16(clamping: bytes.count))
      rest.writeBytes(bytes)
    }
    for (gap, reason) in zip(gaps, reasons) {
      rest.writeInteger(gap.at.bitPattern)
      rest.writeInteger(gap.seconds.bitPattern)
      rest.writeInteger(UInt16(clamping: reason))
    }
    if name != nil || captioned != nil { rest.writeInteger(UInt16(clamping: name ?? 0)) }
    if let captioned { rest.writeInteger(UInt16(clamping: captioned)) }
    var bytes = ByteBuffer()
    bytes.writeStaticString(Self.magic)
    bytes.writeInteger(UInt8(isSalvaged ? 1 : 0))
    bytes.writeRepeatingByte(0, count: 3)
    bytes.writeInteger(UInt32(clamping: rest.readableBytes))
    bytes.writeInteger(Checksum.of(rest))
    bytes.writeImmutableBuffer(rest)
    return bytes
  }

  /// Equal texts are stored once, since a slow disk repeats its reason. Beyond the largest number, the last text stands for all
  /// others.
  private static func place(of text: String, in texts: inout [String]) -> Int {
    if let known = texts.firstIndex(of: text) { return known }
    guard texts.count < maximumTexts else { return maximumTexts - 1 }
    texts.append(text)
    return texts.count - 1
  }

  /// Total bytes of the metadata that begins with these bytes; nil if they begin none.
  package static func size(_ head: ByteBuffer) -> Int? {
    guard head.getString(at: head.readerIndex, length: 8) == "\(magic)",
      let length = head.getInteger(at: head.readerIndex + 12, as: UInt32.self), length <= maximumBytes - headSize
    else { return nil }
    return headSize + Int(length)
  }

  /// Reads what `stored` wrote; nil if anything does not fit.
  package init?(stored bytes: ByteBuffer) {
    guard let size = Self.size(bytes), let salvaged = bytes.getInteger(at: bytes.readerIndex + 8, as: UInt8.self),
      let checksum = bytes.getInteger(at: bytes.readerIndex + 16, as: UInt32.self),
      var rest = bytes.getSlice(at: bytes.readerIndex + Self.headSize, length: size - Self.headSize),
      Checksum.of(rest) == checksum, let startedAt = rest.readInteger(as: Int64.self),
      let why = rest.readInteger(as: UInt16.self), let textCount = rest.readInteger(as: UInt16.self),
      let gapCount = rest.readInteger(as: UInt32.self), textCount <= Self.maximumTexts, gapCount <= Self.maximumGaps
    else { return nil }
    var texts: [String] = []
    for _ in 0..<textCount {
      guard let length = rest.readInteger(as: UInt16.self), length <= Self.maximumTextBytes,
        let text = rest.readBytes(length: Int(length))
      else { return nil }
      texts.append(String(decoding: text, as: UTF8.self))
    }
    var gaps: [RecordingGap] = []
    for _ in 0..<gapCount {
      guard let at = rest.readInteger(as: UInt64.self), let seconds = rest.readInteger(as: UInt64.self),
        let reason = rest.readInteger(as: UInt16.self), Int(reason) < texts.count
      else { return nil }
      gaps.append(
        RecordingGap(at: Double(bitPattern: at), seconds: Double(bitPattern: seconds), reason: texts[Int(reason)]))
    }
    let named = Int(rest.readInteger(as: UInt16.self) ?? 0)
    let captioned = Int(rest.readInteger(as: UInt16.self) ?? 0)
    guard Int(why) <= texts.count, max(named, captioned) <= texts.count,
      gaps.allSatisfy({ $0.at.isFinite && $0.seconds.isFinite })
    else { return nil }
    self.init(
      startedAt: WallTime(nanoseconds: startedAt), gaps: gaps, failure: why > 0 ? texts[Int(why) - 1] : nil,
      isSalvaged: salvaged == 1, title: named > 0 ? texts[named - 1] : nil,
      captions: captioned > 0 ? texts[captioned - 1] : nil)
  }
}

extension RecordingMetadata {
  /// Why a recording ended before its stream, as its fragmented file stores it (`RecordingMetadataBox`): `end1` and the reason in
  /// UTF-8.
  package static func failureNote(_ reason: String) -> ByteBuffer {
    var bytes = ByteBuffer(staticString: failureKind)
    bytes.writeBytes(reason.utf8.prefix(maximumTextBytes))
    return bytes
  }

  /// Nil if the note is of another kind.
  static func failure(note bytes: ByteBuffer) -> String? {
    var bytes = bytes
    guard bytes.readString(length: 4) == "\(failureKind)" else { return nil }
    return String(decoding: bytes.readableBytesView, as: UTF8.self)
  }

  private static let failureKind: StaticString = "end1"

  /// The metadata of a recorder's facts.
  package init(_ facts: RecordingFacts) {
    self.init(
      startedAt: facts.startedAt, gaps: facts.gaps, failure: facts.failure, title: facts.title,
      captions: facts.captions)
  }
}

extension RecordingGap {
  /// As a fragmented file stores it (`RecordingMetadataBox`): `gap1`, `at` and `seconds` (IEEE 754), the reason in UTF-8.
  package var note: ByteBuffer {
    var bytes = ByteBuffer(staticString: Self.noteKind)
    bytes.writeInteger(at.bitPattern)
    bytes.writeInteger(seconds.bitPattern)
    bytes.writeBytes(reason.utf8.prefix(RecordingMetadata.maximumTextBytes))
    return bytes
  }

  /// Nil if the note is of another kind.
  init?(note bytes: ByteBuffer) {
    var bytes = bytes
    guard bytes.readString(length: 4) == "\(Self.noteKind)",
      let at = bytes.readInteger(as: UInt64.self).map(Double.init(bitPattern:)), at.isFinite,
      let seconds = bytes.readInteger(as: UInt64.self).map(Double.init(bitPattern:)), seconds.isFinite
    else { return nil }
    self.init(at: at, seconds: seconds, reason: String(decoding: bytes.readableBytesView, as: UTF8.self))
  }

  private static let noteKind: StaticString = "gap1"
}

extension RecordingTitle {
  /// As a fragmented file stores it (`RecordingMetadataBox`): `nam1` and the name in UTF-8.
  package var note: ByteBuffer {
    var bytes = ByteBuffer(staticString: Self.noteKind)
    bytes.writeString(description)
    return bytes
  }

  /// Nil if the note is of another kind, or is no name.
  init?(note bytes: ByteBuffer) {
    var bytes = bytes
    guard bytes.readString(length: 4) == "\(Self.noteKind)",
      let title = try? RecordingTitle(String(decoding: bytes.readableBytesView, as: UTF8.self))
    else { return nil }
    self = title
  }

  private static let noteKind: StaticString = "nam1"
}

extension CaptionDeclarations {
  /// As a fragmented file stores it (`RecordingMetadataBox`): `cap1` and the declarations. A later one replaces it.
  package static func note(_ text: String) -> ByteBuffer {
    var bytes = ByteBuffer(staticString: noteKind)
    bytes.writeString(text)
    return bytes
  }

  /// The text of a note; nil if the note is of another kind.
  static func text(note bytes: ByteBuffer) -> String? {
    var bytes = bytes
    guard bytes.readString(length: 4) == "\(noteKind)" else { return nil }
    return String(decoding: bytes.readableBytesView.prefix(RecordingMetadata.maximumTextBytes), as: UTF8.self)
  }

  private static let noteKind: StaticString = "cap1"
}
