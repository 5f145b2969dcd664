internal import NIOCore

/// Reads metadata OBUs (AV1 §5.8). Unreadable ones are ignored.
extension AV1 {
  /// §6.7.1.
  private enum MetadataType: UInt8 {
    case lightLevel = 1
    case masteringDisplay = 2
  }

  /// Reads a metadata OBU's payload into the access unit.
  static func readMetadata(_ payload: ByteBuffer?, into unit: inout AccessUnit) {
    guard var bytes = payload, let type: UInt8 = bytes.readInteger() else { return }
    switch MetadataType(rawValue: type) {
    case .lightLevel:
      guard let (maximum, average) = bytes.readMultipleIntegers(as: (UInt16, UInt16).self) else { return }
      unit.lightLevel = ContentLightLevel(maximum: maximum, maximumAverage: average)
    case .masteringDisplay: unit.masteringDisplay = MasteringDisplay(metadata: &bytes) ?? unit.masteringDisplay
    case nil: break
    }
  }
}

extension MasteringDisplay {
  /// §5.8.4. The OBU has coordinates in fractions of 2¹⁶, and luminances in fractions of 2⁸ and 2¹⁴ cd/m².
  fileprivate init?(metadata bytes: inout ByteBuffer) {
    var points: [Chromaticity] = []
    for _ in 0..<4 {
      guard let (x, y) = bytes.readMultipleIntegers(as: (UInt16, UInt16).self) else { return nil }
      points.append(
        Chromaticity(
          x: UInt16(clamping: Self.scaled(x, 50_000, bits: 16)), y: UInt16(clamping: Self.scaled(y, 50_000, bits: 16))))
    }
    guard let (maximum, minimum) = bytes.readMultipleIntegers(as: (UInt32, UInt32).self) else { return nil }
    self.init(
      red: points[0], green: points[1], blue: points[2], white: points[3],
      maximumLuminance: UInt32(clamping: Self.scaled(maximum, 10_000, bits: 8)),
      minimumLuminance: UInt32(clamping: Self.scaled(minimum, 10_000, bits: 14)))
  }

  /// Converts a fraction of `bits` bits to units of 1/`steps`, rounded.
  private static func scaled(_ value: some FixedWidthInteger & UnsignedInteger, _ steps: UInt64, bits: UInt64) -> UInt64
  {
    (UInt64(value) &* steps &+ 1 << (bits - 1)) >> bits
  }
}
