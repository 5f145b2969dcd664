internal import MPEGTS
internal import NIOCore

/// The packets of a transport stream in a datagram: whole packets of 188 or 204 bytes, also behind an RTP header (RFC 2250
/// §2). Packets that RTP brings in another order are taken in the order of arrival.
enum TransportDatagram {
  private static let packetSizes = [188, 204]
  /// A header without contributing sources and extension (RFC 3550 §5.1).
  private static let rtpHeaderBytes = 12
  /// Version 2, without padding, extension and sources.
  private static let rtpVersion: UInt8 = 0x80
  /// RFC 3551 §6. The first bit is a marker.
  private static let rtpPayloadType: UInt8 = 33

  /// Nil if the datagram holds anything else.
  static func packets(in datagram: ByteBuffer) -> ByteBuffer? {
    var bytes = datagram
    if let header: UInt16 = bytes.getInteger(at: bytes.readerIndex), UInt8(header >> 8) == rtpVersion,
      UInt8(header & 0x7F) == rtpPayloadType
    {
      guard bytes.readSlice(length: rtpHeaderBytes) != nil else { return nil }
    }
    let count = bytes.readableBytes
    let isWhole = packetSizes.contains { size in
      count > 0 && count % size == 0
        && stride(from: 0, to: count, by: size).allSatisfy {
          bytes.getInteger(at: bytes.readerIndex &+ $0) == TransportPacketFinder.syncByte
        }
    }
    return isWhole ? bytes : nil
  }
}
