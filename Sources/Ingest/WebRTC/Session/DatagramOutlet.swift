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
    datagram.withUnsafeReadableBytes { send($0, of: $0.count, to: address) }
  }

  /// Sends packets of `size` bytes each; the last one may be shorter. What the system does not take is lost, like on the way.
  func send(_ packets: UnsafeRawBufferPointer, of size: Int, to address: SocketAddress) {
    guard isOpen, size > 0, !packets.isEmpty else { return }
    address.withSockAddr { name, length in
      if packets.count > size, takesSeveral {
        switch call(packets, size, name, length) {
        case EINVAL, EIO, EMSGSIZE: break  // not to this peer: a narrow way, or a device that makes no checksums
        case ENOPROTOOPT, EOPNOTSUPP: takesSeveral = false
        case EAGAIN, ENOBUFS:
          fullUntil = .now() + .milliseconds(2)
          return
        default: return
        }
      }
      var start = 0
      while start < packets.count {
        let end = min(start + size, packets.count)
        _ = call(UnsafeRawBufferPointer(rebasing: packets[start..<end]), nil, name, length)
        start = end
      }
    }
  }

  /// The system's error; 0 if it took the bytes. `size` is that of each packet; nil for a single one.
  private func call(
    _ bytes: UnsafeRawBufferPointer, _ size: Int?, _ name: UnsafePointer<sockaddr>, _ length: Int
  ) -> CInt {
    var vector = iovec(iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count)
    // A header (its length, level, type) and two bytes, up to a multiple of eight.
    return withUnsafeTemporaryAllocation(byteCount: 24, alignment: 8) { control in
      withUnsafeMutablePointer(to: &vector) { vector in
        var message = msghdr()
        message.msg_name = UnsafeMutableRawPointer(mutating: name)
        message.msg_namelen = socklen_t(length)
        message.msg_iov = vector
        message.msg_iovlen = 1
        if let size {
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
