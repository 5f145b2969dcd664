@testable import HTTP
import NIOCore

/// What a client of HTTP/2 has allowed and got. Traps when the server sends what it may not (RFC 9113 §5.1, §5.2, §6.8).
struct HTTP2Ledger {
  private struct Stream {
    /// The first byte of the fields of the response.
    var status: UInt8?
    var got = 0
    var widened = 0
    /// The server has sent all.
    var hasEnded = false
    /// By one of both.
    var isReset = false
  }

  /// 206 in the static table (RFC 7541, appendix A).
  private static let partial: UInt8 = 0x8A

  private var streams: [UInt32: Stream] = [:]
  private var window = HTTP2Receiver.window
  /// The initial window of a stream, and the largest that it ever was.
  private var initial = HTTP2Receiver.window
  private var largest = HTTP2Receiver.window
  private var goodbye = UInt32.max

  /// A whole frame of the client, before the server gets it.
  mutating func sends(_ frame: ArraySlice<UInt8>) {
    let (type, stream, payload) = Self.parts(frame)
    switch type {
    case HTTP2FrameType.windowUpdate where payload.count == 4:
      let increment = Int(Self.number(payload) & 0x7FFF_FFFF)
      if stream == 0 { window += increment } else { streams[stream, default: Stream()].widened += increment }
    case HTTP2FrameType.reset: streams[stream, default: Stream()].isReset = true
    case HTTP2FrameType.settings where payload.count % 6 == 0:
      for start in stride(from: payload.startIndex, to: payload.endIndex, by: 6)
      where payload[start] == 0 && payload[start + 1] == 4 {
        initial = Int(Self.number(payload[(start + 2)..<(start + 6)]))
        largest = max(largest, initial)
      }
    default: break
    }
  }

  /// What the server writes at once.
  mutating func gets(_ bytes: [UInt8]) {
    var rest = bytes[...]
    while !rest.isEmpty {
      precondition(rest.count >= HTTP2FrameHead.size)
      let length = Self.length(rest)
      precondition(length <= HTTP2FrameHead.size + HTTP2FrameHead.longestPayload && length <= rest.count)
      gets(rest.prefix(length))
      rest = rest.dropFirst(length)
    }
  }

  private mutating func gets(_ frame: ArraySlice<UInt8>) {
    let (type, stream, payload) = Self.parts(frame)
    let isEnd = frame[frame.startIndex + 4] & HTTP2FrameType.endsStream != 0
    var now = streams[stream, default: Stream()]
    switch type {
    case HTTP2FrameType.headers:
      precondition(stream & 1 == 1 && now.status == nil && !now.hasEnded)
      let section = payload.first == 0x20 ? payload.dropFirst() : payload
      if section.elementsEqual(HTTP2Response.goOn.readableBytesView) {
        precondition(!isEnd)
      } else {
        now.status = section.first
        now.hasEnded = isEnd
      }
    case HTTP2FrameType.data:
      precondition(now.status != nil && !now.hasEnded)
      now.got += payload.count
      now.hasEnded = isEnd
      window -= payload.count
      precondition(payload.isEmpty || window >= 0 && now.got <= largest + now.widened)
    case HTTP2FrameType.reset:
      now.isReset = true
    case HTTP2FrameType.goAway:
      let last = Self.number(payload.prefix(4))
      precondition(stream == 0 && last <= goodbye)
      goodbye = last
    default: break
    }
    if stream != 0 { streams[stream] = now }
  }

  /// Whether nothing is left that the server could send now. An endless body may have nothing to send.
  var isSettled: Bool {
    window <= 0
      || streams.values.allSatisfy {
        $0.status == nil || $0.status == Self.partial || $0.hasEnded || $0.isReset
          || initial + $0.widened - $0.got <= 0
      }
  }

  /// Of a frame with its head.
  static func length(_ bytes: ArraySlice<UInt8>) -> Int {
    HTTP2FrameHead.size + Int(number(bytes.prefix(3)))
  }

  private static func parts(_ frame: ArraySlice<UInt8>) -> (type: UInt8, stream: UInt32, payload: ArraySlice<UInt8>) {
    let start = frame.startIndex
    return (
      frame[start + 3], number(frame[(start + 5)..<(start + 9)]) & 0x7FFF_FFFF, frame.dropFirst(HTTP2FrameHead.size)
    )
  }

  private static func number(_ bytes: ArraySlice<UInt8>) -> UInt32 { bytes.reduce(0) { $0 << 8 | UInt32($1) } }
}
