/// What an offer says of the transport that all of its media share.
struct OfferedTransport {
  let role: Negotiation.Role
  let fingerprint: Fingerprint
  /// The name of the peer's agent, and its password.
  var fragment: String
  var password: String
  /// Bytes of the offer.
  let offerBytes: Int

  /// Of the media sections that are taken, by their places in the offer.
  init(_ offer: SessionOffer, of places: [Int]) throws(OfferError) {
    guard let own = places.first.map({ offer.sections[$0] }) else {
      throw OfferError(.unacceptable, "the offer has no audio and no video")
    }
    for place in places.dropFirst() {
      guard let mid = offer.sections[place].mid, offer.bundle.contains(mid), offer.bundles(own) else {
        throw OfferError(.unacceptable, "audio and video must share one transport: a=group:BUNDLE with all mids")
      }
    }
    // What only its bundle carries has the attributes of the bundle's first section with a port.
    let first =
      own.isBundleOnly
      ? offer.sections.first { !$0.isBundleOnly && !$0.isRejected && offer.bundles($0) } ?? own : own
    guard let fingerprint = first.fingerprint else {
      throw OfferError(.unacceptable, "the offer has no a=fingerprint with sha-256, sha-384 or sha-512")
    }
    guard let fragment = first.fragment, (4...WebRTCLimits.credentialBytes).contains(fragment.utf8.count),
      let password = first.password, (22...WebRTCLimits.credentialBytes).contains(password.utf8.count)
    else { throw OfferError(.unacceptable, "the offer has no a=ice-ufrag and a=ice-pwd of RFC 8839") }
    switch first.setup {
    case .passive: role = .client
    case .actpass, .active: role = .server
    case .holdconn, nil: throw OfferError(.unacceptable, "the offer has no a=setup with actpass, active or passive")
    }
    (self.fingerprint, self.fragment, self.password) = (fingerprint, fragment, password)
    offerBytes = offer.byteCount
  }
}

extension SessionOffer {
  /// The places of the sections with audio or video that are not turned off.
  var mediaPlaces: [Int] {
    sections.indices.filter { place in
      let section = sections[place]
      return !section.isRejected && (section.kind == "audio" || section.kind == "video")
        && (!section.isBundleOnly || bundles(section))
    }
  }
}

extension MediaSection {
  /// Throws if its media would not be encrypted, or its reports not come by the same port.
  func checkTransport() throws(OfferError) {
    guard transport.hasSuffix("TLS/RTP/SAVPF") || transport.hasSuffix("TLS/RTP/SAVP") else {
      throw OfferError(.unacceptable, "\(kind) is not encrypted by DTLS: \(transport.prefix(40))")
    }
    guard multiplexesRTCP || isBundleOnly else { throw OfferError(.unacceptable, "\(kind) has no a=rtcp-mux") }
  }
}
