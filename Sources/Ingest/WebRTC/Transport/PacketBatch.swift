internal import NIOCore

/// Encrypted packets for one viewer on their way out by UDP: those of one size together, of which the last may be shorter. Its memory
/// is used again for the next viewer.
final class PacketBatch {
  private var bytes = ByteBuffer()
  /// Bytes of each packet.
  private var size = 0
  private var count = 0

  /// Where packets begin: libsrtp reads them as words. Memory of a buffer begins at such a place.
  static let alignment = 8

  /// From the beginning of a packet to the next one's.
  private var step: Int { (size + Self.alignment - 1) / Self.alignment * Self.alignment }

  /// Adds the packet that `write` appends, and sends what is complete.
  func add(to path: WebRTCPath, _ write: (inout ByteBuffer) -> Bool) {
    let before = bytes.readableBytes
    let start = count * step
    bytes.writeRepeatingByte(0, count: start - before)
    guard write(&bytes) else { return bytes.moveWriterIndex(to: before) }
    let added = bytes.readableBytes - start
    if count > 0, added > size {
      send(before, path)
      bytes.moveReaderIndex(forwardBy: start)
      bytes.discardReadBytes()
      count = 0
    }
    if count == 0 { size = added }
    count += 1
    let isFull = count == DatagramOutlet.mostPackets || (count + 1) * step > DatagramOutlet.mostBytes
    if added < size || isFull { flush(path) }
  }

  /// Sends what is left.
  func flush(_ path: WebRTCPath) {
    guard count > 0 else { return }
    send(bytes.readableBytes, path)
    bytes.clear()
    count = 0
  }

  private func send(_ length: Int, _ path: WebRTCPath) {
    bytes.withUnsafeReadableBytes { path.send(UnsafeRawBufferPointer(rebasing: $0[..<length]), of: size, every: step) }
  }
}
