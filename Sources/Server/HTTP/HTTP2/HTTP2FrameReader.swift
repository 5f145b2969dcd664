internal import NIOCore

/// Finds the frames in the bytes of a client (RFC 9113 §3.4, §4, §6): bytes in, frames out. A value; it checks all that needs no
/// knowledge of streams. Payloads are slices of the received bytes. DATA is given out as it arrives, other frames when they are
/// whole, and a field section when its last CONTINUATION has come. Padding, priorities and payloads of unknown types are skipped.
struct HTTP2FrameReader {
  /// An error that ends the connection.
  struct Fault: Error, Equatable {
    let code: HTTP2Code
    init(_ code: HTTP2Code) { self.code = code }
  }

  enum Frame {
    /// A part of a DATA frame; the first one of a frame says of what kind it is. `isEnd`: the stream ends with this part.
    case data(stream: UInt32, ByteBuffer, begins: DataHead?, isEnd: Bool)
    case headers(stream: UInt32, ByteBuffer, isEnd: Bool)
    case priority
    case reset(stream: UInt32)
    case settings(ByteBuffer)
    case settingsAcknowledged
    case ping(UInt64)
    case pong(UInt64)
    case goAway
    case windowUpdate(stream: UInt32, Int)
    /// Of a type that is not known. It is given out when it begins, and skipped (RFC 9113 §4.1).
    case unknown
  }

  /// A DATA frame as a whole.
  struct DataHead {
    /// Bytes without padding.
    let length: Int
    /// Bytes that count for the windows (RFC 9113 §6.9.1).
    let counted: Int
    let endsStream: Bool
  }

  private enum State {
    case preface
    /// A SETTINGS frame must be the first one.
    case firstHead
    case head
    /// Of a frame that is given out whole.
    case payload(HTTP2FrameHead)
    case padding(HTTP2FrameHead)
    /// `left` bytes of DATA, then `padding` bytes.
    case data(HTTP2FrameHead, left: Int, padding: Int, isBegun: Bool)
    case skip(Int)
    case failed(Fault)
  }

  /// A field section whose last frame has not come.
  private struct Section {
    let stream: UInt32
    let isEnd: Bool
    var bytes: ByteBuffer
    var continuations = 0
  }

  private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
  /// The most CONTINUATION frames of a field section. Clients need them only for sections above 16 KiB.
  static let continuations = 5

  /// The most bytes of an encoded field section.
  private let sectionBytes: Int
  private var state = State.preface
  private var bytes = ByteBuffer()
  private var section: Section?

  init(sectionBytes: Int) {
    self.sectionBytes = sectionBytes
  }

  /// Bytes that wait for the rest of their frame.
  var heldBytes: Int { bytes.readableBytes &+ (section?.bytes.readableBytes ?? 0) }

  /// A field section has begun whose end has not come.
  var isWithinSection: Bool {
    if case .payload(let head) = state, head.type == HTTP2FrameType.headers { return true }
    return section != nil
  }

  mutating func receive(_ input: ByteBuffer) {
    if bytes.readableBytes == 0 { bytes = input } else { bytes.writeImmutableBuffer(input) }
  }

  /// Keeps no more memory than the beginning of the next frame needs. Called when all frames were taken.
  mutating func settle() {
    if bytes.readableBytes == 0 {
      bytes = ByteBuffer()
    } else if bytes.capacity > 2 * bytes.readableBytes {
      bytes = ByteBuffer(bytes: bytes.readableBytesView)
    }
    // A slice would keep the buffer that it was read into.
    if var open = section, open.bytes.capacity > 2 * open.bytes.readableBytes {
      open.bytes = ByteBuffer(bytes: open.bytes.readableBytesView)
      section = open
    }
  }

