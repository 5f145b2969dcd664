internal import MPEGTS
internal import NIOCore
internal import Publishing

/// Messages from the server to the worker.
package enum SRTRequest: Sendable, Hashable {
  /// Replaces the table.
  case table(SRTTable)
  /// Connect to a listener and take its media.
  case call(SRTCall)
  /// The connection's publication is admitted: so many further bytes of its media may come.
  case credit(Int32, bytes: UInt32)
  case close(Int32)
}

/// A listener to connect to, and what to say to it.
package struct SRTCall: Sendable, Hashable {
  package var address: String
  package var port: UInt16
  package var streamID: String
  package var passphrase: SRTPassphrase?
  /// Milliseconds.
  package var latency: UInt16

  package init(address: String, port: UInt16, streamID: String, passphrase: SRTPassphrase?, latency: UInt16) {
    (self.address, self.port, self.streamID) = (address, port, streamID)
    (self.passphrase, self.latency) = (passphrase, latency)
  }
}

/// Messages from the worker to the server. Connections have libsrt's numbers, which are not used twice.
enum SRTReply: Sendable, Hashable {
  /// The worker takes callers.
  case listening
  /// The worker cannot work.
  case failed(String)
  /// A caller is connected and held back until it has credit.
  case arrived(SRTArrival)
  /// A caller was rejected.
  case rejected(SRTRefusal)
  /// Media of a connection. `lost`: packets that are missing before it.
  case media(Int32, lost: UInt32, ByteBuffer)
  case figures(Int32, LinkFigures)
  /// A connection has ended, or a call has failed.
  case closed(Int32, String)
}

/// A caller that is connected.
struct SRTArrival: Sendable, Hashable {
  var connection: Int32
  var address: String
  var port: UInt16
  var stream: String
  /// Empty without one. Never printed.
  var key: String
  /// The latency that both sides agreed on, in milliseconds.
  var latency: UInt16
  /// The caller's version of SRT, as 0x010502.
  var version: UInt32
  var isEncrypted: Bool
  /// The programmes that it chose.
  var programs = ProgramChoice.first
}

/// A caller that was rejected.
struct SRTRefusal: Sendable, Hashable {
  var address: String
  var port: UInt16
  /// Empty if it named none.
  var stream: String
  /// As in the access-control guidelines; 0 for libsrt's own.
  var code: UInt16
  var reason: String
  /// The stream ID that came, without secrets. Empty if none came, or if it had nothing to do with the rejection.
  var streamID = ""
}

/// One side of the worker's socket broke the protocol.
struct SRTProtocolError: Error, Sendable, Hashable, CustomStringConvertible {
  var description: String
}

/// Message format: four bytes with the length of type and body, one byte of type, the body. Numbers are big-endian.
enum SRTWire {
  private enum RequestType: UInt8 { case table = 1, call, credit, close }
  private enum ReplyType: UInt8 { case listening = 65, failed, arrived, rejected, media, figures, closed }

  // MARK: requests

  static func encode(_ request: SRTRequest) -> ByteBuffer {
    switch request {
    case .table(let table): message(RequestType.table.rawValue) { $0.write(table) }
    case .call(let call):
      message(RequestType.call.rawValue) { out in
        out.writeInteger(call.port)
        out.writeInteger(call.latency)
        for text in [call.address, call.streamID, call.passphrase?.text ?? ""] { out.write(text) }
      }
    case .credit(let connection, let bytes):
      message(RequestType.credit.rawValue) { $0.writeMultipleIntegers(connection, bytes) }
    case .close(let connection): message(RequestType.close.rawValue) { $0.writeInteger(connection) }
    }
  }

  static func request(_ type: UInt8, _ body: ByteBuffer) throws(SRTProtocolError) -> SRTRequest {
    var body = body
    switch RequestType(rawValue: type) {
    case .table: if let table = body.readTable() { return .table(table) }
    case .call:
      if let (port, latency) = body.readMultipleIntegers(as: (UInt16, UInt16).self), let address = body.readText(),
        let streamID = body.readText(), let phrase = body.readText()
      {
        return .call(
          SRTCall(
            address: address, port: port, streamID: streamID, passphrase: SRTPassphrase(phrase), latency: latency))
      }
    case .credit:
      if let (connection, bytes) = body.readMultipleIntegers(as: (Int32, UInt32).self) {
        return .credit(connection, bytes: bytes)
      }
    case .close: if let connection: Int32 = body.readInteger() { return .close(connection) }
    case nil: break
    }
    throw SRTProtocolError(description: "a request of type \(type) that cannot be read")
  }

