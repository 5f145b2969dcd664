package import NIOCore

/// A hash that tells contents apart (FNV-1a, 64 bits). Bytes are added; it is no protection against those who want two equal ones.
package struct ContentHash {
  private var value: UInt64 = 0xCBF2_9CE4_8422_2325

  package init() {}

  package mutating func add(_ bytes: UnsafeRawBufferPointer) {
    for byte in bytes { value = (value ^ UInt64(byte)) &* 0x100_0000_01B3 }
  }

  package mutating func add(_ bytes: ByteBuffer) {
    bytes.withUnsafeReadableBytes { add($0) }
  }

  /// The hash in 13 letters and digits at most.
  package var text: String { String(value, radix: 36) }
}
