/// Replaces the parameter set with the same number, or appends it. Does nothing if the same bytes are there already.
/// Ignores a set whose number is unreadable.
func replaceParameterSet(_ set: [UInt8], in sets: inout [[UInt8]], number: ([UInt8]) -> UInt32?) {
  if sets.contains(set) { return }
  guard let wanted = number(set) else { return }
  if let index = sets.firstIndex(where: { number($0) == wanted }) {
    sets[index] = set
  } else {
    sets.append(set)
  }
}

/// Two hexadecimal digits in capitals, as in the examples of RFC 6381.
func hex(_ byte: UInt8) -> String {
  let text = String(byte, radix: 16, uppercase: true)
  return byte < 16 ? "0" + text : text
}

/// Two decimal digits.
func twoDigits(_ value: UInt8) -> String {
  value < 10 ? "0\(value)" : "\(value)"
}

/// For records that are built outside of a box.
func appendBigEndian(_ value: some FixedWidthInteger, to bytes: inout [UInt8]) {
  withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
}
