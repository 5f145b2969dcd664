internal import Base
internal import NIOCore

/// A way to a peer: an address by UDP, or a connection by TCP.
struct WebRTCPath {
  let place: STUNResponse.Place
  /// Where datagrams go by UDP; nil for TCP.
  let address: SocketAddress?
  let channel: any Channel
  /// By UDP: the way out of the channel's socket. Nil: by the channel.
  private let outlet: DatagramOutlet?

  /// Nil if the address is no IP address.
  init?(_ address: SocketAddress?, isDatagram: Bool, _ channel: any Channel, _ outlet: DatagramOutlet? = nil) {
    guard let address, let host = NetworkAddress(address), let port = address.port.flatMap({ UInt16(exactly: $0) }),
      // Nothing can be sent there: the system's error would close the socket of all.
      port > 0
    else { return nil }
    place = STUNResponse.Place(address: host, port: port, isDatagram: isDatagram)
    self.address = isDatagram ? address : nil
    self.channel = channel
    self.outlet = outlet
  }

  func isSame(as other: WebRTCPath?) -> Bool { other.map { $0.place == place && $0.channel === channel } ?? false }

  /// Sends a datagram. A connection that does not take it is closed.
  func send(_ datagram: ByteBuffer) {
    if let address {
      if let outlet { return outlet.send(datagram, to: address) }
      channel.writeAndFlush(AddressedEnvelope(remoteAddress: address, data: datagram), promise: nil)
      return
    }
    guard channel.isWritable else { return channel.close(promise: nil) }
    // RFC 4571 §2: the length in front.
    var framed = ByteBuffer()
    framed.reserveCapacity(datagram.readableBytes + 2)
    framed.writeInteger(UInt16(clamping: datagram.readableBytes))
    framed.writeImmutableBuffer(datagram)
    channel.writeAndFlush(framed, promise: nil)
  }

  /// Whether several packets can be sent at a time.
  var takesSeveral: Bool { outlet != nil }

  /// Sends packets of `size` bytes, which begin every `step` bytes; the last one may be shorter.
  func send(_ packets: UnsafeRawBufferPointer, of size: Int, every step: Int) {
    if let address { outlet?.send(packets, of: size, every: step, to: address) }
  }

  /// Whether the kernel takes more, or a little may wait.
  var isWritable: Bool { outlet.map { !$0.isFull } ?? channel.isWritable }

  /// Queues a datagram for `flush`. Only while it is writable.
  func write(_ datagram: ByteBuffer) {
    if let address {
      if let outlet { return outlet.send(datagram, to: address) }
      channel.write(AddressedEnvelope(remoteAddress: address, data: datagram), promise: nil)
    } else {
      channel.write(ByteBuffer(integer: UInt16(clamping: datagram.readableBytes)), promise: nil)
      channel.write(datagram, promise: nil)
    }
  }

  func flush() { if outlet == nil { channel.flush() } }
}
