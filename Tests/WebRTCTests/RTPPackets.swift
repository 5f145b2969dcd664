import NIOCore
@testable import WebRTC

/// Packets as senders make them.
enum RTPPackets {
  static func bytes(
    _ sequence: UInt16, at timestamp: UInt32 = 0, source: UInt32 = 1, type: UInt8 = 98, marker: Bool = false,
    extensions: [UInt8]? = nil, padding: UInt8 = 0, _ payload: [UInt8] = [1]
  ) -> ByteBuffer {
    var bytes = ByteBuffer()
    bytes.writeInteger(UInt8(0x80) | (extensions == nil ? 0 : 0x10) | (padding == 0 ? 0 : 0x20))
    bytes.writeInteger(type | (marker ? 0x80 : 0))
    bytes.writeInteger(sequence)
    bytes.writeInteger(timestamp)
    bytes.writeInteger(source)
    if let extensions {
      bytes.writeInteger(UInt16(0xBEDE))
      bytes.writeInteger(UInt16((extensions.count + 3) / 4))
      bytes.writeBytes(extensions + [UInt8](repeating: 0, count: (4 - extensions.count % 4) % 4))
    }
    bytes.writeBytes(payload)
    if padding > 0 { bytes.writeBytes([UInt8](repeating: 0, count: Int(padding) - 1) + [padding]) }
    return bytes
  }

  static func packet(
    _ sequence: UInt16, at timestamp: UInt32 = 0, marker: Bool = false, _ payload: [UInt8] = [1]
  ) -> RTPPacket? {
    RTPPacket(bytes(sequence, at: timestamp, marker: marker, payload))
  }

  /// A report of a sender (RFC 3550 §6.4.1): at a time, in nanoseconds since the beginning, its count was `timestamp`.
  static func report(_ source: UInt32, _ time: Int64, _ timestamp: UInt32) -> ByteBuffer {
    let wall = 2_208_988_800_000_000_000 + 1_000_000_000_000 + time
    var bytes = ByteBuffer(bytes: [0x80, 200, 0, 6])
    bytes.writeInteger(source)
    bytes.writeInteger(UInt32(wall / 1_000_000_000))
    bytes.writeInteger(UInt32((wall % 1_000_000_000) << 32 / 1_000_000_000))
    bytes.writeInteger(timestamp)
    bytes.writeRepeatingByte(0, count: 8)
    return bytes
  }
}
