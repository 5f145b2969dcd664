internal import Glibc
internal import NIOCore

/// The way out of a listener's UDP socket, beside its channel. An error of the system concerns the datagram that it happened to:
/// by the channel it would close the socket of all. Packets of one size for one peer go out in one call, which the kernel takes
/// apart (UDP_SEGMENT, Linux 4.18 and newer). Used on the listener's event loop.
final class DatagramOutlet {
  /// What one call takes at most. The kernel's bounds are 64 packets and 64 KiB.
  static let (mostPackets, mostBytes) = (60, 60_000)

  private let descriptor: CInt
  private var isOpen = true
  private var fullUntil: NIODeadline?
  /// The system takes several packets at a time.
  private(set) var takesSeveral = true

  /// From linux/udp.h.
  private static let (udp, segment): (CInt, CInt) = (17, 103)
  /// From linux/in.h. Packets are as small as paths are wide, so reports of narrow ones, which anybody can make up, count for
  /// nothing.
  private static let (mtuDiscovery, mtuDiscovery6, byInterface): (CInt, CInt, CInt) = (10, 23, 4)

  /// The channel owns the descriptor. It says when that is closed.
  init(_ descriptor: CInt) {
    self.descriptor = descriptor
    var value = Self.byInterface
    let size = socklen_t(MemoryLayout<CInt>.size)
    _ = setsockopt(descriptor, CInt(IPPROTO_IP), Self.mtuDiscovery, &value, size)
    // A socket of IPv6 alone has both.
    _ = setsockopt(descriptor, CInt(IPPROTO_IPV6), Self.mtuDiscovery6, &value, size)
    // An older kernel does not refuse what it does not know: it would send all packets as one.
    var length = size
    takesSeveral = getsockopt(descriptor, Self.udp, Self.segment, &value, &length) == 0
  }

  /// The kernel has just refused packets for want of room: viewers wait a little.
  var isFull: Bool {
    guard let until = fullUntil else { return false }
    if until > .now() { return true }
    fullUntil = nil
    return false
  }

  func close() { isOpen = false }

  func send(_ datagram: ByteBuffer, to address: SocketAddress) {
    datagram.withUnsafeReadableBytes { send($0, of: $0.count, every: $0.count, to: address) }
  }

  /// Sends packets of `size` bytes, which begin every `step` bytes; the last one may be shorter. What the system does not take is
  /// lost, like on the way.
  func send(_ packets: UnsafeRawBufferPointer, of size: Int, every step: Int, to address: SocketAddress) {
    guard isOpen, size > 0, step >= size, !packets.isEmpty else { return }
    address.withSockAddr { name, length in
      let count = (packets.count + step - 1) / step
      if count > 1, count <= Self.mostPackets, takesSeveral {
        switch call(packets, size, step, name, length) {
        case EINVAL, EIO, EMSGSIZE: break  // not to this peer: a narrow way, or a device that makes no checksums
        case ENOPROTOOPT, EOPNOTSUPP: takesSeveral = false
        case EAGAIN, ENOBUFS:
          fullUntil = .now() + .milliseconds(2)
          return
        default: return
        }
      }
      for start in stride(from: 0, to: packets.count, by: step) {
        let end = min(start + size, packets.count)
        _ = call(UnsafeRawBufferPointer(rebasing: packets[start..<end]), size, step, name, length)
      }
    }
  }

  /// The system's error; 0 if it took the bytes: one packet, or several.
  private func call(
    _ bytes: UnsafeRawBufferPointer, _ size: Int, _ step: Int, _ name: UnsafePointer<sockaddr>, _ length: Int
  ) -> CInt {
    let count = (bytes.count + step - 1) / step
    return withUnsafeTemporaryAllocation(of: iovec.self, capacity: count) { pieces in
      for index in 0..<count {
        let start = index * step
        pieces.initializeElement(
          at: index,
          to: iovec(
            iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress?.advanced(by: start)),
            iov_len: min(size, bytes.count - start)))
      }
      // A header (its length, level, type) and two bytes, up to a multiple of eight.
      return withUnsafeTemporaryAllocation(byteCount: 24, alignment: 8) { control in
        var message = msghdr()
        message.msg_name = UnsafeMutableRawPointer(mutating: name)
        message.msg_namelen = socklen_t(length)
        message.msg_iov = pieces.baseAddress
        message.msg_iovlen = count
        if count > 1 {
          control.initializeMemory(as: UInt8.self, repeating: 0)
          control.storeBytes(of: 18, as: Int.self)
          control.storeBytes(of: Self.udp, toByteOffset: 8, as: CInt.self)
          control.storeBytes(of: Self.segment, toByteOffset: 12, as: CInt.self)
          control.storeBytes(of: UInt16(clamping: size), toByteOffset: 16, as: UInt16.self)
          message.msg_control = control.baseAddress
          message.msg_controllen = control.count
        }
        return sendmsg(descriptor, &message, CInt(MSG_NOSIGNAL)) >= 0 ? 0 : errno
      }
    }
  }
}
