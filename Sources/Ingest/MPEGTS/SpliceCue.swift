internal import NIOCore
internal import Publishing

/// Reads a splice information section (ANSI/SCTE 35 §9.6).
enum SpliceCue {
  case cue(StreamCue)
  /// Its content cannot be read without a key.
  case encrypted
  /// It ends within a field, or has a command that does not exist.
  case damaged

  /// Of a PTS.
  private static let range: UInt64 = 1 << 33 &- 1
  /// A length of the command that is not stated.
  private static let unstated = 0xFFF

  /// Nil if the section is no splice information.
  init?(_ section: PSISection, pid: UInt16) {
    guard section.tableID == PSISection.spliceTable else { return nil }
    self = .damaged
    var body = section.body
    guard body.readInteger(as: UInt8.self) == 0, let flags: UInt8 = body.readInteger(),
      let adjustment: UInt32 = body.readInteger(), body.readInteger(as: UInt8.self) != nil,
      body.readInteger(as: UInt8.self) != nil, let length: UInt16 = body.readInteger()
    else { return }
    guard flags & 0x80 == 0 else {
      self = .encrypted
      return
    }
    guard let command = body.readInteger(as: UInt8.self).flatMap(StreamCue.Command.init) else { return }
    var cue = StreamCue(pid: pid, command: command, section: section.whole)
    let stated = Int(length) & Self.unstated
    guard var content = stated == Self.unstated ? body : body.readSlice(length: stated),
      Self.read(&content, into: &cue)
    else { return }
    if stated == Self.unstated { body = content }
    Self.readDescriptors(body, into: &cue)
    let shift = UInt64(flags & 1) << 32 | UInt64(adjustment)
    cue.presentation = cue.presentation.map { ($0 &+ shift) & Self.range }
    self = .cue(cue)
  }

  /// Reads the command. False if it ends within a field.
  private static func read(_ body: inout ByteBuffer, into cue: inout StreamCue) -> Bool {
    switch cue.command {
    case .timeSignal: return readTime(&body, into: &cue)
    case .insert: return readInsertion(&body, into: &cue)
    case .null, .schedule, .bandwidthReservation, .privateCommand: return true
    }
  }

  /// `splice_insert`, §9.7.3.
  private static func readInsertion(_ body: inout ByteBuffer, into cue: inout StreamCue) -> Bool {
    guard let event: UInt32 = body.readInteger(), let cancel: UInt8 = body.readInteger() else { return false }
    cue.eventID = event
    cue.isCancelled = cancel & 0x80 != 0
    if cue.isCancelled { return true }
    guard let flags: UInt8 = body.readInteger() else { return false }
    cue.isOutOfNetwork = flags & 0x80 != 0
    let isImmediate = flags & 0x10 != 0
    if flags & 0x40 != 0 {
      guard isImmediate || readTime(&body, into: &cue) else { return false }
    } else {
      // Of the components the first one's time counts.
      guard let count: UInt8 = body.readInteger() else { return false }
      for index in 0..<count {
        var ignored = cue
        guard body.readInteger(as: UInt8.self) != nil, isImmediate || readTime(&body, into: &ignored) else {
          return false
        }
        if index == 0 { cue = ignored }
      }
    }
    guard flags & 0x20 != 0 else { return true }
    guard let high: UInt8 = body.readInteger(), let low: UInt32 = body.readInteger() else { return false }
    cue.duration = UInt64(high & 1) << 32 | UInt64(low)
    return true
  }

  /// `splice_time`, §9.8.1.
  private static func readTime(_ body: inout ByteBuffer, into cue: inout StreamCue) -> Bool {
    guard let first: UInt8 = body.readInteger() else { return false }
    guard first & 0x80 != 0 else { return true }
    guard let rest: UInt32 = body.readInteger() else { return false }
    cue.presentation = UInt64(first & 1) << 32 | UInt64(rest)
    return true
  }

  /// Reads the first segmentation descriptor (§10.3.3). Of a damaged one the fields before the damage count.
  private static func readDescriptors(_ bytes: ByteBuffer, into cue: inout StreamCue) {
    var loop = bytes
    guard let length: UInt16 = loop.readInteger(), var rest = loop.readSlice(length: Int(length)) else { return }
    while let tag: UInt8 = rest.readInteger(), let length: UInt8 = rest.readInteger(),
      var body = rest.readSlice(length: Int(length))
    {
      // "CUEI"
      guard tag == 2, body.readInteger(as: UInt32.self) == 0x4355_4549 else { continue }
      return readSegmentation(&body, into: &cue)
    }
  }

  private static func readSegmentation(_ body: inout ByteBuffer, into cue: inout StreamCue) {
    guard let event: UInt32 = body.readInteger(), let cancel: UInt8 = body.readInteger() else { return }
    cue.eventID = cue.eventID ?? event
    if cue.command == .timeSignal { cue.isCancelled = cancel & 0x80 != 0 }
    guard cancel & 0x80 == 0, let flags: UInt8 = body.readInteger() else { return }
    if flags & 0x80 == 0 {
      guard let count: UInt8 = body.readInteger(), body.readSlice(length: Int(count) &* 6) != nil else { return }
    }
    if flags & 0x40 != 0 {
      guard let high: UInt8 = body.readInteger(), let low: UInt32 = body.readInteger() else { return }
      cue.duration = cue.duration ?? UInt64(high) << 32 | UInt64(low)
    }
    guard body.readInteger(as: UInt8.self) != nil, let length: UInt8 = body.readInteger(),
      body.readSlice(length: Int(length)) != nil
    else { return }
    cue.segmentationType = body.readInteger()
  }
}
