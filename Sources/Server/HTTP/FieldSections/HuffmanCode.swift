internal import NIOCore

/// The code for texts in field sections (RFC 7541 §5.2, appendix B). It is canonical: codes of one length follow each other in
/// the order of their symbols, and longer codes follow shorter ones. So the lengths say everything.
struct HuffmanCode: Sendable {
  static let standard = HuffmanCode()

  /// The bits of each symbol's code; the last symbol marks the end and never stands in a text.
  static let lengths: [UInt8] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7,
    7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21,
    23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24,
    21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
  ]
  private static let longest = 30
  /// The symbol that no text has.
  private static let end: UInt16 = 256

  /// By the next eight bits: the symbol in the low byte, the length of its code above it. 0 for longer codes.
  private let short: [UInt16]
  /// All symbols in the order of their codes.
  private let symbols: [UInt16]
  /// By length: the first code, and the position of its symbol.
  private let first: [(code: UInt32, position: UInt32)]

  private init() {
    let symbols = (0..<Self.lengths.count).sorted { (Self.lengths[$0], $0) < (Self.lengths[$1], $1) }
    var short = [UInt16](repeating: 0, count: 256)
    var first = [(code: UInt32, position: UInt32)](repeating: (0, 0), count: Self.longest + 2)
    var code: UInt32 = 0
    var position = 0
    for length in 1...Self.longest {
      code <<= 1
      first[length] = (code, UInt32(position))
      while position < symbols.count, Int(Self.lengths[symbols[position]]) == length {
        if length <= 8 {
          let start = Int(code) << (8 - length)
          for index in start..<start + 1 << (8 - length) {
            short[index] = UInt16(length) << 8 | UInt16(symbols[position])
          }
        }
        code += 1
        position += 1
      }
    }
    first[Self.longest + 1] = (0, UInt32(position))
    self.short = short
    self.symbols = symbols.map { UInt16($0) }
    self.first = first
  }

  /// Appends the text of `bytes` to `buffer`. False when they are no code, or are not padded as they must be.
  func decode(_ bytes: Span<UInt8>, into buffer: inout ByteBuffer) -> Bool {
    var isRight = false
    // The shortest codes have five bits.
    buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: bytes.count &* 8 / 5) { room in
      var bits: UInt64 = 0
      var count = 0
      var (index, written) = (0, 0)
      while true {
        while count <= 56, index < bytes.count {
          bits = bits << 8 | UInt64(bytes[index])
          count &+= 8
          index &+= 1
        }
        // The next bits, filled up with zeros at the end.
        let next = UInt32(truncatingIfNeeded: count >= 32 ? bits >> UInt64(count &- 32) : bits << UInt64(32 &- count))
        let entry = short[Int(next >> 24)]
        let (symbol, length) = entry != 0 ? (entry & 0xFF, Int(entry >> 8)) : long(next)
        guard length <= count else {
          // Less than a byte of ones (RFC 7541 §5.2).
          let padding = UInt64(1) << UInt64(count) &- 1
          isRight = count < 8 && bits & padding == padding
          return written
        }
        guard symbol != Self.end, written < room.count else { return written }
        room[written] = UInt8(truncatingIfNeeded: symbol)
        written &+= 1
        count &-= length
      }
    }
    return isRight
  }

  /// The symbol of a code of more than eight bits, at the front of `next`.
  private func long(_ next: UInt32) -> (symbol: UInt16, length: Int) {
    for length in 9...Self.longest {
      let place = Int(next >> UInt32(32 &- length)) &- Int(first[length].code)
      let start = Int(first[length].position)
      if place >= 0, place < Int(first[length &+ 1].position) &- start { return (symbols[start &+ place], length) }
    }
    return (Self.end, Self.longest)
  }
}
