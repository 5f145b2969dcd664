import NIOCore

@testable import Ingest

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
}
