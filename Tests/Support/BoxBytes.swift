/// Boxes and numbers written by hand, for tests of what reads them: nothing here comes from the writer under test.
package enum BoxBytes {
  /// A box with a size of 32 bits (ISO/IEC 14496-12 §4.2.2).
  package static func box(_ type: String, _ payload: [UInt8] = []) -> [UInt8] {
    u32(UInt32(payload.count + 8)) + Array(type.utf8) + payload
  }

  /// A full box of version 0 and flags 0.
  package static func fullBox(_ type: String, _ payload: [UInt8] = []) -> [UInt8] { box(type, u32(0) + payload) }

  package static func u16(_ value: UInt16) -> [UInt8] { bigEndian(value) }
  package static func u32(_ value: UInt32) -> [UInt8] { bigEndian(value) }
  package static func u64(_ value: UInt64) -> [UInt8] { bigEndian(value) }

  private static func bigEndian<T: FixedWidthInteger>(_ value: T) -> [UInt8] {
    withUnsafeBytes(of: value.bigEndian) { Array($0) }
  }
}
