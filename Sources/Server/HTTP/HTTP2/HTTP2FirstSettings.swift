internal import NIOCore

/// Changes the exchange of our first SETTINGS between NIO and the client (RFC 9113 §3.4, §6.5). A value type: bytes in, bytes
/// out. `HTTP2SettingsHandler` gives the reason.
///
/// In outgoing bytes, it overwrites the number of streams. In incoming bytes, it inserts an acknowledgement after the client's
/// first frame, the first valid place, and removes the client's own when it arrives. Bytes may be split anywhere. At most
/// eight incoming bytes are held back, the start of a frame header.
struct HTTP2FirstSettings {
  private enum State {
    /// The remaining bytes of the 24 of the client's preface.
    case magic(Int)
    case firstHeader
    case firstPayload(Int)
    case header
    case payload(Int)
    /// The client's acknowledgement was removed, or its first frame is one that NIO rejects.
    case over
  }

  /// The first nine bytes of a frame (RFC 9113 §4.1).
  private struct Header {
    static let size = 9
    static let settings: UInt8 = 4
    static let acknowledges: UInt8 = 1

    var length: Int
    var type: UInt8
    var flags: UInt8
    var stream: UInt32

    /// Nil when it is incomplete.
    init?(_ bytes: ByteBuffer, at index: Int) {
      guard let high: UInt8 = bytes.getInteger(at: index), let low: UInt16 = bytes.getInteger(at: index + 1),
        let type: UInt8 = bytes.getInteger(at: index + 3), let flags: UInt8 = bytes.getInteger(at: index + 4),
        let stream: UInt32 = bytes.getInteger(at: index + 5)
      else { return nil }
      length = Int(high) << 16 | Int(low)
      self.type = type
      self.flags = flags
      self.stream = stream & 0x7FFF_FFFF
    }

    var isSettings: Bool { type == Self.settings && stream == 0 && flags & Self.acknowledges == 0 }
    var isAcknowledgement: Bool {
      type == Self.settings && stream == 0 && flags & Self.acknowledges != 0 && length == 0
    }
  }

  /// What to do with a frame.
  private enum Fate {
    case pass
    case leaveOut
  }

  private static let magicBytes = 24
  /// SETTINGS_MAX_CONCURRENT_STREAMS (RFC 9113 §6.5.2).
  private static let concurrentStreams: UInt16 = 3
  private static let acknowledgement = ByteBuffer(bytes: [0, 0, 0, Header.settings, Header.acknowledges, 0, 0, 0, 0])

  private var state = State.magic(magicBytes)
  /// The start of an incomplete header.
  private var held = ByteBuffer()

  /// No more changes are needed.
  var isOver: Bool { if case .over = state { true } else { false } }

  /// Overwrites the number of streams in a SETTINGS frame, if it has one.
  static func announce(_ streams: Int, in frame: inout ByteBuffer) {
    let start = frame.readerIndex
    guard let header = Header(frame, at: start), header.isSettings else { return }
    // Each setting is a number of two bytes and a value of four.
    for index in stride(from: start + Header.size, to: frame.writerIndex, by: 6)
    where frame.getInteger(at: index) == concurrentStreams && index + 6 <= frame.writerIndex {
      frame.setInteger(UInt32(clamping: streams), at: index + 2)
    }
  }

  /// The bytes for NIO, in order, made of bytes from the client.
  mutating func receive(_ input: ByteBuffer) -> [ByteBuffer] {
    var bytes = input
    if held.readableBytes > 0 {
      held.writeBuffer(&bytes)
      bytes = held
      held = ByteBuffer()
    }
    var pieces: [ByteBuffer] = []
    /// The position up to which bytes were scanned.
    var index = bytes.readerIndex
    func left() -> Int { bytes.writerIndex - index }
    func pass() {
      if let piece = bytes.readSlice(length: index - bytes.readerIndex), piece.readableBytes > 0 {
        pieces.append(piece)
      }
    }
    while true {
      switch state {
      case .magic(let count) where count > 0, .firstPayload(let count) where count > 0,
        .payload(let count) where count > 0:
        guard left() > 0 else {
          pass()
          return pieces
        }
        let step = min(count, left())
        index += step
        skip(step)
      case .magic: state = .firstHeader
      case .firstPayload:
        pass()
        pieces.append(Self.acknowledgement)
        state = .header
      case .payload: state = .header
      case .firstHeader, .header:
        guard let header = Header(bytes, at: index) else {
          pass()
          held = ByteBuffer(bytes: bytes.readableBytesView)
          return pieces
        }
        if take(header) == .leaveOut {
          pass()
          bytes.moveReaderIndex(forwardBy: Header.size)
        }
        index += Header.size
      case .over:
        index = bytes.writerIndex
        pass()
        return pieces
      }
    }
  }

  /// Skips `step` bytes.
  private mutating func skip(_ step: Int) {
    switch state {
    case .magic(let count): state = .magic(count - step)
    case .firstPayload(let count): state = .firstPayload(count - step)
    case .payload(let count): state = .payload(count - step)
    case .firstHeader, .header, .over: break
    }
  }

  private mutating func take(_ header: Header) -> Fate {
    if case .firstHeader = state {
      state = header.isSettings ? .firstPayload(header.length) : .over
    } else if header.isAcknowledgement {
      state = .over
      return .leaveOut
    } else {
      state = .payload(header.length)
    }
    return .pass
  }
}
