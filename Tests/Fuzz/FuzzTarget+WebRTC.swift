@testable import Base
@testable import FMP4
import NIOCore
@testable import Publishing
import Support
@testable import WebRTC

/// What publishers by WebRTC send: before they are authenticated (STUN, offers), and what they have encrypted (RTP, RTCP).
extension FuzzTarget {
  /// A request, a compound packet, and packets of video and audio behind their lengths.
  static let webRTCDatagrams: [[UInt8]] = {
    let packet: [UInt8] =
      [0x90, 0x60, 0, 1, 0, 0, 0, 9, 0, 0, 0, 1, 0xBE, 0xDE, 0, 1, 0x31, 0, 7, 0] + [
        0x78, 0, 2, 0x67, 0x42, 0, 2, 0x68, 1,
      ]
    let fragment: [UInt8] = [0x80, 0xE0, 0, 2, 0, 0, 0, 9, 0, 0, 0, 1] + [0x7C, 0xC5, 0x80, 1, 2, 3]
    let picture: [UInt8] =
      [0x80, 0xE0, 0, 3, 0, 0, 0, 9, 0, 0, 0, 1] + [0x8E, 1, 0x18, 2, 0x80, 1, 0x68, 1, 0x04, 1]
      + [0x82, 0x49, 0x83, 0x42, 0x40, 0x27, 0xF0, 0x16, 0x76, 0x06]
    let old: [UInt8] =
      [0x80, 0xE0, 0, 4, 0, 0, 0, 9, 0, 0, 0, 1] + [0x90, 0xE0, 0x80, 5, 9, 0x20]
      + [0x10, 0x2F, 0x01, 0x9D, 0x01, 0x2A, 0x80, 0x02, 0x68, 0x01]
    let audio: [UInt8] = [0x80, 0x6F, 0, 2, 0, 0, 0, 9, 0, 0, 0, 2, 0xFC, 1, 2]
    let report: [UInt8] = [0x80, 200, 0, 6] + Array(repeating: 1, count: 24) + [0x81, 203, 0, 1, 0, 0, 0, 1]
    return [
      [0, 1, 0, 8, 0x21, 0x12, 0xA4, 0x42, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 6, 0, 3, 0x61, 0x3A, 0x62, 0],
      report,
      [picture, audio].flatMap { [0, UInt8($0.count)] + $0 }, [old, audio].flatMap { [0, UInt8($0.count)] + $0 },
      [packet, fragment, audio].flatMap { [0, UInt8($0.count)] + $0 }, [2, 3, 0x67, 1, 2, 3, 1, 2, 0x65, 0x80, 1, 1],
    ]
  }()

  static func stun(_ bytes: [UInt8]) {
    guard let message = STUNMessage(ByteBuffer(bytes: bytes)) else { return }
    let place = STUNResponse.Place(address: NetworkAddress(v4: [127, 0, 0, 1]), port: 9)
    var agent = ICEAgent()
    _ = message.isIntact(password: agent.password)
    guard case .ignored = agent.receive(message, from: place, size: bytes.count) else {
      preconditionFailure("a request that nobody made is answered")
    }
    agent.restart()
    precondition(STUNMessage(STUNResponse.success(to: message, from: place, password: "p")) != nil)
  }

  static func sdp(_ bytes: [UInt8]) {
    let text = String(decoding: bytes, as: UTF8.self)
    _ = try? SessionOffer(text, .fragment)
    guard let offer = try? SessionOffer(text) else { return }
    for section in offer.sections { offerToViewer(section.formats) }
    WatchedFuzz.all.forEach { watch($0, by: offer) }
    guard let negotiation = try? Negotiation(offer) else { return }
    let asking = negotiation.tracks.contains { $0.asksForKeyFrames || $0.asksAgain || $0.takesEstimates }
    precondition(asking || !negotiation.asksForKeyFrames)
    precondition(negotiation.simulcasts.allSatisfy { $0.count > 1 } && (offer.fragment ?? "").count <= text.count)
    let answer = SessionAnswer(
      negotiation: negotiation, agent: ICEAgent(), fingerprint: negotiation.fingerprint,
      candidates: [ICECandidate(address: "192.0.2.1", port: 9, transport: .udp, rank: 0)], session: 1)
    precondition((try? SessionOffer(answer.text))?.sections.count == offer.sections.count)
    precondition((try? SessionOffer(answer.fragment, .fragment))?.password == answer.agent.password)
  }

