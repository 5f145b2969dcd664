/// The Range field of a request (RFC 9110 §14.2), for a body of known length.
package enum ByteRange: Equatable {
  /// The whole body: another unit, an invalid field, or several ranges. A server may ignore Range; ignoring a list also makes
  /// a thousand ranges harmless.
  case whole
  /// 206: these bytes, which all exist.
  case part(Range<Int>)
  /// 416: none of the requested bytes exists.
  case unsatisfiable

  /// `length` is that of the body, in bytes.
  package init(_ field: String, length: Int) {
    self = .whole
    let bytes = field.utf8
    let unit = "bytes=".utf8
    guard bytes.count > unit.count, bytes.count <= 64 else { return }
    guard zip(bytes, unit).allSatisfy({ $0 | 0x20 == $1 | 0x20 }) else { return }
    let range = bytes.dropFirst(unit.count).filter { $0 != 0x20 && $0 != 0x09 }
    let ends = range.split(separator: UInt8(ascii: "-"), maxSplits: 1, omittingEmptySubsequences: false)
    guard ends.count == 2 else { return }
    switch (Self.number(ends[0]), Self.number(ends[1])) {
    case (.value(let first), .value(let last)):
      guard first <= last else { return }
      self = first < length ? .part(first..<min(last &+ 1, length)) : .unsatisfiable
    case (.value(let first), .empty):
      self = first < length ? .part(first..<length) : .unsatisfiable
    case (.empty, .value(let suffix)):
      self = suffix > 0 && length > 0 ? .part(max(0, length &- suffix)..<length) : .unsatisfiable
    default: return
    }
  }

  private enum Number {
    case empty
    case value(Int)
    case malformed
  }

  /// A number too large for any file counts as the largest one below `Int.max`.
  private static func number(_ digits: ArraySlice<UInt8>) -> Number {
    guard !digits.isEmpty else { return .empty }
    var value = 0
    for digit in digits {
      guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) else { return .malformed }
      let (product, overflow) = value.multipliedReportingOverflow(by: 10)
      value = overflow || product >= Int.max - 10 ? Int.max - 10 : product + Int(digit & 0x0F)
    }
    return .value(min(value, Int.max - 1))
  }
}
