internal import Base
package import NIOCore

/// Where the datagrams of a transport stream arrive, and which of them are taken.
package struct DatagramPlace: Sendable, Hashable {
  /// The local address, or the multicast group, with the port.
  package var address: SocketAddress
  /// Name of the network interface that joins the group. Nil if the system chooses it.
  package var interface: String?
  /// The only address that is listened to. Nil for any.
  package var sender: SocketAddress?
  /// Number of the programme. Nil for the first one with a track.
  package var program: UInt16?

  package init(
    address: SocketAddress, interface: String? = nil, sender: SocketAddress? = nil, program: UInt16? = nil
  ) {
    self.address = address
    self.interface = interface
    self.sender = sender
    self.program = program
  }

  /// `udp://239.1.1.1:5000`, for log lines.
  var text: String { "udp://\(PeerText.place(of: address))" }
}
