internal import Glibc
internal import NIOCore

extension SocketAddress {
  /// The address as the calls for groups of any family take it.
  fileprivate var storage: sockaddr_storage {
    var storage = sockaddr_storage()
    withUnsafeMutableBytes(of: &storage) { room in
      withSockAddr { address, size in
        room.copyMemory(from: UnsafeRawBufferPointer(start: address, count: min(size, room.count)))
      }
    }
    return storage
  }
}

/// Why an interface cannot join a group.
struct InterfaceError: Error, CustomStringConvertible {
  let name: String

  var description: String { "there is no network interface \(name); ip link lists them" }
}

extension Channel {
  /// Joins the multicast group of a place, for its sender alone if it names one (RFC 3678 §5.1). The interface's number
  /// comes from the socket, which works where netlink is forbidden.
  func join(_ place: DatagramPlace) -> EventLoopFuture<Void> {
    var index: UInt32 = 0
    if let name = place.interface {
      index = if_nametoindex(name)
      guard index > 0 else { return eventLoop.makeFailedFuture(InterfaceError(name: name)) }
    }
    guard let socket = self as? any SocketOptionProvider else {
      return eventLoop.makeFailedFuture(ChannelError.operationUnsupported)
    }
    let isIPv6 = if case .v6 = place.address { true } else { false }
    let level = NIOBSDSocket.OptionLevel(rawValue: CInt(isIPv6 ? IPPROTO_IPV6 : IPPROTO_IP))
    guard let sender = place.sender else {
      return socket.unsafeSetSocketOption(
        level: level, name: NIOBSDSocket.Option(rawValue: CInt(MCAST_JOIN_GROUP)),
        value: group_req(gr_interface: index, gr_group: place.address.storage))
    }
    return socket.unsafeSetSocketOption(
      level: level, name: NIOBSDSocket.Option(rawValue: CInt(MCAST_JOIN_SOURCE_GROUP)),
      value: group_source_req(gsr_interface: index, gsr_group: place.address.storage, gsr_source: sender.storage))
  }
}
