internal import CChecksum
package import NIOCore

/// CRC-32C, which shows that a recording's fragments are whole. Bytes are added; the checksum can be read at any time.
package struct Checksum: Sendable, Hashable {
  package private(set) var value: UInt32 = 0

  package init() {}

  package mutating func add(_ bytes: ByteBuffer) {
    value = bytes.withUnsafeReadableBytes { weir_crc32c(value, $0.baseAddress, $0.count) }
  }

  package static func of(_ bytes: ByteBuffer) -> UInt32 {
    var checksum = Checksum()
    checksum.add(bytes)
    return checksum.value
  }
}