  // MARK: replies

  static func encode(_ reply: SRTReply) -> ByteBuffer {
    switch reply {
    case .listening: message(ReplyType.listening.rawValue) { _ in }
    case .failed(let reason): message(ReplyType.failed.rawValue) { $0.write(reason) }
    case .arrived(let caller):
      message(ReplyType.arrived.rawValue) { out in
        out.writeMultipleIntegers(
          caller.connection, caller.port, caller.latency, caller.version, UInt8(caller.isEncrypted ? 1 : 0),
          caller.programs.code)
        for text in [caller.address, caller.stream, caller.key] { out.write(text) }
      }
    case .rejected(let refusal):
      message(ReplyType.rejected.rawValue) { out in
        out.writeMultipleIntegers(refusal.port, refusal.code)
        for text in [refusal.address, refusal.stream, refusal.reason, refusal.streamID] { out.write(text) }
      }
    case .media(let connection, let lost, let bytes):
      message(ReplyType.media.rawValue) { out in
        out.writeMultipleIntegers(connection, lost)
        out.writeImmutableBuffer(bytes)
      }
    case .figures(let connection, let figures):
      message(ReplyType.figures.rawValue) { out in
        out.writeInteger(connection)
        figures.write(to: &out)
      }
    case .closed(let connection, let reason):
      message(ReplyType.closed.rawValue) { out in
        out.writeInteger(connection)
        out.write(reason)
      }
    }
  }

  static func reply(_ type: UInt8, _ body: ByteBuffer) throws(SRTProtocolError) -> SRTReply {
    var body = body
    switch ReplyType(rawValue: type) {
    case .listening: return .listening
    case .failed: if let reason = body.readText() { return .failed(reason) }
    case .arrived:
      if let numbers = body.readMultipleIntegers(as: (Int32, UInt16, UInt16, UInt32, UInt8, UInt32).self),
        let programs = ProgramChoice(code: numbers.5), let address = body.readText(), let stream = body.readText(),
        let key = body.readText()
      {
        return .arrived(
          SRTArrival(
            connection: numbers.0, address: address, port: numbers.1, stream: stream, key: key, latency: numbers.2,
            version: numbers.3, isEncrypted: numbers.4 == 1, programs: programs))
      }
    case .rejected:
      if let (port, code) = body.readMultipleIntegers(as: (UInt16, UInt16).self), let address = body.readText(),
        let stream = body.readText(), let reason = body.readText(), let streamID = body.readText()
      {
        return .rejected(
          SRTRefusal(address: address, port: port, stream: stream, code: code, reason: reason, streamID: streamID))
      }
    case .media:
      if let (connection, lost) = body.readMultipleIntegers(as: (Int32, UInt32).self) {
        return .media(connection, lost: lost, body)
      }
    case .figures:
      if let connection: Int32 = body.readInteger(), let figures = LinkFigures(reading: &body) {
        return .figures(connection, figures)
      }
    case .closed:
      if let connection: Int32 = body.readInteger(), let reason = body.readText() { return .closed(connection, reason) }
    case nil: break
    }
    throw SRTProtocolError(description: "a reply of type \(type) that cannot be read")
  }

  private static func message(_ type: UInt8, _ write: (inout ByteBuffer) -> Void) -> ByteBuffer {
    var out = ByteBuffer()
    out.writeMultipleIntegers(UInt32(0), type)
    write(&out)
    out.setInteger(UInt32(clamping: out.writerIndex &- 4), at: 0)
    return out
  }
}

/// Finds the messages in bytes that come in pieces of any size.
struct SRTMessageReader {
  /// Bytes of a message without its length.
  let limit: Int
  private var bytes = ByteBuffer()

  init(limit: Int) { self.limit = limit }

  mutating func append(_ piece: ByteBuffer) {
    if bytes.readableBytes == 0 {
      bytes = piece
    } else {
      bytes.discardReadBytes()
      bytes.writeImmutableBuffer(piece)
    }
  }