  /// Takes the next frame; nil when more bytes are needed. After a fault, each call throws.
  mutating func next() throws(Fault) -> Frame? {
    do throws(Fault) {
      while true {
        switch state {
        case .preface:
          guard try readPreface() else { return nil }
          state = .firstHead
        case .firstHead, .head:
          guard let head = readHead() else { return nil }
          try begin(head)
          if case .skip = state { return .unknown }
        case .padding(let head):
          guard let padding: UInt8 = bytes.readInteger() else { return nil }
          guard head.length > padding else { throw Fault(.protocolError) }
          state = .data(head, left: head.length - 1 - Int(padding), padding: Int(padding), isBegun: false)
        case .data(let head, let left, let padding, let isBegun):
          guard left == 0 || bytes.readableBytes > 0 else { return nil }
          let part = bytes.readSlice(length: min(left, bytes.readableBytes)) ?? ByteBuffer()
          let isWhole = part.readableBytes == left
          state =
            isWhole ? .skip(padding) : .data(head, left: left - part.readableBytes, padding: padding, isBegun: true)
          let endsStream = head.flags & HTTP2FrameType.endsStream != 0
          return .data(
            stream: head.stream, part,
            begins: isBegun ? nil : DataHead(length: left, counted: head.length, endsStream: endsStream),
            isEnd: isWhole && endsStream)
        case .payload(let head):
          guard let payload = bytes.readSlice(length: head.length) else { return nil }
          state = .head
          if let frame = try frame(head, payload) { return frame }
        case .skip(let count):
          let step = min(count, bytes.readableBytes)
          bytes.moveReaderIndex(forwardBy: step)
          state = step == count ? .head : .skip(count - step)
          if step < count { return nil }
        case .failed(let fault): throw fault
        }
      }
    } catch {
      state = .failed(error)
      bytes = ByteBuffer()
      section = nil
      throw error
    }
  }

  private mutating func readPreface() throws(Fault) -> Bool {
    let count = min(bytes.readableBytes, Self.preface.count)
    guard bytes.readableBytesView.prefix(count).elementsEqual(Self.preface.prefix(count)) else {
      throw Fault(.protocolError)
    }
    guard count == Self.preface.count else { return false }
    bytes.moveReaderIndex(forwardBy: count)
    return true
  }

  private mutating func readHead() -> HTTP2FrameHead? {
    guard let (start, flags, stream) = bytes.readMultipleIntegers(as: (UInt32, UInt8, UInt32).self) else { return nil }
    return HTTP2FrameHead(
      length: Int(start >> 8), type: UInt8(truncatingIfNeeded: start), flags: flags, stream: stream & 0x7FFF_FFFF)
  }

  /// Decides what to do with a frame by its head alone.
  private mutating func begin(_ head: HTTP2FrameHead) throws(Fault) {
    guard head.length <= HTTP2FrameHead.longestPayload else { throw Fault(.frameSizeError) }
    if case .firstHead = state {
      guard head.type == HTTP2FrameType.settings, head.flags & HTTP2FrameType.acknowledges == 0 else {
        throw Fault(.protocolError)
      }
    }
    if let section {
      // Nothing may come between the frames of a section (RFC 9113 §6.10).
      guard head.type == HTTP2FrameType.continuation, head.stream == section.stream,
        section.bytes.readableBytes + head.length <= sectionBytes
      else { throw Fault(.protocolError) }
      guard section.continuations < Self.continuations else { throw Fault(.enhanceYourCalm) }
      return state = .payload(head)
    }
    switch head.type {
    case HTTP2FrameType.data:
      guard head.stream != 0 else { throw Fault(.protocolError) }
      if head.flags & HTTP2FrameType.isPadded == 0 {
        state = .data(head, left: head.length, padding: 0, isBegun: false)
      } else {
        guard head.length > 0 else { throw Fault(.protocolError) }
        state = .padding(head)
      }
    case HTTP2FrameType.headers, HTTP2FrameType.priority, HTTP2FrameType.reset:
      guard head.stream != 0 else { throw Fault(.protocolError) }
      if head.type == HTTP2FrameType.priority, head.length != 5 { throw Fault(.frameSizeError) }
      if head.type == HTTP2FrameType.reset, head.length != 4 { throw Fault(.frameSizeError) }
      state = .payload(head)
    case HTTP2FrameType.settings:
      guard head.stream == 0 else { throw Fault(.protocolError) }
      let isAcknowledgement = head.flags & HTTP2FrameType.acknowledges != 0
      guard isAcknowledgement ? head.length == 0 : head.length % 6 == 0 else { throw Fault(.frameSizeError) }
      state = .payload(head)
    case HTTP2FrameType.ping:
      guard head.length == 8 else { throw Fault(.frameSizeError) }
      guard head.stream == 0 else { throw Fault(.protocolError) }
      state = .payload(head)
    case HTTP2FrameType.goAway:
      guard head.stream == 0 else { throw Fault(.protocolError) }
      guard head.length >= 8 else { throw Fault(.frameSizeError) }
      state = .payload(head)
    case HTTP2FrameType.windowUpdate:
      guard head.length == 4 else { throw Fault(.frameSizeError) }
      state = .payload(head)
    // Clients push nothing, and continue nothing that was not begun.
    case HTTP2FrameType.pushPromise, HTTP2FrameType.continuation: throw Fault(.protocolError)
    default: state = .skip(head.length)
    }
  }

