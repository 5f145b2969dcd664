internal import FMP4
internal import NIOCore

/// H.264 by RTP (RFC 6184), packetization modes 0 and 1: NAL units one by one, several in a packet (STAP-A), and in
/// fragments (FU-A).
struct H264Assembler: RTPFrameAssembler {
  private struct Frame {
    let timestamp: UInt32
    var payload = ByteBuffer()
    var parameterSets: [[UInt8]] = []
    var isKey = false
    var hasSlice = false
    var isDamaged = false
    /// Where the length of an unfinished unit stands.
    var open: Int?

    var byteCount: Int { payload.readableBytes &+ parameterSets.reduce(0) { $0 &+ $1.count } }
  }

  private var frame: Frame?

  mutating func receive(_ packet: RTPPacket, afterGap: Bool, to out: inout [RTPFrameEvent]) {
    let wasOpen = frame != nil
    if let timestamp = frame?.timestamp, timestamp != packet.timestamp {
      // Some senders do not mark the last packet of a frame. Behind a gap it may be what is missing.
      if afterGap { frame?.isDamaged = true }
      finish(to: &out)
    } else if afterGap {
      frame?.isDamaged = true
    }
    guard packet.payload.readableBytes > 0 else { return }
    if frame == nil {
      frame = Frame(timestamp: packet.timestamp)
      if afterGap {
        // Whole frames are missing if neither this one nor one before has a hole.
        if !begins(packet.payload) { frame?.isDamaged = true } else if !wasOpen { out.append(.lost) }
      }
    }
    read(packet.payload)
    if frame.map({ $0.byteCount > WebRTCLimits.frameBytes }) == true {
      frame = Frame(timestamp: packet.timestamp, isDamaged: true)
    }
    if packet.hasMarker { finish(to: &out) }
  }

  /// Whether a packet can be the first one of a frame: `first_mb_in_slice` is 0, or no slice comes first.
  private func begins(_ payload: ByteBuffer) -> Bool {
    guard let first: UInt8 = payload.getInteger(at: payload.readerIndex) else { return false }
    func second(_ offset: Int) -> UInt8 { payload.getInteger(at: payload.readerIndex + offset) ?? 0 }
    switch first & 31 {
    case 1, 5: return second(1) & 0x80 != 0
    case 6...9: return true
    case 24:
      return switch second(3) & 31 {
      case 1, 5: second(4) & 0x80 != 0
      case 6...9: true
      default: false
      }
    case 28:
      let isStart = second(1) & 0x80 != 0
      let isSlice = [1, 5].contains(second(1) & 31)
      return isStart && (!isSlice || second(2) & 0x80 != 0)
    default: return false
    }
  }

  private mutating func read(_ payload: ByteBuffer) {
    var payload = payload
    guard let first: UInt8 = payload.getInteger(at: payload.readerIndex) else { return }
    let type = first & 31
    if type != 28, frame?.open != nil {
      // A unit in fragments did not end.
      frame?.isDamaged = true
      frame?.open = nil
    }
    switch type {
    case 1...23: add(payload)
    case 24:
      payload.moveReaderIndex(forwardBy: 1)
      while let size: UInt16 = payload.readInteger() {
        guard size > 0, let unit = payload.readSlice(length: Int(size)) else {
          frame?.isDamaged = true
          return
        }
        add(unit)
      }
    case 28: addFragment(payload, first)
    default: frame?.isDamaged = true
    }
  }

  private mutating func add(_ unit: ByteBuffer) {
    guard let header: UInt8 = unit.getInteger(at: unit.readerIndex) else { return }
    switch header & 31 {
    case 7, 8:
      guard unit.readableBytes <= 65_535, (frame?.parameterSets.count ?? 0) < MPEGTSLimits.parameterSets else {
        frame?.isDamaged = true
        return
      }
      frame?.parameterSets.append(Array(unit.readableBytesView))
    // Delimiters, ends, filler: a sample has none.
    case 9...12: break
    default:
      note(header)
      frame?.payload.writeInteger(UInt32(clamping: unit.readableBytes))
      frame?.payload.writeImmutableBuffer(unit)
    }
  }

  private mutating func addFragment(_ payload: ByteBuffer, _ indicator: UInt8) {
    var payload = payload
    guard payload.readableBytes > 2, let header: UInt8 = payload.getInteger(at: payload.readerIndex + 1) else {
      frame?.isDamaged = true
      return
    }
    payload.moveReaderIndex(forwardBy: 2)
    let (isStart, isEnd) = (header & 0x80 != 0, header & 0x40 != 0)
    if isStart {
      // A start within a unit: the unit before has no end.
      if frame?.open != nil { frame?.isDamaged = true }
      let unit = indicator & 0xE0 | header & 31
      note(unit)
      let start = frame?.payload.writerIndex
      frame?.open = start
      frame?.payload.writeInteger(UInt32(0))
      frame?.payload.writeInteger(unit)
    }
    guard let start = frame?.open else {
      frame?.isDamaged = true
      return
    }
    frame?.payload.writeImmutableBuffer(payload)
    guard isEnd, let end = frame?.payload.writerIndex else { return }
    frame?.payload.setInteger(UInt32(clamping: end &- start &- 4), at: start)
    frame?.open = nil
    takeOutParameterSet(at: start, to: end)
  }

  /// A parameter set that came in fragments.
  private mutating func takeOutParameterSet(at start: Int, to end: Int) {
    guard let header: UInt8 = frame?.payload.getInteger(at: start + 4), [7, 8].contains(header & 31) else { return }
    let unit = frame?.payload.getSlice(at: start + 4, length: end - start - 4)
    frame?.payload.moveWriterIndex(to: start)
    if let unit { add(unit) }
  }

  private mutating func note(_ header: UInt8) {
    switch header & 31 {
    case 5:
      frame?.isKey = true
      frame?.hasSlice = true
    case 1...4: frame?.hasSlice = true
    default: break
    }
  }

  private mutating func finish(to out: inout [RTPFrameEvent]) {
    guard let done = frame.take() else { return }
    guard !done.isDamaged, done.open == nil, done.hasSlice else {
      // Parameter sets may come by themselves.
      if done.isDamaged || done.open != nil { return out.append(.lost) }
      if !done.parameterSets.isEmpty {
        out.append(
          .frame(
            RTPFrame(
              timestamp: done.timestamp, payload: ByteBuffer(), parameterSets: done.parameterSets, isKey: false)))
      }
      return
    }
    out.append(
      .frame(
        RTPFrame(
          timestamp: done.timestamp, payload: done.payload, parameterSets: done.parameterSets, isKey: done.isKey)))
  }
}
