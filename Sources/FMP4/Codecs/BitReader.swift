/// Reads bits, most significant first, as the syntax tables of ITU-T H.264 §7.2, H.265 §7.2 and AV1 §4 require. Each
/// read is checked against the end: hostile bytes throw, they never trap.
package struct BitReader {
  private let bytes: [UInt8]
  /// Position of the next unread bit.
  package private(set) var position = 0
  private let end: Int

  package init(_ bytes: [UInt8], from offset: Int = 0) {
    self.bytes = bytes
    end = bytes.count &* 8
    position = min(max(offset, 0), bytes.count) &* 8
  }

  /// The payload of a NAL unit. Skips the header of `headerLength` bytes and removes the emulation prevention bytes (00
  /// 00 03) (H.264 §7.4.1).
  init(nalUnit: [UInt8], headerLength: Int) {
    self.init(Self.withoutEmulationPrevention(nalUnit), from: headerLength)
  }

  /// Number of bits left.
  package var remaining: Int { end &- position }

  /// Reads up to 32 bits as a number.
  package mutating func bits(_ count: Int) throws(CodecError) -> UInt32 {
    guard count <= remaining else { throw ended }
    var value: UInt64 = 0
    var left = count
    while left > 0 {
      let used = position & 7
      let take = min(8 &- used, left)
      let chunk = UInt64(bytes[position >> 3]) >> UInt64(8 &- used &- take) & (1 << UInt64(take) &- 1)
      value = value << UInt64(take) | chunk
      position &+= take
      left &-= take
    }
    return UInt32(truncatingIfNeeded: value)
  }

  package mutating func flag() throws(CodecError) -> Bool {
    try bits(1) != 0
  }

  package mutating func skip(_ count: Int) throws(CodecError) {
    guard count <= remaining else { throw ended }
    position &+= count
  }

  /// Reads whole bytes from any bit on, and `rest` bits of a last one, which zeros fill.
  package mutating func bytes(_ count: Int, andBits rest: Int = 0) throws(CodecError) -> [UInt8] {
    guard count &* 8 &+ rest <= remaining else { throw ended }
    var read: [UInt8] = []
    read.reserveCapacity(count &+ 1)
    if position & 7 == 0 {
      read += bytes[position >> 3..<position >> 3 &+ count]
      position &+= count &* 8
    } else {
      for _ in 0..<count { read.append(UInt8(truncatingIfNeeded: try bits(8))) }
    }
    if rest > 0 { read.append(UInt8(truncatingIfNeeded: try bits(rest) << (8 - UInt32(rest)))) }
    return read
  }

  mutating func alignToByte() {
    position = (position &+ 7) & ~7
  }

  /// ue(v), the Exp-Golomb code of H.264 §9.1, at most `limit`. `name` is the syntax element, for the error.
  mutating func ue(_ name: StaticString, max limit: UInt32 = .max &- 1) throws(CodecError) -> UInt32 {
    var zeros = 0
    while try !flag() {
      zeros &+= 1
      guard zeros <= 31 else { throw outOfRange(name, "more than 32 bits") }
    }
    let value = (UInt32(1) << UInt32(zeros)) &- 1 &+ (try bits(zeros))
    guard value <= limit else { throw outOfRange(name, "\(value), at most \(limit) allowed") }
    return value
  }

  /// se(v), the signed Exp-Golomb code of H.264 §9.1.1.
  @discardableResult
  mutating func se(_ name: StaticString) throws(CodecError) -> Int32 {
    let code = try ue(name)
    let half = Int32(truncatingIfNeeded: code >> 1)
    return code & 1 == 0 ? 0 &- half : half &+ 1
  }

  private var ended: CodecError {
    CodecError(.truncated, "the bits end within a field", offset: bytes.count)
  }

  private func outOfRange(_ name: StaticString, _ text: String) -> CodecError {
    CodecError(.invalid, "\(name) is \(text)", offset: position >> 3)
  }

  private static func withoutEmulationPrevention(_ bytes: [UInt8]) -> [UInt8] {
    var zeros = 0
    var found = false
    for byte in bytes {
      if zeros >= 2, byte == 3 {
        found = true
        break
      }
      zeros = byte == 0 ? zeros &+ 1 : 0
    }
    guard found else { return bytes }
    var result: [UInt8] = []
    result.reserveCapacity(bytes.count)
    zeros = 0
    for byte in bytes {
      if zeros >= 2, byte == 3 {
        zeros = 0
        continue
      }
      zeros = byte == 0 ? zeros &+ 1 : 0
      result.append(byte)
    }
    return result
  }
}
