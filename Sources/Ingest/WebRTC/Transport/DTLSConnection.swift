internal import Base
internal import CDTLS
internal import NIOCore

/// The certificate that this process shows to publishers. Made at the start; kept nowhere.
final class DTLSIdentity: @unchecked Sendable {
  // OpenSSL's contexts may be shared by threads once they are set up.
  fileprivate let pointer: OpaquePointer
  let fingerprint: Fingerprint

  /// Nil if OpenSSL refuses.
  init?() {
    var digest = [UInt8](repeating: 0, count: weir_dtls_fingerprint_size)
    guard let pointer = weir_dtls_identity_new(&digest) else { return nil }
    self.pointer = pointer
    fingerprint = Fingerprint(sha256: digest)
  }

  deinit { weir_dtls_identity_free(pointer) }
}

/// One connection of DTLS. It writes datagrams to its owner while one of its functions runs.
final class DTLSConnection {
  enum State {
    case connecting, connected
    /// The peer has ended it.
    case closed
    case failed
  }

  /// What SRTP needs (RFC 5764 §4.2): keys with their salts.
  struct Keys {
    var profile: UInt
    var client: [UInt8]
    var server: [UInt8]
  }

  private let identity: DTLSIdentity
  private var pointer: OpaquePointer?
  /// Datagrams to send, in order.
  private(set) var outgoing: [ByteBuffer] = []
  private(set) var state = State.connecting
  /// Where a client's cookie came back from: it gets what is sent there. Nil before, and for a server.
  private(set) var validatedPlace: STUNResponse.Place?

  /// Most datagrams that wait to be sent.
  private static let mostOutgoing = 64

  init?(_ identity: DTLSIdentity, _ role: Negotiation.Role) {
    self.identity = identity
    pointer = weir_dtls_new(
      identity.pointer, role == .client ? 1 : 0, WebRTCLimits.mtu,
      { context, bytes, count in
        guard let context, let bytes else { return }
        let connection = Unmanaged<DTLSConnection>.fromOpaque(context).takeUnretainedValue()
        guard connection.outgoing.count < DTLSConnection.mostOutgoing else { return }
        connection.outgoing.append(ByteBuffer(bytes: UnsafeBufferPointer(start: bytes, count: count)))
      }, Unmanaged.passUnretained(self).toOpaque())
    guard pointer != nil else { return nil }
  }

  deinit { weir_dtls_free(pointer) }

  func takeOutgoing() -> [ByteBuffer] {
    defer { outgoing = [] }
    return outgoing
  }

  /// Takes a datagram from an address.
  func receive(_ datagram: ByteBuffer, from place: STUNResponse.Place) {
    guard let pointer else { return }
    let address = [place.address.network, place.address.interface, UInt64(place.port)]
    address.withUnsafeBytes { weir_dtls_set_peer(pointer, $0.baseAddress, $0.count) }
    datagram.withUnsafeReadableBytes { note(weir_dtls_receive(pointer, $0.baseAddress, $0.count)) }
    if validatedPlace == nil, weir_dtls_is_validated(pointer) == 1 { validatedPlace = place }
  }

  /// The client begins.
  func start() { if let pointer { note(weir_dtls_step(pointer)) } }

  /// Sends again what is due.
  func tick() {
    guard let pointer, state == .connecting, weir_dtls_wait(pointer) == 0 else { return }
    note(weir_dtls_timeout(pointer))
  }

  func close() { if let pointer { weir_dtls_close(pointer) } }

  private func note(_ state: weir_dtls_state) {
    switch state {
    case weir_dtls_connected: self.state = .connected
    case weir_dtls_closed: self.state = .closed
    case weir_dtls_failed: self.state = .failed
    default: break
    }
  }

  /// Whether the peer's certificate is the one that the offer names (RFC 8122 §5).
  func hasPeer(_ fingerprint: Fingerprint) -> Bool {
    var digest = [UInt8](repeating: 0, count: weir_dtls_digest_limit)
    guard let pointer else { return false }
    let count = weir_dtls_peer_digest(pointer, fingerprint.algorithm, &digest)
    return count > 0 && Array(digest.prefix(count)) == fingerprint.digest
  }

  var keys: Keys? {
    guard let pointer else { return nil }
    let profile = weir_dtls_profile(pointer)
    let (key, salt) = profile == SRTPSession.gcm ? (16, 12) : (16, 14)
    guard profile == SRTPSession.gcm || profile == SRTPSession.sha1 else { return nil }
    var bytes = [UInt8](repeating: 0, count: 2 * (key + salt))
    guard weir_dtls_keys(pointer, &bytes, bytes.count) == 1 else { return nil }
    let salts = bytes[(2 * key)...]
    return Keys(
      profile: UInt(profile), client: Array(bytes[..<key] + salts.prefix(salt)),
      server: Array(bytes[key..<2 * key] + salts.dropFirst(salt)))
  }
}
