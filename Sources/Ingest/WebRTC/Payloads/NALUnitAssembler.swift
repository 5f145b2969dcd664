internal import NIOCore
internal import Publishing

/// Puts frames of NAL units together, which come one by one, several in a packet, and in fragments.
struct NALUnitAssembler<Payload: NALUnitPayload>: RTPFrameAssembler {
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

  var heldBytes: Int { frame?.byteCount ?? 0 }

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
        if !Payload.begins(packet.payload) { frame?.isDamaged = true } else if !wasOpen { out.append(.lost) }
      }
    }
    read(packet.payload)
    if frame.map({ $0.byteCount > WebRTCLimits.frameBytes }) == true {
      frame = Frame(timestamp: packet.timestamp, isDamaged: true)
    }
    if packet.hasMarker { finish(to: &out) }
  }

  /// A key frame begins with its parameter sets, and senders give them a packet of their own.
  func lacksBeginning(_ payload: ByteBuffer) -> Bool {
    guard let first: UInt8 = payload.getInteger(at: payload.readerIndex) else { return false }
    switch Payload.form(first) {
    case .unit: return Payload.use(first) == .key
    case .fragment:
      guard let own: UInt8 = payload.getInteger(at: payload.readerIndex + Payload.headerBytes) else { return false }
      return Payload.use(Payload.unitHeader(first, fragment: own)) == .key
    case .aggregation, .unknown: return false
    }
  }

  private mutating func read(_ payload: ByteBuffer) {
    var payload = payload
    guard let first: UInt8 = payload.getInteger(at: payload.readerIndex) else { return }
    let form = Payload.form(first)
    if form != .fragment, frame?.open != nil {
      // A unit in fragments did not end.
      frame?.isDamaged = true
      frame?.open = nil
    }
    switch form {
    case .unit: add(payload)
    case .aggregation:
      guard payload.readSlice(length: Payload.headerBytes) != nil else {
        frame?.isDamaged = true
        return
      }
      while let size: UInt16 = payload.readInteger() {
        guard size > 0, let unit = payload.readSlice(length: Int(size)) else {
          frame?.isDamaged = true
          return
        }
        add(unit)
      }
    case .fragment: addFragment(payload, first)
    case .unknown: frame?.isDamaged = true
    }
  }

  private mutating func add(_ unit: ByteBuffer) {
    guard let header: UInt8 = unit.getInteger(at: unit.readerIndex) else { return }
    guard unit.readableBytes >= Payload.headerBytes else {
      frame?.isDamaged = true
      return
    }
    switch Payload.use(header) {
    case .parameterSet:
      guard unit.readableBytes <= 65_535, (frame?.parameterSets.count ?? 0) < PublicationLimits.parameterSets else {
        frame?.isDamaged = true
        return
      }
      frame?.parameterSets.append(Array(unit.readableBytesView))
    case .leftOut: break
    case .key, .slice, .other, .unknown:
      note(header, then: unit.getInteger(at: unit.readerIndex + Payload.headerBytes))
      frame?.payload.writeInteger(UInt32(clamping: unit.readableBytes))
      frame?.payload.writeImmutableBuffer(unit)
    }
  }

  private mutating func addFragment(_ payload: ByteBuffer, _ first: UInt8) {
    var payload = payload
    guard payload.readableBytes > Payload.headerBytes + 1, var rest = payload.readSlice(length: Payload.headerBytes),
      let header: UInt8 = payload.readInteger()
    else {
      frame?.isDamaged = true
      return
    }
    let (isStart, isEnd) = (header & 0x80 != 0, header & 0x40 != 0)
    if isStart {
      // A start within a unit: the unit before has no end.
      if frame?.open != nil { frame?.isDamaged = true }
      let unit = Payload.unitHeader(first, fragment: header)
      note(unit, then: payload.getInteger(at: payload.readerIndex))
      let start = frame?.payload.writerIndex
      frame?.open = start
      frame?.payload.writeInteger(UInt32(0))
      frame?.payload.writeInteger(unit)
      // What its header has beside the type is in that of the payload.
      rest.moveReaderIndex(forwardBy: 1)
      frame?.payload.writeImmutableBuffer(rest)
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
    guard let header: UInt8 = frame?.payload.getInteger(at: start + 4), Payload.use(header) == .parameterSet else {
      return
    }
    let unit = frame?.payload.getSlice(at: start + 4, length: end - start - 4)
    frame?.payload.moveWriterIndex(to: start)
    if let unit { add(unit) }
  }

  /// A unit begins: the first byte of its header, and the one behind its header.
  private mutating func note(_ header: UInt8, then next: UInt8?) {
    let use = Payload.use(header)
    switch use {
    case .key, .slice:
      // A picture begins with its first slice, whatever the packets' numbers say. The first bit of that slice is set:
      // `first_mb_in_slice` is 0 (H.264 §7.4.3), `first_slice_segment_in_pic_flag` is 1 (H.265 §7.4.7.1).
      if frame?.hasSlice == false, next.map({ $0 & 0x80 == 0 }) ?? true { frame?.isDamaged = true }
      frame?.hasSlice = true
      if use == .key { frame?.isKey = true }
    case .unknown: frame?.isDamaged = true
    case .parameterSet, .leftOut, .other: break
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
