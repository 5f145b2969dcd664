internal import NIOCore

/// AV1 by RTP ("RTP Payload Format For AV1", version 1.0.0): temporal units whose open bitstream units come without sizes,
/// in elements that may be split over packets.
struct AV1Assembler: RTPFrameAssembler {
  private struct Unit {
    let timestamp: UInt32
    /// With their sizes, as samples have them.
    var payload = ByteBuffer()
    /// An open bitstream unit that goes on in the next packet.
    var open: ByteBuffer?
    var hasSequence = false
    var isDamaged = false

    var byteCount: Int { payload.readableBytes &+ (open?.readableBytes ?? 0) }
  }

  private static let (sequenceHeader, temporalDelimiter, tileList, padding): (UInt8, UInt8, UInt8, UInt8) =
    (1, 2, 8, 15)

  private var unit: Unit?

  var heldBytes: Int { unit?.byteCount ?? 0 }

  mutating func receive(_ packet: RTPPacket, afterGap: Bool, to out: inout [RTPFrameEvent]) {
    let wasOpen = unit != nil
    if let open = unit, open.timestamp != packet.timestamp {
      if afterGap { unit?.isDamaged = true }
      finish(to: &out)
    } else if afterGap {
      unit?.isDamaged = true
    }
    var payload = packet.payload
    guard let head: UInt8 = payload.readInteger() else { return }
    let continues = head & 0x80 != 0
    if unit == nil {
      unit = Unit(timestamp: packet.timestamp)
      // Its first packet is missing, or may be: only the first one of a sequence (N) says what it is.
      let isFirst = head & 0x08 != 0
      if continues || afterGap && !isFirst {
        unit?.isDamaged = true
      } else if afterGap, !wasOpen {
        out.append(.lost)
      }
    }
    read(payload, continues: continues, goesOn: head & 0x40 != 0, count: Int(head >> 4 & 3))
    if unit.map({ $0.byteCount > WebRTCLimits.frameBytes }) == true {
      unit = Unit(timestamp: packet.timestamp, isDamaged: true)
    }
    if packet.hasMarker { finish(to: &out) }
  }

  /// Reads the elements (§4.4). `count` 0: each has its length; else the last one has none.
  private mutating func read(_ payload: ByteBuffer, continues: Bool, goesOn: Bool, count: Int) {
    var payload = payload
    var index = 0
    if !continues, unit?.open.take() != nil { unit?.isDamaged = true }
    while payload.readableBytes > 0 {
      index += 1
      let isLast = count > 0 && index == count
      guard let length = isLast ? payload.readableBytes : Self.leb128(&payload),
        let element = payload.readSlice(length: length)
      else {
        unit?.isDamaged = true
        return
      }
      let isEnd = payload.readableBytes == 0
      if index == 1, continues {
        guard unit?.open != nil else {
          unit?.isDamaged = true
          continue
        }
        unit?.open?.writeImmutableBuffer(element)
      } else {
        // A copy: it may grow.
        unit?.open = ByteBuffer(bytes: element.readableBytesView)
      }
      if !(isEnd && goesOn) { close() }
      if count > 0, isLast { break }
    }
  }

  /// Writes the open unit with its size (AV1 §5.3).
  private mutating func close() {
    guard var bytes = unit?.open.take() else { return }
    guard let head: UInt8 = bytes.readInteger() else { return }
    let type = head >> 3 & 15
    let extensionByte: UInt8? = head & 4 != 0 ? bytes.readInteger() : nil
    if head & 4 != 0, extensionByte == nil {
      unit?.isDamaged = true
      return
    }
    if head & 2 != 0 {
      // Senders should leave the size out; some do not.
      guard let size = Self.leb128(&bytes), let rest = bytes.readSlice(length: size) else {
        unit?.isDamaged = true
        return
      }
      bytes = rest
    }
    if type == Self.sequenceHeader { unit?.hasSequence = true }
    if [Self.temporalDelimiter, Self.tileList, Self.padding].contains(type) { return }
    unit?.payload.writeInteger(head | 2)
    if let extensionByte { unit?.payload.writeInteger(extensionByte) }
    var size = bytes.readableBytes
    repeat {
      unit?.payload.writeInteger(UInt8(size & 127) | (size > 127 ? 128 : 0))
      size >>= 7
    } while size > 0
    unit?.payload.writeImmutableBuffer(bytes)
  }

  private mutating func finish(to out: inout [RTPFrameEvent]) {
    guard let done = unit.take() else { return }
    guard !done.isDamaged, done.open == nil else { return out.append(.lost) }
    guard done.payload.readableBytes > 0 else { return }
    out.append(.frame(RTPFrame(timestamp: done.timestamp, payload: done.payload, isKey: done.hasSequence)))
  }

  /// AV1 §4.10.5. Nil if it is longer than a frame may be.
  private static func leb128(_ bytes: inout ByteBuffer) -> Int? {
    var value = 0
    for place in 0..<4 {
      guard let byte: UInt8 = bytes.readInteger() else { return nil }
      value |= Int(byte & 127) << (7 * place)
      if byte & 128 == 0 { return value }
    }
    return nil
  }
}
