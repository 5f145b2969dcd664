package import NIOCore

extension ByteBuffer {
  /// Writes a number in decimal, padded with zeros to `minimumDigits` (1 to 19). No string is allocated: a playlist of ten
  /// hours has 18,000 lines.
  package mutating func writeDecimal(_ value: UInt64, minimumDigits: Int = 1) {
    var rest = value
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { room in
      var at = room.endIndex
      repeat {
        at -= 1
        room[at] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: rest % 10)
        rest /= 10
      } while rest > 0 || (room.endIndex - at < minimumDigits && at > 0)
      writeBytes(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(room)[at...]))
    }
  }
}