  /// A frame whose payload is here; nil for the part of a field section.
  private mutating func frame(_ head: HTTP2FrameHead, _ payload: ByteBuffer) throws(Fault) -> Frame? {
    var payload = payload
    switch head.type {
    case HTTP2FrameType.headers: return try headers(head, payload)
    case HTTP2FrameType.continuation:
      guard var section else { throw Fault(.protocolError) }
      self.section = nil
      section.bytes.writeImmutableBuffer(payload)
      section.continuations += 1
      return finish(section, head.flags)
    case HTTP2FrameType.priority:
      if payload.readInteger(as: UInt32.self).map({ $0 & 0x7FFF_FFFF }) == head.stream { throw Fault(.protocolError) }
      return .priority
    case HTTP2FrameType.reset: return .reset(stream: head.stream)
    case HTTP2FrameType.settings:
      return head.flags & HTTP2FrameType.acknowledges != 0 ? .settingsAcknowledged : .settings(payload)
    case HTTP2FrameType.ping:
      let data = payload.readInteger(as: UInt64.self) ?? 0
      return head.flags & HTTP2FrameType.acknowledges != 0 ? .pong(data) : .ping(data)
    case HTTP2FrameType.goAway: return .goAway
    default:
      let increment = Int((payload.readInteger(as: UInt32.self) ?? 0) & 0x7FFF_FFFF)
      return .windowUpdate(stream: head.stream, increment)
    }
  }

  /// RFC 9113 §6.2.
  private mutating func headers(_ head: HTTP2FrameHead, _ payload: ByteBuffer) throws(Fault) -> Frame? {
    var payload = payload
    if head.flags & HTTP2FrameType.isPadded != 0 {
      guard let padding: UInt8 = payload.readInteger(), payload.readableBytes >= padding else {
        throw Fault(.protocolError)
      }
      payload.moveWriterIndex(to: payload.writerIndex - Int(padding))
    }
    if head.flags & HTTP2FrameType.hasPriority != 0 {
      guard let (other, _) = payload.readMultipleIntegers(as: (UInt32, UInt8).self),
        other & 0x7FFF_FFFF != head.stream
      else { throw Fault(.protocolError) }
    }
    return finish(
      Section(stream: head.stream, isEnd: head.flags & HTTP2FrameType.endsStream != 0, bytes: payload), head.flags)
  }

  private mutating func finish(_ section: Section, _ flags: UInt8) -> Frame? {
    if flags & HTTP2FrameType.endsHeaders != 0 {
      return .headers(stream: section.stream, section.bytes, isEnd: section.isEnd)
    }
    self.section = section
    return nil
  }
}
