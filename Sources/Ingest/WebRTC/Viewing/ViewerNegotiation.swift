internal import FMP4

/// What a viewer gets of a stream: one codec for each media section that fits, and one transport for all.
struct ViewerNegotiation {
  /// A media section that is answered with media.
  struct Line {
    /// Its place among the sections of the offer.
    let section: Int
    let mid: String?
    /// The track to begin with.
    let track: TrackID
    /// Of that track, and those of other videos that the viewer may get instead of it.
    let first: Encoding
    let further: [Encoding]
    /// Of video, if the viewer wants to know when packets were sent.
    let sendTime: SendTime?

    var coding: CodecID { first.coding }
    var format: PayloadFormat { first.format }
    var kind: MediaKind { coding.kind }
    var encodings: [Encoding] { [first] + further }
  }

  /// A codec, and the format by which the viewer knows it.
  struct Encoding {
    let coding: CodecID
    let format: PayloadFormat
  }

  let offer: SessionOffer
  let lines: [Line]
  let transport: OfferedTransport
  /// Why the viewer does not get a medium: `audio;code=codec;detail="…"`.
  let omissions: [String]
  /// Which video it gets in place of the publication's own, and why: `video;rung=720p;code=b-frames;detail="…"`.
  let replacements: [String]
  /// What has to be made, since nothing fits. Without it the viewer does not get that medium.
  let needs: Set<MediaKind>

  init(_ offer: SessionOffer, of watched: WatchedMedia) throws(OfferError) {
    self.offer = offer
    var (lines, omissions, replacements, reasons) = ([Line](), [String](), [String](), [String]())
    var needs: [MediaKind: Int] = [:]
    let places = offer.mediaPlaces.filter { place in
      [.recvonly, .sendrecv].contains(offer.sections[place].direction)
    }
    guard !places.isEmpty else {
      throw OfferError(.unacceptable, "a viewer receives: the offer has no audio and no video that is recvonly")
    }
    for kind in [MediaKind.video, .audio] {
      guard let place = places.first(where: { offer.sections[$0].kind == kind.rawValue }) else { continue }
      let section = offer.sections[place]
      do throws(Omission) {
        let (line, replaced) = try Self.line(section, place, kind, watched)
        lines.append(line)
        if let replaced { replacements.append("\(kind.rawValue);rung=\(replaced.rung);\(replaced.reason.text)") }
      } catch {
        if error.code != .none, watched.makable.contains(kind), RTPCodec.takesMade(section.formats, kind) {
          needs[kind] = place
        }
        reasons.append(error.detail)
        omissions.append("\(kind.rawValue);\(error.text)")
      }
    }
    guard !lines.isEmpty || !needs.isEmpty else {
      throw OfferError(.unfitting, reasons.joined(separator: "; "))
    }
    lines.sort { $0.section < $1.section }
    let taken = (lines.map(\.section) + needs.values).sorted()
    for section in taken { try offer.sections[section].checkTransport() }
    transport = try OfferedTransport(offer, of: taken)
    (self.lines, self.omissions, self.replacements) = (lines, omissions, replacements)
    self.needs = Set(needs.keys)
  }

  /// How the viewer gets a codec; nil if it does not.
  func encoding(_ coding: CodecID) -> Encoding? {
    lines.lazy.flatMap(\.encodings).first { $0.coding == coding }
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

    var text: String { "code=\(code.rawValue);detail=\"\(detail)\"" }
  }

  /// The section with the first track of the kind that fits, and the reason if that is not the publication's own.
  private static func line(
    _ section: MediaSection, _ place: Int, _ kind: MediaKind, _ watched: WatchedMedia
  ) throws(Omission) -> (line: Line, replaced: (rung: String, reason: Omission)?) {
    let tracks = watched.tracks.filter { $0.kind == kind }
    guard let own = tracks.first else {
      throw Omission(code: .none, detail: "the stream has no \(kind.rawValue)")
    }
    var reason: Omission?
    var begin: TrackDescription?
    var encodings: [Encoding] = []
    for track in tracks {
      do throws(Omission) {
        let isReordered = kind == .video && watched.isReordered && track.id == own.id
        let format = try Self.format(section, track, isReordered: isReordered)
        begin = begin ?? track
        // A codec has one format, whatever the profile of each track.
        if !encodings.contains(where: { $0.coding == track.codec.id }) {
          encodings.append(Encoding(coding: track.codec.id, format: format))
        }
      } catch {
        reason = reason ?? error
      }
    }
    guard let begin, let first = encodings.first else {
      throw reason ?? Omission(code: .none, detail: "the stream has no \(kind.rawValue)")
    }
    let line = Line(
      section: place, mid: section.mid, track: begin.id, first: first, further: Array(encodings.dropFirst()),
      sendTime: kind == .video ? section.number(of: SendTime.uri).map(SendTime.init) : nil)
    guard begin.id != own.id, let reason else { return (line, nil) }
    let size = begin.codec.displaySize
    return (line, ("\(min(size?.width ?? 0, size?.height ?? 0))p", reason))
  }

  private static func format(
    _ section: MediaSection, _ track: TrackDescription, isReordered: Bool
  ) throws(Omission) -> PayloadFormat {
    let (kind, coding) = (track.kind, track.codec.id)
    guard RTPCodec.isSent(coding) else {
      throw Omission(code: .codec, detail: "the \(kind.rawValue) is \(coding.name), which is not sent by WebRTC")
    }
    // Without B-frames it would not fit either.
    guard let format = RTPCodec.choose(section.formats, for: track.codec) else {
      throw Omission(
        code: .notOffered, detail: "the \(kind.rawValue) is \(coding.name), which the viewer does not offer")
    }
    guard !isReordered else {
      throw Omission(
        code: .reordered,
        detail: "the video has B-frames, which browsers show in the wrong order; publish without them")
    }
    return format
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
    let types = line.encodings.map { "\($0.format.payloadType)" }.joined(separator: " ")
    var lines = ["m=\(section.kind) 9 \(section.transport) \(types)", "c=IN IP4 0.0.0.0"]
    if let mid = line.mid { lines.append("a=mid:\(mid)") }
    lines += ["a=sendonly", "a=rtcp-mux", "a=msid:\(Self.name) \(section.kind)"]
    for encoding in line.encodings {
      let (format, type) = (encoding.format, encoding.format.payloadType)
      let channels = format.channels > 1 ? "/\(format.channels)" : ""
      lines.append("a=rtpmap:\(type) \(RTPCodec.name(encoding.coding))/\(format.clock)\(channels)")
      if let parameters = RTPCodec.sentParameters(encoding.coding, format) {
        lines.append("a=fmtp:\(type) \(parameters)")
      }
      if line.kind == .video {
        lines += ["nack", "nack pli", "ccm fir", "goog-remb"].filter { format.feedback.contains($0) }
          .map { "a=rtcp-fb:\(type) \($0)" }
      }
    }
    if let sendTime = line.sendTime { lines.append("a=extmap:\(sendTime.number) \(SendTime.uri)") }
    if let source = sources[line.kind] { lines.append("a=ssrc:\(source) cname:\(Self.name)") }
    return lines + SessionAnswer.transport(agent, fingerprint, negotiation.transport.role, candidates)
  }
}
