internal import FMP4
internal import NIOCore

/// Cuts a byte stream of H.264 or HEVC with start codes (Annex B) into access units. Delimiters, parameter sets and
/// messages begin one, and so does the first slice of a frame (ITU-T H.264 §7.4.1.2.3, H.265 §7.4.2.4.4). PES packets
/// need not begin with one: an access unit may span several packets, and a packet may hold several access units.
struct AccessUnitFinder {
  /// An access unit with its start codes.
  struct Unit {
    var bytes: ByteBuffer
    var times: PESReader.Times
    /// Bytes of it are missing.
    var isDamaged: Bool
  }

  private static let codeBytes = 3

  private let codec: any CodecConfiguration.Type
  /// Unfinished bytes, from the start code of the access unit on.
  private var bytes = ByteBuffer()
  /// Bytes that are searched already.
  private var searched = 0
  private var hasSlice = false
  private var isDamaged = false
  private var isWithinUnit = false
  private var times = PESReader.Times()
  private var marks = PESTimeMarks()
  /// Position of the first byte of `bytes` in the stream.
  private var position = 0

  init(_ coding: CodecID) { codec = coding.type }

  var heldBytes: Int { bytes.readableBytes }

  /// A PES packet begins with the next bytes.
  mutating func begin(_ times: PESReader.Times) { marks.add(times, at: position &+ bytes.readableBytes) }

  /// Bytes are missing from here on.
  mutating func noteLoss() { isDamaged = isDamaged || isWithinUnit }

  /// Drops what is unfinished. True if that was part of an access unit.
  mutating func drop() -> Bool {
    defer {
      position &+= bytes.readableBytes
      bytes = ByteBuffer()
      searched = 0
      (hasSlice, isDamaged, isWithinUnit) = (false, false, false)
      marks.removeAll()
    }
    return isWithinUnit
  }

  /// Takes further bytes. Returns the access units that end before them or in them.
  mutating func receive(_ more: ByteBuffer) -> [Unit] {
    bytes.writeImmutableBuffer(more)
    var found: [Unit] = []
    while let code = nextStartCode() {
      guard let role = codec.role(ofUnitAt: code &+ Self.codeBytes, in: bytes) else {
        // The bytes behind the start code have not come.
        searched = code
        return found
      }
      searched = code &+ Self.codeBytes
      if !isWithinUnit || hasSlice && (role == .first || role == .leading) {
        if let unit = cut(at: code) { found.append(unit) }
        isWithinUnit = true
        times = marks.take(at: position)
      }
      // Without its first slice the access unit is incomplete.
      if role == .slice, !hasSlice { isDamaged = true }
      if role == .first || role == .slice { hasSlice = true }
    }
    return found
  }

  /// The last access unit, at the end of the stream.
  mutating func finish() -> Unit? {
    defer { _ = drop() }
    return cut(at: bytes.readableBytes)
  }

  /// Offset of the next start code of three bytes. Nil if there is none among the bytes that have come.
  private mutating func nextStartCode() -> Int? {
    let code = Self.startCode(in: bytes, from: searched)
    // The last two bytes may begin one.
    if code == nil { searched = max(searched, bytes.readableBytes &- 2) }
    return code
  }

  private static func startCode(in buffer: ByteBuffer, from start: Int) -> Int? {
    let bytes = buffer.readableBytesUInt8Span
    var third = start &+ 2
    while third < bytes.count {
      switch bytes[third] {
      case 0: third &+= 1
      case 1:
        if bytes[third &- 1] == 0, bytes[third &- 2] == 0 { return third &- 2 }
        third &+= 3
      default: third &+= 3
      }
    }
    return nil
  }

  /// Ends the access unit before an offset. The bytes behind it become the beginning. Nil if there was no frame.
  private mutating func cut(at end: Int) -> Unit? {
    defer { (hasSlice, isDamaged, isWithinUnit) = (false, false, false) }
    guard let part = bytes.readSlice(length: end) else { return nil }
    // A new buffer, so that the access unit shares its bytes with nothing that grows.
    if end > 0 { bytes = ByteBuffer(buffer: bytes) }
    position &+= end
    searched &-= end
    return hasSlice ? Unit(bytes: part, times: times, isDamaged: isDamaged) : nil
  }
}
