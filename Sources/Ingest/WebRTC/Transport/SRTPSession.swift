internal import CSRTP
internal import CSRTPCiphers
internal import NIOCore

/// SRTP (RFC 3711, RFC 7714) of one peer, by libsrtp with OpenSSL's ciphers.
final class SRTPSession {
  /// The profiles' numbers (RFC 5764 §4.1.2, RFC 7714 §14.2).
  static let (sha1, gcm): (UInt, UInt) = (1, 7)

  /// Packets that may come late and still pass the check for replays. Those of a publisher may come behind any number that one of
  /// them claims: else nothing passes until they are there. It is the most that libsrtp takes (4 KiB for a sender).
  private static let (window, publishersWindow): (UInt, UInt) = (1024, 0x7FFF)
  private static let trailer = Int(SRTP_MAX_TRAILER_LEN)

  private var inbound: srtp_t?
  private var outbound: srtp_t?
  /// Senders (SSRC) that came. libsrtp keeps a state of each, without a bound of its own.
  private var sources: Set<UInt32> = []

  private static let isLoaded: Bool = srtp_init() == srtp_err_status_ok

  /// Whether OpenSSL has the ciphers. What libsrtp does not take of it stays as it is there, and is slower.
  static let usesOpenSSL: Bool = isLoaded && weir_srtp_use_openssl() == 1

  /// Loads libsrtp and what it loads itself. False if its cryptography cannot be used.
  static let isAvailable: Bool = {
    guard isLoaded else { return false }
    _ = usesOpenSSL
    // Its own library of cryptography, where it is used, loads further ones with the first key.
    return [(sha1, 30), (gcm, 28)].allSatisfy { profile, count in
      SRTPSession(
        profile: profile, inbound: .init(repeating: 1, count: count), outbound: .init(repeating: 2, count: count))
        != nil
    }
  }()

  /// Keys with their salts, and what the peer came for. Nil if libsrtp refuses them.
  init?(profile: UInt, inbound: [UInt8], outbound: [UInt8], of purpose: WebRTCTransport.Purpose = .watching) {
    let window = purpose == .publishing ? Self.publishersWindow : Self.window
    self.inbound = Self.make(profile, inbound, ssrc_any_inbound, window)
    self.outbound = Self.make(profile, outbound, ssrc_any_outbound, Self.window)
    guard self.inbound != nil, self.outbound != nil else {
      free()
      return nil
    }
  }

  deinit { free() }

  private func free() {
    if let inbound { srtp_dealloc(inbound) }
    if let outbound { srtp_dealloc(outbound) }
    (inbound, outbound) = (nil, nil)
  }

  private static func make(
    _ profile: UInt, _ key: [UInt8], _ direction: srtp_ssrc_type_t, _ window: UInt
  ) -> srtp_t? {
    var policy = srtp_policy_t()
    let known = srtp_profile_t(rawValue: numericCast(profile))
    guard srtp_crypto_policy_set_from_profile_for_rtp(&policy.rtp, known) == srtp_err_status_ok,
      srtp_crypto_policy_set_from_profile_for_rtcp(&policy.rtcp, known) == srtp_err_status_ok
    else { return nil }
    policy.ssrc.type = direction
    policy.window_size = window
    // A packet that is asked for again is the same, to the byte.
    policy.allow_repeat_tx = 1
    var key = key
    var session: srtp_t?
    let status = key.withUnsafeMutableBufferPointer { bytes in
      policy.key = bytes.baseAddress
      return srtp_create(&session, &policy)
    }
    return status == srtp_err_status_ok ? session : nil
  }

  /// The packet in clear. Nil if it was not made with the key, came before, or is of one sender too many.
  func open(rtp datagram: ByteBuffer) -> ByteBuffer? {
    open(datagram, of: RTPPacket.source(of: datagram)) { srtp_unprotect(inbound, $0, $1) }
  }

  func open(rtcp datagram: ByteBuffer) -> ByteBuffer? {
    open(datagram, of: RTCPReader.source(of: datagram)) { srtp_unprotect_rtcp(inbound, $0, $1) }
  }

  private func open(
    _ datagram: ByteBuffer, of source: UInt32?,
    _ body: (UnsafeMutableRawPointer, UnsafeMutablePointer<CInt>) -> srtp_err_status_t
  ) -> ByteBuffer? {
    guard let source else { return nil }
    let isKnown = sources.contains(source)
    guard isKnown || sources.count < WebRTCLimits.securedSources,
      let clear = change(datagram, room: 0, body)
    else { return nil }
    if !isKnown { sources.insert(source) }
    return clear
  }

  func close(rtcp datagram: ByteBuffer) -> ByteBuffer? {
    change(datagram, room: Self.trailer) { srtp_protect_rtcp(outbound, $0, $1) }
  }

  /// A packet of media of `size` bytes, which `write` fills in where it is encrypted: it is copied once.
  func close(rtp size: Int, _ write: (UnsafeMutableRawBufferPointer) -> Void) -> ByteBuffer? {
    var packet = ByteBuffer()
    return close(rtp: size, into: &packet, write) ? packet : nil
  }

  /// The same behind what a buffer has. False if it is not encrypted; then nothing is added.
  func close(rtp size: Int, into packet: inout ByteBuffer, _ write: (UnsafeMutableRawBufferPointer) -> Void) -> Bool {
    var isDone = false
    packet.writeWithUnsafeMutableBytes(minimumWritableBytes: size + Self.trailer) { target in
      guard let start = target.baseAddress else { return 0 }
      write(UnsafeMutableRawBufferPointer(rebasing: target[..<size]))
      var length = CInt(size)
      isDone = srtp_protect(outbound, start, &length) == srtp_err_status_ok && length >= 0
      return isDone ? Int(length) : 0
    }
    return isDone
  }

  private func change(
    _ datagram: ByteBuffer, room: Int,
    _ body: (UnsafeMutableRawPointer, UnsafeMutablePointer<CInt>) -> srtp_err_status_t
  ) -> ByteBuffer? {
    let size = datagram.readableBytes
    var copy = ByteBuffer()
    var isDone = false
    copy.writeWithUnsafeMutableBytes(minimumWritableBytes: size + room) { target in
      guard let start = target.baseAddress else { return 0 }
      datagram.withUnsafeReadableBytes { target.copyMemory(from: $0) }
      var length = CInt(size)
      isDone = body(start, &length) == srtp_err_status_ok && length >= 0
      return isDone ? Int(length) : 0
    }
    return isDone ? copy : nil
  }
}
