internal import NIOCore

/// Reads the PES packets of one PID (ISO/IEC 13818-1 §2.4.3.6): a header with times, then bytes of the elementary stream.
/// The bytes are handed on as they come, so a packet of any length takes no memory here.
struct PESReader {
  /// Counter values of 33 bits at 90 kHz.
  struct Times: Hashable {
    /// Nil if the header has none.
    var presentation: UInt64?
    var decode: UInt64?
  }

  /// What a payload brought.
  struct Step {
    /// A PES packet has begun. Its bytes follow in this step or in later ones.
    var begins: Times?
    var bytes: ByteBuffer?
  }

  private enum State {
    /// Until the next beginning of a packet.
    case waiting
    case header(ByteBuffer)
    /// `left` is nil if the length is unknown.
    case body(left: Int?)
  }

  /// Whether a packet's own length counts. That of video is ignored: it is mostly 0, and sometimes wrong.
  let keepsLength: Bool
  /// Packets whose header is unreadable.
  private(set) var malformed = 0
  /// Packets that are scrambled by their own header.
  private(set) var scrambled = 0
  private var state = State.waiting

  private static let startCode: UInt32 = 1
  private static let fixedBytes = 6

  init(keepsLength: Bool) { self.keepsLength = keepsLength }

  /// A packet is missing: waits for the next beginning.
  mutating func drop() { state = .waiting }

  mutating func receive(_ payload: ByteBuffer, isUnitStart: Bool) -> Step {
    if isUnitStart {
      if case .header = state { malformed &+= 1 }
      state = .header(ByteBuffer())
    }
    switch state {
    case .waiting: return Step()
    case .header(var header):
      state = .waiting
      header.writeImmutableBuffer(payload)
      return begin(header)
    case .body(nil): return Step(bytes: payload)
    case .body(let left?):
      guard left > 0 else { return Step() }
      var rest = payload
      let part = rest.readSlice(length: min(left, rest.readableBytes))
      state = .body(left: left &- (part?.readableBytes ?? 0))
      return Step(bytes: part)
    }
  }

  /// Reads a header, as far as it has come. At most the payloads of two packets are kept.
  private mutating func begin(_ bytes: ByteBuffer) -> Step {
    var rest = bytes
    guard let first: UInt32 = rest.readInteger(), let stated: UInt16 = rest.readInteger() else {
      return wait(bytes)
    }
    guard first >> 8 == Self.startCode else { return refuse() }
    // Streams of tables and padding have no further header (table 2-21).
    let streamID = UInt8(truncatingIfNeeded: first)
    if [0xBC, 0xBE, 0xBF, 0xF0, 0xF1, 0xF2, 0xF8, 0xFF].contains(streamID) { return refuse(counting: false) }
    guard let flags: UInt16 = rest.readInteger(), let length: UInt8 = rest.readInteger(),
      var fields = rest.readSlice(length: Int(length))
    else { return wait(bytes) }
    guard flags & 0xC000 == 0x8000 else { return refuse() }
    guard flags & 0x3000 == 0 else {
      scrambled &+= 1
      return Step()
    }
    var times = Times()
    if flags & 0x80 != 0 { times.presentation = Self.time(&fields) }
    if flags & 0xC0 == 0xC0 { times.decode = Self.time(&fields) }
    var left: Int?
    if keepsLength, stated > 0 {
      left = Int(stated) &- 3 &- Int(length)
      guard let left, left >= 0 else { return refuse() }
    }
    state = .body(left: left)
    var body: ByteBuffer? = rest
    if let left {
      body = rest.readSlice(length: min(left, rest.readableBytes))
      state = .body(left: left &- (body?.readableBytes ?? 0))
    }
    return Step(begins: times, bytes: body)
  }

  private mutating func wait(_ header: ByteBuffer) -> Step {
    state = .header(header)
    return Step()
  }

  private mutating func refuse(counting: Bool = true) -> Step {
    if counting { malformed &+= 1 }
    return Step()
  }

  /// A time of 33 bits in five bytes with marker bits. Nil if they are not there.
  private static func time(_ fields: inout ByteBuffer) -> UInt64? {
    guard let high: UInt8 = fields.readInteger(), let middle: UInt16 = fields.readInteger(),
      let low: UInt16 = fields.readInteger()
    else { return nil }
    return UInt64(high >> 1 & 7) << 30 | UInt64(middle >> 1) << 15 | UInt64(low >> 1)
  }
}
