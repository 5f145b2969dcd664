/// A version of a Debian package, in the order of deb-version(7): epoch, upstream version, revision.
struct DebianVersion: Comparable {
  private let epoch: Int
  private let upstream: [UInt8]
  private let revision: [UInt8]

  init(_ text: String) {
    var rest = text[...]
    if let colon = rest.firstIndex(of: ":") {
      epoch = Int(rest[..<colon]) ?? 0
      rest = rest[rest.index(after: colon)...]
    } else {
      epoch = 0
    }
    let hyphen = rest.lastIndex(of: "-")
    upstream = Array(rest[..<(hyphen ?? rest.endIndex)].utf8)
    revision = hyphen.map { Array(rest[rest.index(after: $0)...].utf8) } ?? []
  }

  static func == (one: Self, other: Self) -> Bool { !(one < other) && !(other < one) }

  static func < (one: Self, other: Self) -> Bool {
    if one.epoch != other.epoch { return one.epoch < other.epoch }
    let order = compare(one.upstream, other.upstream)
    return (order == 0 ? compare(one.revision, other.revision) : order) < 0
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

  /// A tilde comes before the end, the end before letters, letters before all others.
  private static func rank(_ byte: UInt8?) -> Int {
    switch byte {
    case nil: 0
    case UInt8(ascii: "~")?: -1
    case let byte? where isDigit(byte): 0
    case let byte? where (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7A: Int(byte)
    case let byte?: Int(byte) + 256
    }
  }

  /// Text without digits and numbers in turn. Negative if `one` comes first.
  private static func compare(_ one: [UInt8], _ other: [UInt8]) -> Int {
    var (one, other) = (one[...], other[...])
    while !one.isEmpty || !other.isEmpty {
      while one.first.map(isDigit) == false || other.first.map(isDigit) == false {
        let order = rank(one.first) - rank(other.first)
        if order != 0 { return order }
        one = one.dropFirst()
        other = other.dropFirst()
      }
      let numbers = (take(&one), take(&other))
      if numbers.0.count != numbers.1.count { return numbers.0.count - numbers.1.count }
      for (left, right) in zip(numbers.0, numbers.1) where left != right { return Int(left) - Int(right) }
    }
    return 0
  }

  /// The number in front, without its leading zeros. Longer ones are greater.
  private static func take(_ text: inout ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    let digits = text.prefix(while: isDigit)
    text = text.dropFirst(digits.count)
    return digits.drop { $0 == 0x30 }
  }
}
