internal import FMP4

/// What weir takes of an offer: one codec of each media section, and one transport for all.
struct Negotiation {
  /// A media section that is taken.
  struct Track {
    let id: TrackID
    /// Its place among the sections of the offer.
    let section: Int
    let mid: String?
    let coding: CodecID
    let format: PayloadFormat
    /// Senders that the offer names for it.
    let sources: [UInt32]

    var kind: MediaKind { coding.kind }
    /// Whether both sides speak of lost packets, and of key frames.
    var asksAgain: Bool { format.feedback.contains("nack") }
    var asksForKeyFrames: Bool { format.feedback.contains("nack pli") }
    var takesEstimates: Bool { format.feedback.contains("goog-remb") }
  }

  /// Who sends the first message of DTLS.
  enum Role { case server, client }

  static let transportFeedback = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
  static let midExtension = "urn:ietf:params:rtp-hdrext:sdes:mid"

  let offer: SessionOffer
  let tracks: [Track]
  let transport: OfferedTransport
  /// Numbers of header extensions; nil where not offered.
  let feedbackNumber: UInt8?
  let midNumber: UInt8?

  var role: Role { transport.role }
  var fingerprint: Fingerprint { transport.fingerprint }

  /// - Parameter decoding: whether video is taken that has to be encoded anew.
  init(_ offer: SessionOffer, _ decoding: RTPCodec.Decoding = .allowed) throws(OfferError) {
    self.offer = offer
    var tracks: [Track] = []
    for index in offer.mediaPlaces { tracks.append(try Self.track(offer.sections[index], index, tracks, decoding)) }
    guard !tracks.isEmpty else {
      throw OfferError(.unacceptable, "the offer has no audio and no video that is sent")
    }
    transport = try OfferedTransport(offer, of: tracks.map(\.section))
    self.tracks = tracks
    // One transport has one number for each (RFC 9143 §9.1). Some senders number only the packets of their video.
    let sections = tracks.map { offer.sections[$0.section] }
    feedbackNumber = sections.lazy.compactMap { $0.number(of: Self.transportFeedback) }.first
    midNumber = sections.lazy.compactMap { $0.number(of: Self.midExtension) }.first
  }

  /// Whether all video has key frames when they are asked for.
  var asksForKeyFrames: Bool {
    let videos = tracks.filter { $0.kind == .video }
    return !videos.isEmpty && videos.allSatisfy(\.asksForKeyFrames)
  }

  private static func track(
    _ section: MediaSection, _ index: Int, _ others: [Track], _ decoding: RTPCodec.Decoding
  ) throws(OfferError) -> Track {
    guard section.direction == .sendonly || section.direction == .sendrecv else {
      throw OfferError(.unacceptable, "a publisher sends: \(section.kind) is \(section.direction.rawValue)")
    }
    try section.checkTransport()
    let kind: MediaKind = section.kind == "video" ? .video : .audio
    let number = others.count { $0.kind == kind } + 1
    guard others.count < PublicationLimits.tracks else {
      throw OfferError(.unacceptable, "more than \(PublicationLimits.tracks) tracks")
    }
    guard let (coding, format) = RTPCodec.choose(section.formats, kind, decoding) else {
      let offered = Set(section.formats.map(\.name)).subtracting(RTPCodec.repairs).sorted().prefix(8)
      let names = offered.map { $0.isEmpty ? "?" : String($0.prefix(20)) }.joined(separator: ", ")
      let isOld = offered.contains("vp8") ? "; VP8 would have to be encoded anew, which is off for this stream" : ""
      throw OfferError(
        .unacceptable,
        "no codec of the \(kind.rawValue) is supported: \(names) offered, \(RTPCodec.names(kind, decoding)) taken\(isOld)"
      )
    }
    return Track(
      id: TrackID(kind, number), section: index, mid: section.mid, coding: coding, format: format,
      sources: section.sources)
  }
}
