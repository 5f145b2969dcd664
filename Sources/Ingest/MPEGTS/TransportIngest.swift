package import Base
internal import FMP4
package import Logging
package import NIOCore
package import Publishing

/// The way in for transport streams that clients send as bodies of requests. It has no socket: a server of requests hands
/// in the bytes.
package final class TransportIngest: PublisherEntrance {
  /// Time limits in nanoseconds.
  package struct Configuration: Sendable {
    package var peerLimits = PeerLimits()
    /// Proxies that stand for many clients.
    package var proxies = TrustedProxies.none
    /// From the head of the request to its admission.
    package var publishDeadline: Int64 = 10_000_000_000
    /// Without any byte of the body.
    package var idleTimeout: Int64 = 10_000_000_000

    package init() {}
  }

  /// A client that wants to publish.
  package struct Client: Sendable {
    /// "HTTP" or "HTTPS".
    package var protocolName: String
    /// The other end of the connection; nil if unknown.
    package var address: SocketAddress?
    /// The client's own address, where a proxy stands between.
    package var client: NetworkAddress?
    /// As it states it; possibly empty.
    package var software: String

    package init(protocolName: String, address: SocketAddress?, client: NetworkAddress?, software: String) {
      self.protocolName = protocolName
      self.address = address
      self.client = client
      self.software = software
    }
  }

  private let gate: any PublishGate
  let clock: SteadyClock
  private let logger: Logger
  let configuration: Configuration
  let connections: ConnectionRegistry

  package init(
    gate: any PublishGate, clock: SteadyClock, logger: Logger, configuration: Configuration = Configuration()
  ) {
    self.gate = gate
    self.clock = clock
    self.logger = logger
    self.configuration = configuration
    connections = ConnectionRegistry(limits: configuration.peerLimits)
  }

  package var refusals: ConnectionRefusals { connections.refusals }

  package func stop() async {
    for end in connections.closeForGood() { end(.shutdown) }
    await connections.allGone()
  }

  /// Asks for admission of a client's upload. `owner` gets the answer, possibly before this returns. Called on `loop`, as
  /// everything of the upload.
  package func begin(
    _ stream: StreamName, key: Secret?, programs: ProgramChoice = .first, of client: Client,
    owner: any TransportUploadOwner, on loop: any EventLoop
  ) -> TransportUpload? {
    let isProxied = configuration.proxies.contains(NetworkAddress(client.address))
    let host = (isProxied ? client.client : NetworkAddress(client.address))?.hostText
    let peer = host ?? PeerText.unknown
    if connections.arrive(peer, isProxy: isProxied && host == nil, now: clock.monotonic()) != nil {
      owner.uploadIsRefused(.tooManyWaiting)
      return nil
    }
    let publisher = Publisher(
      protocolName: client.protocolName,
      remoteAddress: isProxied ? host ?? PeerText.unknown : PeerText.place(of: client.address), host: host, gate: gate,
      logger: logger)
    let upload = TransportUpload(of: publisher, peer: peer, to: self, programs, owner: owner, on: loop)
    upload.begin(stream, key: key, software: PeerText.printable(client.software, limit: 80))
    return upload
  }
}
