/// A frame as it stands on the wire (RFC 9113 §4.1).
func http2Frame(_ type: UInt8, flags: UInt8 = 0, stream: UInt32 = 0, _ payload: [UInt8] = []) -> [UInt8] {
  var bytes: [UInt8] = []
  for shift in [16, 8, 0] { bytes.append(UInt8(payload.count >> shift & 0xFF)) }
  bytes += [type, flags]
  for shift in [24, 16, 8, 0] as [UInt32] { bytes.append(UInt8(stream >> shift & 0xFF)) }
  return bytes + payload
}

/// The frames of a client that sends before it reads, and those that come back.
enum HTTP2Bytes {
  struct Frame {
    var type: UInt8
    var stream: UInt32
    var payload: [UInt8]
  }

  /// What a client begins with (RFC 9113 §3.4).
  static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + http2Frame(4)
  static let acknowledgement = http2Frame(4, flags: 1)

  /// A request without names that a table would have to keep (RFC 7541 §6.2.2); `isEnd` is whether it has no body.
  static func request(_ path: String, stream: UInt32, isEnd: Bool = true) -> [UInt8] {
    var fields: [UInt8] = [0x82, 0x87, 0x04, UInt8(path.utf8.count)]
    fields += path.utf8
    fields += [0x01, 9]
    fields += "localhost".utf8
    return http2Frame(1, flags: isEnd ? 5 : 4, stream: stream, fields)
  }

  /// The whole frames in `bytes`.
  static func frames(_ bytes: [UInt8]) -> [Frame] {
    var frames: [Frame] = []
    var rest = bytes[...]
    while rest.count >= 9 {
      let head = Array(rest.prefix(9))
      let length = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
      guard rest.count >= 9 + length else { break }
      let stream = head[5...].reduce(0) { $0 << 8 | UInt32($1) }
      frames.append(Frame(type: head[3], stream: stream, payload: Array(rest.dropFirst(9).prefix(length))))
      rest = rest.dropFirst(9 + length)
    }
    return frames
  }

  /// The streams with an answer of 200, which is field 8 of the static table (RFC 7541, appendix A).
  static func answered(_ bytes: [UInt8]) -> Set<UInt32> {
    Set(frames(bytes).filter { $0.type == 1 && $0.payload.first == 0x88 }.map(\.stream))
  }

  /// The streams that were reset, and why.
  static func resets(_ bytes: [UInt8]) -> [UInt32: UInt8] {
    frames(bytes).filter { $0.type == 3 }.reduce(into: [:]) { $0[$1.stream] = $1.payload.last }
  }

  /// The codes of each GOAWAY.
  static func goAways(_ bytes: [UInt8]) -> [UInt8] { frames(bytes).filter { $0.type == 7 }.map { $0.payload[7] } }
}