  private static let watched: [Codec] = [
    (.h264, PublishedRecord.avc25), (.hevc, RecordFixture.hevcMain10), (.av1, PublishedRecord.av1),
    (.vp9, [2, 0x80, 1, 0x68, 1, 0, 0, 0, 0, 10, 0x82, 2, 2, 2, 0, 0]), (.opus, PublishedRecord.opusHead),
  ].compactMap { try? Codec($0, record: ByteBuffer(bytes: $1)) }

  /// A viewer that can decode these formats.
  private static func offerToViewer(_ formats: [PayloadFormat]) {
    for codec in watched {
      guard let format = RTPCodec.choose(formats, for: codec) else { continue }
      precondition(RTPCodec.isSent(codec.id) && RTPCodec.packetizer(codec) != nil)
      precondition(RTPCodec.sentParameters(codec.id, format)?.contains("\r") != true)
    }
    _ = (RTPCodec.takesMade(formats, .video), RTPCodec.takesMade(formats, .audio))
  }

  /// The answer has a section for each of the offer's.
  private static func watch(_ watched: WatchedMedia, by offer: SessionOffer) {
    guard let negotiation = try? ViewerNegotiation(offer, of: watched) else { return }
    precondition(negotiation.needs.isSubset(of: watched.makable))
    let answer = ViewerAnswer(
      negotiation: negotiation, agent: ICEAgent(), fingerprint: negotiation.transport.fingerprint, candidates: [],
      session: 7, sources: [.video: 11, .audio: 12])
    precondition((try? SessionOffer(answer.text))?.sections.count == offer.sections.count)
  }

  static func rtcp(_ bytes: [UInt8]) { _ = RTCPReader.read(ByteBuffer(bytes: bytes)) }

  /// Packets of video and audio, each behind its length. Its highest bit says that it is of reports, the next one that nothing
  /// was read for a while.
  static func rtp(_ bytes: [UInt8]) {
    let sends = bytes.starts(with: WebRTCSeeds.severalEncodings)
    publish(sends ? Array(bytes.dropFirst(2)) : bytes, codec: sends ? "simulcast" : "H264")
  }
  static func av1rtp(_ bytes: [UInt8]) { publish(bytes, codec: "AV1") }
  static func vp9rtp(_ bytes: [UInt8]) { publish(bytes, codec: "VP9") }
  static func vp8rtp(_ bytes: [UInt8]) { publish(bytes, codec: "VP8") }

  /// Payloads of one sender, each behind its length, a flag for the marker and a step of the timestamp: no header to guess.
  static func payloads<Payload: NALUnitPayload>(_ bytes: [UInt8], of: Payload.Type) {
    var (buffer, events) = (ByteBuffer(bytes: bytes), [RTPFrameEvent]())
    var assembler = NALUnitAssembler<Payload>()
    var (sequence, timestamp): (UInt16, UInt32) = (0, 0)
    while let flags: UInt8 = buffer.readInteger(), let size: UInt8 = buffer.readInteger(),
      let payload = buffer.readSlice(length: min(Int(size) * 4, buffer.readableBytes))
    {
      if flags & 2 != 0 { timestamp &+= 3000 }
      var packet = ByteBuffer(integer: UInt8(0x80))
      packet.writeInteger(96 | flags & 1 << 7)
      packet.writeInteger(sequence)
      packet.writeInteger(timestamp)
      packet.writeInteger(UInt32(1))
      packet.writeImmutableBuffer(payload)
      if let packet = RTPPacket(packet) { assembler.receive(packet, afterGap: flags & 4 != 0, to: &events) }
      sequence &+= 1
    }
    for case .frame(let frame) in events {
      // A frame is as its lengths say.
      var units = LengthPrefixedNALUnits(frame.payload, lengthSize: 4)
      while (try? units.next()) ?? nil != nil {}
      var pieces: [RTPPiece] = []
      NALUnitPacketizer<Payload>(sets: frame.parameterSets).pieces(of: frame.payload, isSync: true, to: &pieces)
      precondition(pieces.allSatisfy { $0.byteCount <= WebRTCLimits.payloadBytes })
    }
  }

