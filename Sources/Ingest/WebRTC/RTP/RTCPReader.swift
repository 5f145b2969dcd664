internal import NIOCore

/// What of a compound packet of RTCP (RFC 3550 §6.1) matters to a receiver.
enum RTCPEvent: Equatable {
  /// The sender's clock, and its media clock at the same time (§6.4.1).
  case report(SenderReport)
  /// The sender ends (§6.6).
  case bye(UInt32)
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
  private static let (senderReport, bye): (UInt8, UInt8) = (200, 203)

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
        }
      case bye:
        for _ in 0..<(first & 31) {
          guard let source: UInt32 = body.readInteger() else { break }
          events.append(.bye(source))
        }
      default: break
      }
    }
    return events
  }
}
