internal import FMP4
internal import Publishing

/// What weir takes of an offer: one codec of each media section, and one transport for all.
struct Negotiation {
  /// A media section that is taken. A class: each packet asks for its track, and many fields would be copied.
  final class Track: Sendable {
    let id: TrackID
    /// Its place among the sections of the offer.
    let section: Int
    let mid: String?
    let coding: CodecID
    let format: PayloadFormat
    /// Senders that the offer names for it.
    let sources: [UInt32]
    /// The name of its encoding, where the section has several (RFC 8852).
    let rid: String?
    /// The payload type of packets that come again (RFC 4588); nil where they come as they were.
    let repair: UInt8?

    init(
      id: TrackID, section: Int, mid: String?, coding: CodecID, format: PayloadFormat, sources: [UInt32],
      rid: String? = nil, repair: UInt8? = nil
    ) {
      (self.id, self.section, self.mid, self.coding) = (id, section, mid, coding)
      (self.format, self.sources, self.rid, self.repair) = (format, sources, rid, repair)
      let feedback = format.feedback
      asksAgain = feedback.contains("nack")
      asksForKeyFrames = feedback.contains("nack pli")
      takesEstimates = feedback.contains("goog-remb")
    }

    var kind: MediaKind { coding.kind }
    /// Whether both sides speak of lost packets, and of key frames.
    let asksAgain: Bool
    let asksForKeyFrames: Bool
    let takesEstimates: Bool
  }

  /// Who sends the first message of DTLS.
  enum Role { case server, client }

  static let transportFeedback = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
  static let midExtension = "urn:ietf:params:rtp-hdrext:sdes:mid"
  static let ridExtension = "urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id"
  static let repairedExtension = "urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id"

  let offer: SessionOffer
  /// In the order of their sections. Encodings of simulcast are tracks of one section.
  let tracks: [Track]
  let transport: OfferedTransport
  /// Numbers of header extensions; nil where not offered.
  let feedbackNumber: UInt8?
  let midNumber: UInt8?
  let ridNumber: UInt8?
  let repairedNumber: UInt8?

  var role: Role { transport.role }
  var fingerprint: Fingerprint { transport.fingerprint }

  /// - Parameter decoding: whether video is taken that has to be encoded anew.
  init(_ offer: SessionOffer, _ decoding: RTPCodec.Decoding = .allowed) throws(OfferError) {
    self.offer = offer
    var tracks: [Track] = []
    for index in offer.mediaPlaces { tracks += try Self.tracks(offer.sections[index], index, tracks, decoding) }
    guard !tracks.isEmpty else {
      throw OfferError(.unacceptable, "the offer has no audio and no video that is sent")
    }
    let places = offer.mediaPlaces
    transport = try OfferedTransport(offer, of: places)
    self.tracks = tracks
    // One transport has one number for each (RFC 9143 §9.1). Some senders number only the packets of their video.
    let sections = places.map { offer.sections[$0] }
    feedbackNumber = sections.lazy.compactMap { $0.number(of: Self.transportFeedback) }.first
    midNumber = sections.lazy.compactMap { $0.number(of: Self.midExtension) }.first
    ridNumber = sections.lazy.compactMap { $0.number(of: Self.ridExtension) }.first
    repairedNumber = sections.lazy.compactMap { $0.number(of: Self.repairedExtension) }.first
  }

  /// Whether all video has key frames when they are asked for.
  var asksForKeyFrames: Bool {
    let videos = tracks.filter { $0.kind == .video }
    return !videos.isEmpty && videos.allSatisfy(\.asksForKeyFrames)
  }

  /// The tracks of each simulcast: encodings of one picture.
  var simulcasts: [[Track]] {
    let sections = Set(tracks.filter { $0.rid != nil }.map(\.section)).sorted()
    return sections.map { section in tracks.filter { $0.section == section } }
  }

  private static func tracks(
    _ section: MediaSection, _ index: Int, _ others: [Track], _ decoding: RTPCodec.Decoding
  ) throws(OfferError) -> [Track] {
    let first = try track(section, index, others, decoding)
    // What has to be encoded anew comes once. Without the extension nothing tells the encodings apart.
    guard first.kind == .video, first.coding.isCarried, section.number(of: ridExtension) != nil else { return [first] }
    let room = min(WebRTCLimits.encodings, PublicationLimits.tracks - others.count)
    let names = section.encodings(of: first.format.payloadType).prefix(room)
    guard names.count > 1 else { return [first] }
    let number = others.count { $0.kind == .video } + 1
    // Without its own extension nothing tells which encoding a repeated packet belongs to.
    let repair = section.number(of: repairedExtension) == nil ? nil : first.repair
    return names.enumerated().map { place, name in
      Track(
        id: TrackID(.video, number + place), section: index, mid: first.mid, coding: first.coding,
        format: first.format, sources: [], rid: name, repair: repair)
    }
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
      sources: section.sources, repair: kind == .video ? RTPCodec.repair(of: format, section.formats) : nil)
  }
}
