/// Bits as text, for tests of what reads bits.
package enum BitText {
  /// The bytes of zeros and ones; other characters are passed over. Zeros fill the last byte.
  package static func bytes(_ text: String) -> [UInt8] {
    var bits = text.compactMap { $0 == "0" || $0 == "1" ? UInt8($0 == "1" ? 1 : 0) : nil }
    while bits.count % 8 != 0 { bits.append(0) }
    return stride(from: 0, to: bits.count, by: 8).map { start in bits[start..<start + 8].reduce(0) { $0 << 1 | $1 } }
  }

  /// The lowest `count` bits of a number.
  package static func number(_ value: Int, _ count: Int) -> String {
    String((0..<count).map { value >> (count - 1 - $0) & 1 == 1 ? "1" : "0" })
  }
}
