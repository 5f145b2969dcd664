/// Character classes of HTTP/1.1 (RFC 9110 §5.6.2, RFC 9112 §2).
extension UInt8 {
  static let carriageReturn: UInt8 = 0x0D
  static let lineFeed: UInt8 = 0x0A

  /// The lower-case form of an ASCII letter; other bytes are unchanged.
  @inline(__always)
  var lowercased: UInt8 { 0x41...0x5A ~= self ? self | 0x20 : self }

  @inline(__always)
  var isDigit: Bool { 0x30...0x39 ~= self }

  @inline(__always)
  var isBlank: Bool { self == 0x20 || self == 0x09 }

  /// tchar: a character of method and field names.
  @inline(__always)
  var isToken: Bool {
    // Bit masks of the two halves of ASCII.
    if self < 64 { return 0x03FF_6CFA_0000_0000 as UInt64 >> UInt64(self) & 1 == 1 }
    return self < 128 && 0x57FF_FFFF_C7FF_FFFE as UInt64 >> UInt64(self & 63) & 1 == 1
  }

  var hexValue: UInt8? {
    switch self {
    case 0x30...0x39: self &- 0x30
    case 0x41...0x46: self &- 0x37
    case 0x61...0x66: self &- 0x57
    default: nil
    }
  }
}

extension Span<UInt8> {
  /// Whether the text equals `name`, without regard to case. `name` is in lower case.
  @inline(__always)
  func isField(_ name: StaticString) -> Bool {
    name.withUTF8Buffer { expected in
      guard count == expected.count else { return false }
      for index in indices where self[index].lowercased != expected[index] { return false }
      return true
    }
  }

  /// The end of text: the first control character other than a tab from `start` on, or `count`. Tests eight bytes at a time.
  @inline(__always)
  func endOfText(from start: Int) -> Int {
    let raw = bytes
    var index = start
    while true {
      while index &+ 8 <= count {
        let word = raw.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self)
        let ones: UInt64 = 0x0101_0101_0101_0101
        let tops: UInt64 = 0x8080_8080_8080_8080
        let delete = word ^ (ones &* 0x7F)
        // Bytes below 0x20, and bytes that are 0x7F.
        let found = ((word &- ones &* 0x20) & ~word | (delete &- ones) & ~delete) & tops
        guard found == 0 else {
          // A borrow affects only bytes after the first one that was found.
          index &+= found.littleEndian.trailingZeroBitCount / 8
          break
        }
        index &+= 8
      }
      while index < count, self[index] >= 0x20, self[index] != 0x7F { index &+= 1 }
      guard index < count, self[index] == 0x09 else { return index }
      index &+= 1
    }
  }

  /// The end of the token at `start`; `start` when there is none.
  @inline(__always)
  func endOfToken(from start: Int) -> Int {
    var index = start
    while index < count, self[index].isToken { index &+= 1 }
    return index
  }

  /// The part of `range` without blanks at both ends.
  @inline(__always)
  func trimmed(_ range: Range<Int>) -> Range<Int> {
    var (first, end) = (range.lowerBound, range.upperBound)
    while first < end, self[first].isBlank { first &+= 1 }
    while end > first, self[end &- 1].isBlank { end &-= 1 }
    return first..<end
  }

  /// A hash of all bytes. Only for tables that also compare keys, or whose collisions do no harm.
  @inline(__always)
  func mixed() -> UInt64 {
    let raw = bytes
    var hash = UInt64(truncatingIfNeeded: count) &* 0x9E37_79B9_7F4A_7C15
    var index = 0
    while index &+ 8 <= count {
      hash = Self.mix(hash ^ raw.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self))
      index &+= 8
    }
    var rest: UInt64 = 0
    while index < count {
      rest = rest << 8 | UInt64(self[index])
      index &+= 1
    }
    return Self.mix(hash ^ rest)
  }

  @inline(__always)
  private static func mix(_ value: UInt64) -> UInt64 {
    let product = value.multipliedFullWidth(by: 0xD6E8_FEB8_6659_FD93)
    return product.high ^ product.low
  }

  @inline(__always)
  func isEqual(to other: Span<UInt8>) -> Bool {
    guard count == other.count else { return false }
    let (raw, others) = (bytes, other.bytes)
    var index = 0
    while index &+ 8 <= count {
      guard
        raw.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self)
          == others.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self)
      else { return false }
      index &+= 8
    }
    while index < count {
      guard self[index] == other[index] else { return false }
      index &+= 1
    }
    return true
  }
}

extension String {
  /// Invalid UTF-8 is repaired.
  init(copying bytes: Span<UInt8>) {
    self.init(unsafeUninitializedCapacity: bytes.count) { room in
      for index in bytes.indices { room.initializeElement(at: index, to: bytes[index]) }
      return bytes.count
    }
  }
}