  /// Nil if the next one has not come completely. Throws if it is longer than the limit.
  mutating func next() throws(SRTProtocolError) -> (type: UInt8, body: ByteBuffer)? {
    guard let length = bytes.getInteger(at: bytes.readerIndex, as: UInt32.self) else { return nil }
    guard length > 0, length <= limit else { throw SRTProtocolError(description: "a message of \(length) bytes") }
    guard bytes.readableBytes >= 4 &+ Int(length) else { return nil }
    bytes.moveReaderIndex(forwardBy: 4)
    guard let type: UInt8 = bytes.readInteger(), let body = bytes.readSlice(length: Int(length) &- 1) else {
      return nil
    }
    return (type, body)
  }
}

extension ByteBuffer {
  /// A text with its length, cut to the limit of texts.
  fileprivate mutating func write(_ text: String) {
    let bytes = text.utf8.prefix(SRTLimits.textBytes)
    writeInteger(UInt16(clamping: bytes.count))
    writeBytes(bytes)
  }

  fileprivate mutating func readText() -> String? {
    guard let length: UInt16 = readInteger(), length <= SRTLimits.textBytes else { return nil }
    return readBytes(length: Int(length)).map { String(decoding: $0, as: UTF8.self) }
  }

  fileprivate mutating func write(_ table: SRTTable) {
    write(table.defaultStream?.description ?? "")
    writeMultipleIntegers(table.connectionsPerAddress, table.connections, UInt32(clamping: table.entries.count))
    for entry in table.entries {
      write(entry.names.text)
      write(entry.passphrase?.text ?? "")
      writeInteger(entry.latency)
    }
    writeInteger(UInt8(table.keys == nil ? 0 : 1))
    writeInteger(UInt32(clamping: table.keys?.count ?? 0))
    for key in table.keys ?? [] {
      write(key.names.text)
      writeInteger(UInt8(clamping: key.digest.count))
      writeBytes(key.digest.prefix(255))
    }
    writeInteger(UInt32(clamping: table.busy.count))
    for (name, host) in table.busy {
      write(name)
      write(host)
    }
  }

  fileprivate mutating func readTable() -> SRTTable? {
    var table = SRTTable()
    guard let standard = readText() else { return nil }
    table.defaultStream = StreamName(standard)
    guard let (perAddress, all, entries) = readMultipleIntegers(as: (UInt32, UInt32, UInt32).self) else { return nil }
    (table.connectionsPerAddress, table.connections) = (perAddress, all)
    for _ in 0..<entries {
      guard let names = readText(), let phrase = readText(), let latency: UInt16 = readInteger() else { return nil }
      table.entries.append(
        SRTTable.Entry(names: NamePattern(names), passphrase: SRTPassphrase(phrase), latency: latency))
    }
    guard let (knows, keys) = readMultipleIntegers(as: (UInt8, UInt32).self) else { return nil }
    table.keys = knows == 1 ? [] : nil
    for _ in 0..<keys {
      guard let names = readText(), let count: UInt8 = readInteger(), let digest = readBytes(length: Int(count)) else {
        return nil
      }
      table.keys?.append(SRTTable.Key(names: NamePattern(names), digest: digest))
    }
    guard let busy: UInt32 = readInteger() else { return nil }
    for _ in 0..<busy {
      guard let name = readText(), let host = readText() else { return nil }
      table.busy[name] = host
    }
    return table
  }
}

extension LinkFigures {
  fileprivate func write(to out: inout ByteBuffer) {
    out.writeMultipleIntegers(roundTrip, received, lost, retransmitted, dropped, undecrypted)
    out.writeMultipleIntegers(buffered, latency, bandwidth)
  }

  fileprivate init?(reading body: inout ByteBuffer) {
    guard let counts = body.readMultipleIntegers(as: (UInt32, UInt64, UInt64, UInt64, UInt64, UInt64).self),
      let rest = body.readMultipleIntegers(as: (UInt32, UInt32, UInt64).self)
    else { return nil }
    self.init()
    (roundTrip, received, lost, retransmitted, dropped, undecrypted) = counts
    (buffered, latency, bandwidth) = rest
  }
}
