@testable import HTTP
import NIOCore

extension FuzzTarget {
  /// The first byte says into which pieces the rest falls: nothing depends on them. What waits for more is bounded.
  static func http2(_ bytes: [UInt8]) {
    guard let size = bytes.first.map({ 1 + Int($0) }) else { return }
    // The fuzzer need not find the preface.
    let whole = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + [0, 0, 0, 4, 0, 0, 0, 0, 0] + bytes.dropFirst()
    let uncut = HTTP2Reading([whole])
    let cut = HTTP2Reading(
      stride(from: 0, to: whole.count, by: size).map { Array(whole[$0..<min($0 + size, whole.count)]) })
    precondition(uncut == cut)
    precondition(cut.heldBytes <= 2 * HTTPLimits().headerBytes + 2 * HTTP2FrameHead.longestPayload)
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
}
