internal import NIOCore

/// Reads server-sent events (WHATWG HTML §9.2.6), of which pieces arrive. Comments and `retry` are passed over.
struct ServerSentEvents {
  struct Message: Hashable {
    /// The field `event`; "message" without one.
    var kind = "message"
    var data = ""
  }

  /// The response is no stream of events that this reads.
  struct TooLong: Error, CustomStringConvertible {
    let description = "the server sends a line of more than \(ServerSentEvents.longestLine) bytes"
  }

  /// An event has at most `Event.longestData` bytes of data, and some hundred around them.
  static let longestLine = 64 << 10

  private var line: [UInt8] = []
  private var message = Message()
  private var hasData = false

  /// The messages that end in the piece.
  mutating func read(_ piece: ByteBuffer) throws(TooLong) -> [Message] {
    var messages: [Message] = []
    for byte in piece.readableBytesView {
      guard byte == UInt8(ascii: "\n") else {
        guard line.count < Self.longestLine else { throw TooLong() }
        line.append(byte)
        continue
      }
      if let message = endLine() { messages.append(message) }
      line.removeAll(keepingCapacity: true)
    }
    return messages
  }

  private mutating func endLine() -> Message? {
    if line.last == UInt8(ascii: "\r") { line.removeLast() }
    guard !line.isEmpty else {
      defer { (message, hasData) = (Message(), false) }
      return hasData ? message : nil
    }
    let name = line.prefix { $0 != UInt8(ascii: ":") }
    var value = line.dropFirst(name.count + 1)
    if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
    let text = String(decoding: value, as: UTF8.self)
    switch String(decoding: name, as: UTF8.self) {
    case "event": message.kind = text
    case "data":
      // An endless message is no event of weir's.
      if message.data.utf8.count < Self.longestLine { message.data += (hasData ? "\n" : "") + text }
      hasData = true
    default: break
    }
    return nil
  }
}
