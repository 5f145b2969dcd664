@testable import HTTP
import NIOCore

extension FuzzTarget {
  /// The first byte says into which pieces the rest falls: nothing that is read depends on them. What waits for more is bounded.
  /// A connection that answers gets the same.
  static func http2(_ bytes: [UInt8]) {
    guard let size = bytes.first.map({ 1 + Int($0) }) else { return }
    // The fuzzer need not find the preface.
    let whole = HTTP2Bytes.preface + bytes.dropFirst()
    let uncut = HTTP2Reading([whole])
    let cut = HTTP2Reading(
      stride(from: 0, to: whole.count, by: size).map { Array(whole[$0..<min($0 + size, whole.count)]) })
    precondition(uncut == cut)
    precondition(cut.heldBytes <= 2 * HTTPLimits().headerBytes + 2 * HTTP2FrameHead.longestPayload)
    guard let connection = FuzzConnection() else { return }
    connection.receive(HTTP2Bytes.preface[...], framesAtOnce: 1)
    connection.receive(bytes.dropFirst(), framesAtOnce: 1 + size % 8)
    connection.end()
  }

  /// Sections behind each other on one connection; the first byte of each is its length.
  static func fieldSections(_ bytes: [UInt8]) {
    var reader = FieldSectionReader(largest: 4096)
    var rest = bytes[...]
    while let length = rest.popFirst() {
      let section = ByteBuffer(bytes: rest.prefix(Int(length)))
      rest = rest.dropFirst(Int(length))
      var builder = HTTP2HeadBuilder(limits: .init(HTTPLimits()))
      do {
        try reader.read(section, into: &builder)
      } catch {
        return
      }
      precondition(reader.table.bytes.count <= 3 * FieldTable.largest)
      if builder.isValid, !builder.isTooLarge { _ = builder.head(isComplete: true).fields.all }
    }
  }

  /// More fields than a table can have, in sections of 60: it gives the places of old ones back.
  static var manyFields: [UInt8] {
    let field: [UInt8] = [0x40, 1, 0x61, 0]
    let section = [UInt8](repeating: 0, count: 60).flatMap { _ in field }
    return (0..<10).flatMap { _ in [UInt8(section.count)] + section }
  }

  /// Requests of each kind, uploads, and ends of connections, with orders to the server (`FuzzConnection`).
  static var http2Connections: [[UInt8]] {
    func order(_ number: UInt8, _ value: UInt8 = 0) -> [UInt8] { http2Frame(0xF0 + number, [value]) }
    func widen(_ stream: UInt32) -> [UInt8] { http2Frame(8, stream: stream, [0, 1, 0, 0]) }
    let kinds = (0..<8).map { HTTP2Bytes.request("/\($0)~9", stream: UInt32(2 * $0 + 1)) }
    let upload = http2Frame(1, flags: 4, stream: 1, [0x83, 0x87, 0x04, 2, 0x2F, 0x78, 0x01, 1, 0x68])
    let data = http2Frame(0, stream: 1, [UInt8](repeating: 1, count: 40))
    let end = http2Frame(0, flags: 1, stream: 1, [1])
    let small = http2Frame(4, [0, 4, 0, 0, 0, 9])
    let answers =
      kinds.joined() + order(0, 9) + order(2, 250) + order(0, 250) + widen(0) + widen(3) + widen(7) + order(3)
    let stalled =
      small + kinds.joined() + order(9) + order(1) + order(2, 9) + order(11, 99) + order(10) + order(11, 255)
    let starved =
      kinds.joined() + [1, 11, 13].flatMap(widen) + http2Frame(8, [0, 0, 0, 9]) + http2Frame(8, [0, 0, 0, 9])
    let again = kinds[6] + order(13) + HTTP2Bytes.request("/6~9", stream: 15) + HTTP2Bytes.request("/7", stream: 17)
    let taken = upload + data + order(4) + data + order(5) + data + order(6) + end + order(7, 3)
    let stopped = kinds[2] + order(12) + http2Frame(6, flags: 1, [0, 0, 0, 0, 0x77, 0x65, 0x69, 0x72])
    return [
      [0] + answers, [7] + answers, [1] + stalled, [0] + starved, [0] + again, [0] + taken,
      [3] + upload + data + order(8),
      [0] + stopped + HTTP2Bytes.request("/2", stream: 7) + order(0) + order(0),
      [0] + kinds[3] + order(12) + order(11, 30),
      [0] + upload + order(4) + http2Frame(3, stream: 1, [0, 0, 0, 8]) + kinds[2]
        + http2Frame(7, [0, 0, 0, 0, 0, 0, 0, 0]),
    ]
  }
}