  /// Made once: they take longer than most inputs.
  private static let negotiations = ["H264", "AV1", "VP9", "VP8"].reduce(into: [String: Negotiation]()) {
    do {
      $0[$1] = try Negotiation(SessionOffer(WebRTCSeeds.offer($1)))
      $0["simulcast"] = try Negotiation(SessionOffer(WebRTCSeeds.simulcast.offer))
    } catch { preconditionFailure("\(error)") }
  }

  /// Packets behind their lengths, each 10 ms after the one before. The highest bit of a length says that it is RTCP, the next
  /// one that it comes 300 ms later, of which the process was held up for 100.
  private static func publish(_ bytes: [UInt8], codec: String) {
    guard let negotiation = negotiations[codec] else { return }
    let clock = ClockReading(wall: WallTime(nanoseconds: 0), monotonic: .zero)
    var publication = WebRTCPublication(negotiation, reading: clock, now: .zero)
    var (buffer, out) = (ByteBuffer(bytes: bytes), [PublicationAction]())
    var now = MonotonicTime.zero
    while let size: UInt16 = buffer.readInteger(),
      let packet = buffer.readSlice(length: min(Int(size & 0x3FFF), buffer.readableBytes))
    {
      now = now &+ (size & 0x4000 == 0 ? 10_000_000 : 300_000_000)
      if size & 0x4000 != 0 { publication.pardon(100_000_000, now: now) }
      if size & 0x8000 == 0, RTPPacket.source(of: packet).map(publication.takes) == false { continue }
      if size & 0x8000 != 0 { publication.receive(rtcp: packet, now: now, to: &out) }
      do {
        try publication.receive(rtp: packet, now: now, to: &out)
        _ = try publication.tick(now: now, to: &out)
      } catch { return }
      out.removeAll(keepingCapacity: true)
    }
  }
}

/// Streams that a viewer offers to watch.
private enum WatchedFuzz {
  private final class Watched: WatchedStream, WatchingPlace {
    let name: StreamName
    init(_ name: StreamName) { self.name = name }
    func follow(_ follower: any SampleFollower) -> Bool { true }
    func unfollow(_ follower: any SampleFollower) {}
    func use(_ tracks: Set<TrackID>) {}
    func askForKeyFrame() -> Bool { false }
    func connected() -> Bool { true }
    func whenRevoked(_ end: @escaping @Sendable () -> Void) {}
  }

  /// H.264 with B-frames and AAC, of which others can be made; VP9 and Opus, as they are.
  static let all: [WatchedMedia] = {
    do {
      guard let name = StreamName("cam") else { return [] }
      let watched = Watched(name)
      let opus = Codec(try Opus.Configuration(channels: 2, preSkip: 312))
      let vp9 = try Codec(.vp9, record: ByteBuffer(bytes: [2, 0x80, 1, 0x68, 1, 0, 0, 0, 0, 10, 0x82, 2, 2, 2, 0, 0]))
      let pairs = [
        [try SyntheticMedia.video(), try SyntheticMedia.audio()],
        [
          TrackDescription(id: .video, codec: vp9, timescale: 90_000),
          TrackDescription(id: .audio, codec: opus, timescale: 48_000),
        ],
      ]
      return pairs.enumerated().map { place, tracks in
        WatchedMedia(
          stream: watched, tracks: tracks, isReordered: place == 0, makable: place == 0 ? [.video, .audio] : [],
          place: watched, mayWatch: { true })
      }
    } catch { preconditionFailure("\(error)") }
  }()
}

/// Offers and packets to begin with.
enum WebRTCSeeds {
  /// What an input of `rtp` begins with where the sender sends several encodings: no packet has that length.
  static let severalEncodings: [UInt8] = [0x3F, 0xFF]
  static let simulcast = SenderCapture(FixtureFile.bytes("webrtc/chromium-156-simulcast.webrtc"))

