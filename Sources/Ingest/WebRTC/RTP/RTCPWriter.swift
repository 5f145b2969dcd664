internal import NIOCore

/// Packets of RTCP that a receiver sends, and those of a sender.
struct RTCPWriter {
  /// A block of a receiver report (RFC 3550 §6.4.2).
  struct Reception: Equatable {
    var source: UInt32
    /// In 256ths, since the last report.
    var fractionLost: UInt8
    var lost: Int32
    var highest: UInt32
    /// In ticks.
    var jitter: UInt32
    /// The middle of the last sender report's clock, and how long ago it came, in 65536ths of a second.
    var lastReport: UInt32
    var sinceReport: UInt32
  }

  /// weir's own number as a receiver.
  static let source: UInt32 = 1

  private(set) var bytes = ByteBuffer()

  /// Each datagram begins with a report (RFC 3550 §6.1).
  init(_ receptions: [Reception] = []) {
    let receptions = receptions.prefix(31)
    head(UInt8(receptions.count), 201, words: 1 + 6 * receptions.count)
    for one in receptions {
      bytes.writeInteger(one.source)
      bytes.writeInteger(
        UInt32(one.fractionLost) << 24 | UInt32(bitPattern: max(-0x80_0000, min(one.lost, 0x7F_FFFF))) & 0xFF_FFFF)
      bytes.writeInteger(one.highest)
      bytes.writeInteger(one.jitter)
      bytes.writeInteger(one.lastReport)
      bytes.writeInteger(one.sinceReport)
    }
  }

  /// `words` behind the first, with the own number.
  private mutating func head(_ count: UInt8, _ type: UInt8, words: Int) {
    bytes.writeInteger(0x80 | count)
    bytes.writeInteger(type)
    bytes.writeInteger(UInt16(clamping: words))
    bytes.writeInteger(Self.source)
  }

  /// Asks for a key frame (RFC 4585 §6.3.1).
  mutating func keyFrame(of source: UInt32) {
    head(1, 206, words: 2)
    bytes.writeInteger(source)
  }

  /// Asks for packets again (RFC 4585 §6.2.1). `numbers` rise.
  mutating func again(_ numbers: [UInt16], of source: UInt32) {
    var blocks: [(first: UInt16, mask: UInt16)] = []
    for number in numbers {
      if let last = blocks.last, (1...16).contains(number &- last.first) {
        blocks[blocks.count - 1].mask |= 1 << (number &- last.first &- 1)
      } else {
        blocks.append((number, 0))
      }
    }
    guard !blocks.isEmpty else { return }
    head(1, 205, words: 2 + blocks.count)
    bytes.writeInteger(source)
    for block in blocks {
      bytes.writeInteger(block.first)
      bytes.writeInteger(block.mask)
    }
  }

  /// The most that the sender may send, in bits per second (draft-alvestrand-rmcat-remb-03 §2.2).
  mutating func estimate(_ bitRate: UInt64, of sources: [UInt32]) {
    let sources = sources.prefix(255)
    head(15, 206, words: 4 + sources.count)
    bytes.writeInteger(UInt32(0))
    bytes.writeString("REMB")
    let exponent = max(0, 64 - bitRate.leadingZeroBitCount - 18)
    bytes.writeInteger(
      UInt32(sources.count) << 24 | UInt32(exponent) << 18 | UInt32(truncatingIfNeeded: bitRate >> UInt64(exponent)))
    for source in sources { bytes.writeInteger(source) }
  }

  /// Times of arrival (draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1); `body` as `ArrivalLog` makes it.
  mutating func arrivals(_ body: ByteBuffer, of source: UInt32) {
    head(15, 205, words: 2 + body.readableBytes / 4)
    bytes.writeInteger(source)
    bytes.writeImmutableBuffer(body)
  }

  // MARK: senders

  /// What a sender has sent (RFC 3550 §6.4.1).
  struct Sending: Equatable {
    var source: UInt32
    /// Seconds since 1900 and a fraction of 32 bits, and the media clock at that time.
    var clock: UInt64
    var timestamp: UInt32
    var packets: UInt32
    var bytes: UInt32
  }

  /// Reports of senders with one name (§6.5.1), which says that their clock is one.
  init(_ sendings: [Sending], name: String) {
    for one in sendings.prefix(31) {
      bytes.writeMultipleIntegers(UInt8(0x80), UInt8(200), UInt16(6), one.source)
      bytes.writeMultipleIntegers(one.clock, one.timestamp, one.packets, one.bytes)
    }
    let text = Array(name.utf8.prefix(255))
    // Type, length and text, a zero, and zeros up to a whole word.
    let item = 2 + text.count
    let padded = (item / 4 + 1) * 4
    bytes.writeMultipleIntegers(
      UInt8(0x80 | min(sendings.count, 31)), UInt8(202), UInt16(clamping: min(sendings.count, 31) * (1 + padded / 4)))
    for one in sendings.prefix(31) {
      bytes.writeMultipleIntegers(one.source, UInt8(1), UInt8(clamping: text.count))
      bytes.writeBytes(text)
      bytes.writeRepeatingByte(0, count: padded - item)
    }
  }

  /// Senders end, for a reason (§6.6).
  mutating func bye(_ sources: [UInt32], because reason: String) {
    let sources = sources.prefix(31)
    let text = Array(reason.utf8.prefix(255))
    let padding = (4 - (1 + text.count) % 4) % 4
    bytes.writeMultipleIntegers(
      UInt8(0x80) | UInt8(clamping: sources.count), UInt8(203),
      UInt16(clamping: sources.count + (1 + text.count + padding) / 4))
    for source in sources { bytes.writeInteger(source) }
    bytes.writeInteger(UInt8(clamping: text.count))
    bytes.writeBytes(text)
    bytes.writeRepeatingByte(0, count: padding)
  }
}
