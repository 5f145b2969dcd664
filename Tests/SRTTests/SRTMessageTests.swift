@testable import MPEGTS
import NIOCore
import Publishing
@testable import SRT
import Testing

/// What server and worker say to each other.
@Suite struct SRTMessageTests {
  private static var table: SRTTable {
    var table = SRTTable()
    table.entries = [
      SRTTable.Entry(names: NamePattern("cam*"), passphrase: SRTPassphrase("0123456789"), latency: 250),
      SRTTable.Entry(names: NamePattern("*"), passphrase: nil, latency: 120),
    ]
    table.keys = [SRTTable.Key(names: NamePattern("cam"), digest: Secret("key").digest)]
    table.busy = ["cam": "192.0.2.1", "stage": ""]
    (table.connectionsPerAddress, table.connections) = (7, 12)
    table.defaultStream = StreamName("stage")
    return table
  }

  private static var requests: [SRTRequest] {
    var unknowing = table
    unknowing.keys = nil
    return [
      .table(table), .table(unknowing), .table(SRTTable()),
      .call(
        SRTCall(
          address: "2001:db8::1", port: 9000, streamID: "#!::r=cam", passphrase: SRTPassphrase("0123456789"),
          latency: 500)),
      .credit(-5, bytes: .max), .close(7),
    ]
  }

  private static var replies: [SRTReply] {
    var figures = LinkFigures()
    (figures.roundTrip, figures.dropped, figures.bandwidth) = (300_000, .max, 1 << 33)
    return [
      .listening, .failed("no socket"),
      .arrived(
        SRTArrival(
          connection: 1 << 29, address: "192.0.2.1", port: 65535, stream: "cam", key: "k", latency: 120,
          version: 0x010502, isEncrypted: true, programs: .number(7))),
      .arrived(
        SRTArrival(
          connection: 2, address: "::1", port: 1, stream: "cam", key: "", latency: 120, version: 0, isEncrypted: false,
          programs: .each)),
      .rejected(SRTRefusal(address: "::1", port: 1, stream: "", code: 1400, reason: "no name")),
      .rejected(SRTRefusal(address: "::1", port: 1, stream: "", code: 1400, reason: "no name", streamID: "a***")),
      .media(3, lost: 9, ByteBuffer(repeating: 0x47, count: 1316)), .media(3, lost: 0, ByteBuffer()),
      .figures(3, figures), .closed(3, "it left"),
    ]
  }

  @Test func messagesComeInPiecesOfAnySize() throws {
    var bytes = ByteBuffer()
    for reply in Self.replies { bytes.writeImmutableBuffer(SRTWire.encode(reply)) }
    for size in [1, 3, 1000, bytes.readableBytes] {
      var (reader, rest) = (SRTMessageReader(limit: SRTLimits.messageBytes), bytes)
      var replies: [SRTReply] = []
      while let piece = rest.readSlice(length: min(size, rest.readableBytes)), piece.readableBytes > 0 {
        reader.append(piece)
        while let (type, body) = try reader.next() { replies.append(try SRTWire.reply(type, body)) }
      }
      #expect(replies == Self.replies)
    }
  }

  @Test func requestsSurviveTheWay() throws {
    for request in Self.requests {
      var reader = SRTMessageReader(limit: SRTLimits.tableBytes)
      reader.append(SRTWire.encode(request))
      let (type, body) = try #require(try reader.next())
      #expect(try SRTWire.request(type, body) == request)
    }
  }

  @Test func anyShorterMessageIsAnErrorOrAnotherMessage() {
    for bytes in Self.replies.map(SRTWire.encode) + Self.requests.map(SRTWire.encode) {
      for length in 0..<bytes.readableBytes {
        var body = bytes
        body.moveReaderIndex(forwardBy: 5, or: length)
        _ = try? SRTWire.reply(bytes.getInteger(at: 4) ?? 0, body)
        _ = try? SRTWire.request(bytes.getInteger(at: 4) ?? 0, body)
      }
    }
  }

  @Test(arguments: [0, UInt32(SRTLimits.messageBytes) + 1, .max])
  func aMessageOfAnImpossibleLengthIsAnError(_ length: UInt32) {
    var reader = SRTMessageReader(limit: SRTLimits.messageBytes)
    reader.append(ByteBuffer(integer: length))
    #expect(throws: SRTProtocolError.self) { _ = try reader.next() }
  }
}

extension ByteBuffer {
  /// Drops the head and keeps so many bytes of what follows.
  fileprivate mutating func moveReaderIndex(forwardBy head: Int, or length: Int) {
    moveReaderIndex(forwardBy: min(head, readableBytes))
    self = readSlice(length: min(length, readableBytes)) ?? ByteBuffer()
  }
}
