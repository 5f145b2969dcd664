internal import NIOCore

/// What of a compound packet of RTCP (RFC 3550 §6.1) matters.
enum RTCPEvent: Equatable {
  /// The sender's clock, and its media clock at the same time (§6.4.1).
  case report(SenderReport)
  /// The sender ends (§6.6).
  case bye(UInt32)
  /// A receiver asks for packets of a sender again (RFC 4585 §6.2.1).
  case again([UInt16], of: UInt32)
  /// A receiver asks for a key frame (RFC 4585 §6.3.1, RFC 5104 §4.3.1).
  case keyFrame(of: UInt32)
  /// The most that a receiver wants, in bits per second (draft-alvestrand-rmcat-remb-03 §2.2).
  case estimate(UInt64)
  /// What a receiver got of a sender (§6.4.2).
  case received(RTCPWriter.Reception)
}

struct SenderReport: Hashable {
  var source: UInt32
  /// Seconds since 1900 and a fraction of 32 bits.
  var clock: UInt64
  var timestamp: UInt32

  /// Nanoseconds since 1900.
  var nanoseconds: Int64 {
    Int64(clock >> 32) * 1_000_000_000 + Int64(((clock & 0xFFFF_FFFF) * 1_000_000_000) >> 32)
  }
}

enum RTCPReader {
  private static let (senderReport, receiverReport, bye, transport, payload): (UInt8, UInt8, UInt8, UInt8, UInt8) =
    (200, 201, 203, 205, 206)

  /// Whether a datagram of RTP's range is RTCP (RFC 5761 §4).
  static func isPossible(_ second: UInt8) -> Bool { (192...223).contains(second) }

  /// The sender (SSRC) of a datagram, before it is decrypted. Nil if it is too short.
  static func source(of datagram: ByteBuffer) -> UInt32? { datagram.getInteger(at: datagram.readerIndex + 4) }

  /// Reads until a packet that exceeds the datagram.
  static func read(_ datagram: ByteBuffer) -> [RTCPEvent] {
    var (bytes, events) = (datagram, [RTCPEvent]())
    while let first: UInt8 = bytes.readInteger(), let type: UInt8 = bytes.readInteger(),
      let words: UInt16 = bytes.readInteger(), first >> 6 == 2, var body = bytes.readSlice(length: Int(words) * 4)
    {
      switch type {
      case senderReport:
        if let source: UInt32 = body.readInteger(), let clock: UInt64 = body.readInteger(),
          let timestamp: UInt32 = body.readInteger()
        {
          events.append(.report(SenderReport(source: source, clock: clock, timestamp: timestamp)))
          // Behind the numbers of packets and bytes.
          if body.readInteger(as: UInt64.self) != nil { readReceptions(&body, first & 31, to: &events) }
        }
      case receiverReport:
        if body.readInteger(as: UInt32.self) != nil { readReceptions(&body, first & 31, to: &events) }
      case bye:
        for _ in 0..<(first & 31) {
          guard let source: UInt32 = body.readInteger() else { break }
          events.append(.bye(source))
        }
      case transport where first & 31 == 1: readRepeats(&body, to: &events)
      case payload: readRequest(&body, first & 31, to: &events)
      default: break
      }
    }
    return events
  }

  private static func readReceptions(_ body: inout ByteBuffer, _ count: UInt8, to events: inout [RTCPEvent]) {
    for _ in 0..<count {
      guard
        let (source, loss, highest, jitter, lastReport, sinceReport) = body.readMultipleIntegers(
          as: (UInt32, UInt32, UInt32, UInt32, UInt32, UInt32).self)
      else { return }
      events.append(
        .received(
          RTCPWriter.Reception(
            source: source, fractionLost: UInt8(truncatingIfNeeded: loss >> 24),
            lost: Int32(bitPattern: loss << 8) >> 8, highest: highest, jitter: jitter, lastReport: lastReport,
            sinceReport: sinceReport)))
    }
  }

  private static func readRepeats(_ body: inout ByteBuffer, to events: inout [RTCPEvent]) {
    guard body.readInteger(as: UInt32.self) != nil, let source: UInt32 = body.readInteger() else { return }
    var numbers: [UInt16] = []
    while numbers.count < WebRTCLimits.repeatsOfRequest, let first: UInt16 = body.readInteger(),
      let mask: UInt16 = body.readInteger()
    {
      numbers.append(first)
      for bit in 0..<UInt16(16) where mask & 1 << bit != 0 { numbers.append(first &+ bit &+ 1) }
    }
    if !numbers.isEmpty { events.append(.again(numbers, of: source)) }
  }

  /// PLI is 1, FIR 4, REMB 15.
  private static func readRequest(_ body: inout ByteBuffer, _ format: UInt8, to events: inout [RTCPEvent]) {
    guard body.readInteger(as: UInt32.self) != nil, let source: UInt32 = body.readInteger() else { return }
    switch format {
    case 1: events.append(.keyFrame(of: source))
    case 4:
      // The sender stands with the request itself.
      guard let meant: UInt32 = body.readInteger() else { return }
      events.append(.keyFrame(of: meant))
    case 15:
      guard body.readString(length: 4) == "REMB", let word: UInt32 = body.readInteger() else { return }
      let (exponent, mantissa) = (UInt64(word >> 18 & 63), UInt64(word & 0x3FFFF))
      events.append(.estimate(exponent > 40 ? .max : mantissa << exponent))
    default: break
    }
  }
}
