internal import FMP4

/// What a viewer gets of a stream: one codec for each media section that fits, and one transport for all.
struct ViewerNegotiation {
  /// A media section that is answered with media.
  struct Line {
    /// Its place among the sections of the offer.
    let section: Int
    let mid: String?
    let track: TrackID
    let coding: CodecID
    let format: PayloadFormat

    var kind: MediaKind { coding.kind }
  }

  let offer: SessionOffer
  let lines: [Line]
  let transport: OfferedTransport
  /// Why the viewer does not get a medium: `audio;code=codec;detail="…"`.
  let omissions: [String]

  init(_ offer: SessionOffer, of watched: WatchedMedia) throws(OfferError) {
    self.offer = offer
    var (lines, omissions, reasons) = ([Line](), [String](), [String]())
    let places = offer.mediaPlaces.filter { place in
      [.recvonly, .sendrecv].contains(offer.sections[place].direction)
    }
    guard !places.isEmpty else {
      throw OfferError(.unacceptable, "a viewer receives: the offer has no audio and no video that is recvonly")
    }
    for kind in [MediaKind.video, .audio] {
      guard let place = places.first(where: { offer.sections[$0].kind == kind.rawValue }) else { continue }
      do throws(Omission) {
        lines.append(try Self.line(offer.sections[place], place, kind, watched))
      } catch {
        reasons.append(error.detail)
        omissions.append("\(kind.rawValue);code=\(error.code.rawValue);detail=\"\(error.detail)\"")
      }
    }
    guard !lines.isEmpty else {
      throw OfferError(.unfitting, reasons.joined(separator: "; "))
    }
    lines.sort { $0.section < $1.section }
    for line in lines { try offer.sections[line.section].checkTransport() }
    transport = try OfferedTransport(offer, of: lines.map(\.section))
    (self.lines, self.omissions) = (lines, omissions)
  }

  /// Why a medium is left out.
  private struct Omission: Error {
    enum Code: String {
      /// The stream has none.
      case none
      /// By RTP viewers do not take its codec.
      case codec
      /// The viewer does not offer its codec.
      case notOffered = "not-offered"
      case reordered = "b-frames"
    }

    let code: Code
    let detail: String
  }

  private static func line(
    _ section: MediaSection, _ place: Int, _ kind: MediaKind, _ watched: WatchedMedia
  ) throws(Omission) -> Line {
    guard let track = watched.tracks.first(kind) else {
      throw Omission(code: .none, detail: "the stream has no \(kind.rawValue)")
    }
    let coding = track.codec.id
    guard RTPCodec.isSent(coding) else {
      throw Omission(code: .codec, detail: "the \(kind.rawValue) is \(coding.name), which is not sent by WebRTC")
    }
    if kind == .video, watched.isReordered {
      throw Omission(
        code: .reordered,
        detail: "the video has B-frames, which browsers show in the wrong order; publish without them")
    }
    guard let format = RTPCodec.choose(section.formats, for: track.codec) else {
      throw Omission(
        code: .notOffered, detail: "the \(kind.rawValue) is \(coding.name), which the viewer does not offer")
    }
    return Line(section: place, mid: section.mid, track: track.id, coding: coding, format: format)
  }
}

/// The answer to a viewer's offer: what it gets is `sendonly`, other sections are inactive.
struct ViewerAnswer {
  let negotiation: ViewerNegotiation
  let agent: ICEAgent
  let fingerprint: Fingerprint
  let candidates: [ICECandidate]
  let session: UInt64
  /// The sender (SSRC) of each kind.
  let sources: [MediaKind: UInt32]

  /// The name that joins audio and video (RFC 7022), the same for all viewers.
  static let name = "weir"

  var text: String {
    var lines = SessionAnswer.head(session, mids: negotiation.lines.compactMap(\.mid))
    for (index, section) in negotiation.offer.sections.enumerated() {
      if let line = negotiation.lines.first(where: { $0.section == index }) {
        lines += sent(section, line)
      } else {
        lines += SessionAnswer.inactive(section)
      }
    }
    return lines.joined(separator: "\r\n") + "\r\n"
  }

  private func sent(_ section: MediaSection, _ line: ViewerNegotiation.Line) -> [String] {
    let (format, type) = (line.format, line.format.payloadType)
    var lines = ["m=\(section.kind) 9 \(section.transport) \(type)", "c=IN IP4 0.0.0.0"]
    if let mid = line.mid { lines.append("a=mid:\(mid)") }
    lines += ["a=sendonly", "a=rtcp-mux", "a=msid:\(Self.name) \(section.kind)"]
    let channels = format.channels > 1 ? "/\(format.channels)" : ""
    lines.append("a=rtpmap:\(type) \(RTPCodec.name(line.coding))/\(format.clock)\(channels)")
    if let parameters = RTPCodec.sentParameters(line.coding, format) { lines.append("a=fmtp:\(type) \(parameters)") }
    if line.kind == .video {
      lines += ["nack", "nack pli", "ccm fir", "goog-remb"].filter { format.feedback.contains($0) }
        .map { "a=rtcp-fb:\(type) \($0)" }
    }
    if let source = sources[line.kind] { lines.append("a=ssrc:\(source) cname:\(Self.name)") }
    return lines + SessionAnswer.transport(agent, fingerprint, negotiation.transport.role, candidates)
  }
}