  /// The packets of that sender, with its own payload types.
  static var simulcastSession: [UInt8] {
    simulcast.records.reduce(into: severalEncodings) { out, record in
      let (size, isReport) = (record.bytes.count, record.kind == .rtcp)
      guard isReport || record.kind == .rtp else { return }
      out += [UInt8(size >> 8) | (isReport ? 0x80 : 0), UInt8(size & 255)] + record.bytes
    }
  }

  /// Offers that the rules refuse, and one of simulcast, of which several encodings are taken.
  static var peculiarOffers: [[UInt8]] {
    let plain = offer("H264")
    let simulcast =
      plain + "a=rid:h send\r\na=rid:m send\r\na=rid:l send\r\na=simulcast:send h;m;l\r\n"
      + "a=extmap:5 \(Negotiation.ridExtension)\r\na=extmap:6 \(Negotiation.repairedExtension)\r\na=rtcp-fb:96 goog-remb\r\n"
    let viewer = [
      ("H264", "packetization-mode=1;profile-level-id=64001e"), ("VP9", "profile-id=0"), ("AV1", "profile=0"),
      ("H265", "profile-id=2;level-id=120"),
    ]
    .map { name, parameters in
      plain.replacing("a=sendonly", with: "a=recvonly").replacing("H264/", with: "\(name)/")
        .replacing("packetization-mode=1", with: parameters)
    }
    let refused = [
      plain + String(repeating: "a=x\r\n", count: WebRTCLimits.offerLines),
      plain + "a=" + String(repeating: "x", count: WebRTCLimits.lineBytes) + "\r\n",
      plain + String(repeating: "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\n", count: WebRTCLimits.mediaSections),
      plain + "a=mid:" + String(repeating: "x", count: WebRTCLimits.credentialBytes + 1) + "\r\n",
    ]
    return ([simulcast] + viewer + refused).map { Array($0.utf8) }
  }

  /// What senders of each codec sent first (`Tests/Fixtures/webrtc`).
  private static let senders: [(codec: String, names: [String])] = [
    ("H264", ["aiortc-1.16-h264", "chromium-156-h264", "ffmpeg-9.0-h264"]),
    ("AV1", ["chromium-156-av1", "firefox-153-av1"]), ("VP9", ["chromium-156-vp9", "firefox-153-vp9"]),
    ("VP8", ["chromium-156-vp8", "firefox-153-vp8"]),
  ]

  private static func captures(_ codec: String? = nil) -> [SenderCapture] {
    senders.filter { codec == nil || $0.codec == codec }.flatMap(\.names).map { name in
      SenderCapture(FixtureFile.bytes("webrtc/\(name).webrtc"))
    }
  }

  static var offers: [[UInt8]] { (captures() + [simulcast]).map { Array($0.offer.utf8) } }
  static func all(_ kind: SenderCapture.Kind) -> [[UInt8]] { captures().flatMap { $0.all(kind) } }

  /// Sessions as `FuzzTarget.publish` reads them: each packet behind its length, that of reports with the highest bit. The payload
  /// types are those of its offer.
  static func sessions(_ codec: String) -> [[UInt8]] {
    captures(codec).map { capture in
      let video = videoTypes(capture)
      return capture.records.reduce(into: []) { out, record in
        var bytes = record.bytes
        switch record.kind {
        case .rtp where bytes.count > 1:
          let type = bytes[1] & 0x7F
          bytes[1] = bytes[1] & 0x80 | (type == video.media ? 96 : type == video.repair ? 97 : 111)
          out += [UInt8(bytes.count >> 8), UInt8(bytes.count & 255)] + bytes
        case .rtcp: out += [UInt8(bytes.count >> 8) | 0x80, UInt8(bytes.count & 255)] + bytes
        case .rtp, .stun, .offer: break
        }
      }
    }
  }

