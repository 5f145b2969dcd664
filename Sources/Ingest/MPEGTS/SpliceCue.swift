internal import NIOCore

/// A cue of SCTE 35: a section with what is to happen, and when (ANSI/SCTE 35 §9.6). Its content is kept as it came.
struct SpliceCue {
  var pid: UInt16
  /// `splice_command_type`: 5 is an insertion, 6 a time signal. Nil if the section is encrypted or cut off.
  var command: UInt8?
  /// Ticks of the programme's 90 kHz, without wraps. Nil if the cue is for now, or has no time.
  var presentation: Int64?
  /// The whole section, but for its checksum.
  var section: ByteBuffer

  private static let insertion: UInt8 = 5
  private static let timeSignal: UInt8 = 6

  /// Nil if the section is no cue.
  init?(_ section: PSISection, pid: UInt16, clock: inout WireClock) {
    guard section.tableID == PSISection.spliceTable else { return nil }
    self.pid = pid
    self.section = section.bytes
    var body = section.body
    guard body.readInteger(as: UInt8.self) == 0, let flags: UInt8 = body.readInteger(),
      let adjustment: UInt32 = body.readInteger(), body.readInteger(as: UInt8.self) != nil,
      body.readSlice(length: 3) != nil, let command: UInt8 = body.readInteger(), flags & 0x80 == 0
    else { return }
    self.command = command
    guard let time = Self.time(command, &body) else { return }
    let whole = time &+ (UInt64(flags & 1) << 32 | UInt64(adjustment))
    presentation = clock.ticks(whole & (1 << UInt64(ProgramClock.bits) &- 1))
  }

  private static func time(_ command: UInt8, _ body: inout ByteBuffer) -> UInt64? {
    switch command {
    case timeSignal: return spliceTime(&body)
    case insertion:
      guard body.readInteger(as: UInt32.self) != nil, let cancel: UInt8 = body.readInteger(), cancel & 0x80 == 0,
        let flags: UInt8 = body.readInteger(), flags & 0x40 != 0, flags & 0x10 == 0
      else { return nil }
      return spliceTime(&body)
    default: return nil
    }
  }

  /// `splice_time`, §9.8.1.
  private static func spliceTime(_ body: inout ByteBuffer) -> UInt64? {
    guard let first: UInt8 = body.readInteger(), first & 0x80 != 0, let rest: UInt32 = body.readInteger() else {
      return nil
    }
    return UInt64(first & 1) << 32 | UInt64(rest)
  }
}