  /// The same over a network that loses or cuts packets of video, of which some come again: as RTX (RFC 4588), or
  /// late. Then the numbers jump.
  static func lossySessions(_ codec: String) -> [[UInt8]] {
    captures(codec).map { capture in
      let video = videoTypes(capture).media
      var (out, late, count, repeats): ([UInt8], [[UInt8]], Int, UInt8) = ([], [], 0, 0)
      func send(_ bytes: [UInt8]) { out += [UInt8(bytes.count >> 8), UInt8(bytes.count & 255)] + bytes }
      for var bytes in capture.all(.rtp) where bytes.count > 12 {
        guard let packet = RTPPacket(ByteBuffer(bytes: bytes)), packet.payloadType == video else { continue }
        bytes[1] = bytes[1] & 0x80 | 96
        count += 1
        let head = bytes.count - packet.payload.readableBytes
        switch count % 9 {
        case 3:
          repeats += 1
          let number = Array(bytes[2..<4])
          bytes.replaceSubrange(1..<4, with: [bytes[1] & 0x80 | 97, 0, repeats])
          bytes.replaceSubrange(8..<12, with: [0, 0, 9, 9])
          late.append(bytes[..<head] + number + bytes[head...])
        case 5: late.append(bytes)
        case 7: break
        case 8:
          bytes[1] = 96
          send(Array(bytes.prefix(head + 1)))
        default: send(bytes)
        }
        if count % 4 == 0, !late.isEmpty { send(late.removeFirst()) }
      }
      // A packet of a type that nobody offered: time passes, and what is missing is given up.
      for _ in 0..<8 { out += [0x40, 1, 0] }
      if var last = capture.all(.rtp).last(where: { RTPPacket(ByteBuffer(bytes: $0))?.payloadType == video }) {
        last[1] = last[1] & 0x80 | 96
        last[2] ^= 0x60
        send(last)
      }
      return out
    }
  }

  /// Payloads of H.264 as `FuzzTarget.payloads` reads them. Their lengths are rounded down to multiples of four.
  static var payloads: [[UInt8]] {
    captures("H264").map { capture in
      let video = videoTypes(capture).media
      var last: UInt32?
      return capture.all(.rtp).reduce(into: []) { out, bytes in
        guard let packet = RTPPacket(ByteBuffer(bytes: bytes)), packet.payloadType == video else { return }
        let payload = Array(packet.payload.readableBytesView.prefix(1020)).prefix(packet.payload.readableBytes / 4 * 4)
        let flags: UInt8 = (packet.hasMarker ? 1 : 0) | (last == packet.timestamp ? 0 : 2)
        last = packet.timestamp
        out += [flags, UInt8(payload.count / 4)] + payload
      }
    }
  }

  /// The payload types of its video, and of packets of it that come again.
  private static func videoTypes(_ capture: SenderCapture) -> (media: UInt8?, repair: UInt8?) {
    let formats = (try? SessionOffer(capture.offer))?.sections.first { $0.kind == "video" }?.formats ?? []
    return (formats.first?.payloadType, formats.first.flatMap { RTPCodec.repair(of: $0, formats) })
  }

  static func offer(_ codec: String) -> String {
    let common =
      "a=ice-ufrag:abcd\r\na=ice-pwd:0123456789abcdefghijklmn\r\na=fingerprint:sha-256 "
      + [String](repeating: "AB", count: 32).joined(separator: ":")
      + "\r\na=setup:actpass\r\na=sendonly\r\na=rtcp-mux\r\n"
    return "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\n"
      + "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\n\(common)a=mid:0\r\na=rtpmap:111 opus/48000/2\r\n"
      + "a=rtcp-fb:111 transport-cc\r\nm=video 9 UDP/TLS/RTP/SAVPF 96 97\r\n\(common)a=mid:1\r\n"
      + "a=rtpmap:96 \(codec)/90000\r\na=fmtp:96 packetization-mode=1\r\na=rtcp-fb:96 nack\r\na=rtcp-fb:96 nack pli\r\n"
      + "a=rtpmap:97 rtx/90000\r\na=fmtp:97 apt=96\r\n"
      + "a=extmap:3 \(Negotiation.transportFeedback)\r\na=extmap:4 \(Negotiation.midExtension)\r\n"
  }
}
