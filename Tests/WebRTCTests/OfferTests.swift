import FMP4
import Support
import Testing
@testable import WebRTC

/// Offers, and what is taken of them.
@Suite struct OfferTests {
  static func section(_ kind: String, _ formats: String, _ lines: String...) -> String {
    "m=\(kind) 9 UDP/TLS/RTP/SAVPF \(formats)\r\na=ice-ufrag:abcd\r\na=ice-pwd:0123456789abcdefghijklmn\r\n"
      + "a=fingerprint:sha-256 " + [String](repeating: "AB", count: 32).joined(separator: ":")
      + "\r\na=setup:actpass\r\na=sendonly\r\na=rtcp-mux\r\n" + lines.map { $0 + "\r\n" }.joined()
  }

  static func offer(_ sections: String..., bundle: String = "0 1") -> String {
    "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE \(bundle)\r\n" + sections.joined()
  }

  static let audio = section("audio", "111 0", "a=mid:0", "a=rtpmap:111 opus/48000/2", "a=rtcp-fb:111 transport-cc")
  static let video = section(
    "video", "96 97 98", "a=mid:1", "a=rtpmap:96 VP8/90000", "a=rtpmap:97 H264/90000",
    "a=fmtp:97 packetization-mode=0;profile-level-id=42001f", "a=rtpmap:98 H264/90000",
    "a=fmtp:98 packetization-mode=1;profile-level-id=42e01f", "a=rtcp-fb:98 nack", "a=rtcp-fb:98 nack pli",
    "a=ssrc:77 cname:x", "a=extmap:3 \(Negotiation.transportFeedback)")

  private static func answer(_ text: String) throws -> [Substring] {
    let negotiation = try Negotiation(try SessionOffer(text))
    let candidates = [
      ICECandidate(address: "192.0.2.1", port: 8189, transport: .udp, rank: 0),
      ICECandidate(address: "192.0.2.1", port: 8189, transport: .tcp, rank: 0),
    ]
    return SessionAnswer(
      negotiation: negotiation, agent: ICEAgent(), fingerprint: negotiation.fingerprint, candidates: candidates,
      session: 7
    ).text.split(separator: "\r\n")
  }

  @Test func `One codec of each section is taken, H.264 with fragments first`() throws {
    let negotiation = try Negotiation(try SessionOffer(Self.offer(Self.audio, Self.video)))
    #expect(negotiation.tracks.map(\.coding) == [.opus, .h264])
    #expect(negotiation.tracks.map(\.format.payloadType) == [111, 98])
    #expect(negotiation.tracks.map(\.id) == [.audio, .video])
    #expect(negotiation.tracks[1].asksAgain && negotiation.tracks[1].asksForKeyFrames)
    #expect(negotiation.tracks[1].sources == [77] && negotiation.role == .server)
  }

  @Test func `The answer has the sections of the offer in their order`() throws {
    let data = "m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\na=mid:2\r\n"
    let lines = try Self.answer(Self.offer(Self.audio, Self.video, data, bundle: "0 1 2"))
    #expect(
      lines.filter { $0.hasPrefix("m=") } == [
        "m=audio 9 UDP/TLS/RTP/SAVPF 111", "m=video 9 UDP/TLS/RTP/SAVPF 98",
        "m=application 0 UDP/DTLS/SCTP webrtc-datachannel",
      ])
    for line in ["a=group:BUNDLE 0 1", "a=ice-lite", "a=setup:passive", "a=recvonly", "a=rtcp-fb:98 nack pli"] {
      #expect(lines.contains(Substring(line)), "\(line)")
    }
    #expect(lines.contains("a=candidate:1 1 udp 2130706431 192.0.2.1 8189 typ host"))
    #expect(lines.contains { $0.hasSuffix("typ host tcptype passive") })
  }

  /// What is taken of the offers of real senders, and who sends the first message of DTLS.
  private static let senders: [(String, [CodecID], Negotiation.Role, feedback: Bool)] = [
    ("aiortc-1.16", [.h264, .opus], .server, false), ("chromium-156", [.opus, .h264], .server, true),
    ("ffmpeg-9.0.2", [.opus, .h264], .client, false), ("firefox-153", [.opus, .vp9], .server, true),
  ]

  @Test func `Offers of real senders are taken`() throws {
    for (name, codings, role, feedback) in Self.senders {
      let text = String(decoding: try Fixtures.bytes("sdp/\(name).sdp"), as: UTF8.self)
      let negotiation = try Negotiation(try SessionOffer(text))
      #expect(negotiation.tracks.map(\.coding) == codings, "\(name)")
      #expect(negotiation.role == role && (negotiation.feedbackNumber != nil) == feedback, "\(name)")
      let answer = try Self.answer(text)
      #expect(try SessionOffer(answer.joined(separator: "\r\n")).sections.count == 2, "\(name)")
      // All of them repeat packets by a sender of its own.
      let video = try #require(negotiation.tracks.first { $0.kind == .video })
      let (type, repair) = (video.format.payloadType, try #require(video.repair, "\(name)"))
      #expect(answer.contains { $0.hasPrefix("m=video ") && $0.hasSuffix(" \(type) \(repair)") }, "\(name)")
      #expect(answer.contains("a=rtpmap:\(repair) rtx/90000") && answer.contains("a=fmtp:\(repair) apt=\(type)"))
    }
  }

  @Test func `Who waits for the first message of DTLS gets it`() throws {
    let text = Self.offer(Self.audio.replacing("setup:actpass", with: "setup:passive"), bundle: "0")
    #expect(try Negotiation(try SessionOffer(text)).role == .client)
    #expect(try Self.answer(text).contains("a=setup:active"))
  }

  @Test func `Several tracks of a kind have numbers of their own`() throws {
    let second = Self.video.replacing("a=mid:1", with: "a=mid:2")
    let negotiation = try Negotiation(try SessionOffer(Self.offer(Self.audio, Self.video, second, bundle: "0 1 2")))
    #expect(negotiation.tracks.map(\.id) == [.audio, .video, TrackID(.video, 2)])
  }

  @Test func `A section without a port is taken with its bundle, or not at all`() throws {
    let bundled = "m=video 0 UDP/TLS/RTP/SAVPF 98\r\na=mid:1\r\na=sendonly\r\na=rtpmap:98 H264/90000\r\n"
    let taken = try Negotiation(try SessionOffer(Self.offer(Self.audio, bundled + "a=bundle-only\r\n")))
    #expect(taken.tracks.map(\.coding) == [.opus, .h264])
    let data = Self.section("application", "webrtc-datachannel", "a=mid:0")
    let carried = try Negotiation(try SessionOffer(Self.offer(data, bundled + "a=bundle-only\r\n")))
    #expect(carried.tracks.map(\.coding) == [.h264], "the bundle's first section has the attributes of the transport")
    let turnedOff = try Negotiation(try SessionOffer(Self.offer(Self.audio, bundled)))
    #expect(turnedOff.tracks.map(\.coding) == [.opus])
    let outside = try SessionOffer(Self.offer(Self.audio, bundled + "a=bundle-only\r\n", bundle: "0"))
    #expect(try Negotiation(outside).tracks.map(\.coding) == [.opus], "it counts as turned off")
  }

  private static let refused: [(String, OfferError.Code)] = [
    ("", .malformed), ("hello", .malformed), ("v=0\r\nm=video\r\n", .malformed), ("v=0\r\n", .unacceptable),
    (offer(audio.replacing("a=sendonly", with: "a=recvonly"), bundle: "0"), .unacceptable),
    (offer(audio.replacing("a=rtcp-mux", with: "a=x"), bundle: "0"), .unacceptable),
    (offer(audio.replacing("sha-256 AB", with: "sha-256 A"), bundle: "0"), .unacceptable),
    (offer(audio.replacing("sha-256", with: "sha-1"), bundle: "0"), .unacceptable),
    (offer(audio.replacing("UDP/TLS/RTP/SAVPF", with: "RTP/AVP"), bundle: "0"), .unacceptable),
    (offer(audio.replacing("a=ice-pwd:0123456789abcdefghijklmn", with: "a=ice-pwd:short"), bundle: "0"), .unacceptable),
    (offer(audio, video, bundle: "0"), .unacceptable),
    (
      offer(section("video", "96", "a=rtpmap:96 H265/90000", "a=fmtp:96 sprop-max-don-diff=1"), bundle: "0"),
      .unacceptable
    ),
    ("v=0\r\n" + String(repeating: "a=x\r\n", count: WebRTCLimits.offerLines), .malformed),
    ("v=0\r\na=" + String(repeating: "x", count: WebRTCLimits.lineBytes), .malformed),
    ("v=0\r\n" + String(repeating: "m=video 0 RTP 9\r\n", count: WebRTCLimits.mediaSections + 1), .malformed),
    (String(repeating: "v=0\r\n", count: WebRTCLimits.offerBytes / 5 + 1), .malformed),
  ]

  @Test func `VP8 is taken where nothing else is offered; where nothing may be encoded anew it is refused`() throws {
    let alone = try SessionOffer(Self.offer(Self.section("video", "96", "a=rtpmap:96 VP8/90000"), bundle: "0"))
    #expect(try Negotiation(alone).tracks.map(\.coding) == [.vp8])
    #expect {
      _ = try Negotiation(alone, .refused)
    } throws: {
      let reason = ($0 as? OfferError)?.reason ?? ""
      return reason.contains("in decoding order) taken") && reason.contains("VP8 would have to be encoded anew")
    }
    let both = try SessionOffer(Self.offer(Self.audio, Self.video))
    #expect(try Negotiation(both).tracks.map(\.coding) == [.opus, .h264])
    #expect(try Negotiation(both, .refused).tracks.map(\.coding) == [.opus, .h264])
  }

  @Test func `HEVC is taken where it is offered alone, and answered by its parameters`() throws {
    let lines = ["a=rtpmap:98 H265/90000", "a=fmtp:98 profile-id=1;tier-flag=0;level-id=120;tx-mode=SRST"]
    let offer = Self.offer(Self.section("video", "98", lines[0], lines[1], "a=rtcp-fb:98 nack pli"), bundle: "0")
    let negotiation = try Negotiation(try SessionOffer(offer))
    #expect(negotiation.tracks.map(\.coding) == [.hevc] && negotiation.asksForKeyFrames)
    let answer = try Self.answer(offer)
    #expect(answer.contains("a=rtpmap:98 H265/90000") && answer.contains { $0.hasPrefix(lines[1] + ";") })
  }

  @Test func `Of VP9 the profiles of 4:2:0 are taken, and said again`() throws {
    for (profile, isTaken) in ["0": true, "1": false, "2": true, "3": false] {
      let lines = ["a=rtpmap:98 VP9/90000", "a=fmtp:98 profile-id=\(profile)"]
      let offer = Self.offer(Self.section("video", "98", lines[0], lines[1]), bundle: "0")
      let answer = try? Self.answer(offer)
      #expect((answer != nil) == isTaken, "\(profile)")
      if let answer { #expect(answer.contains { $0.hasPrefix("a=fmtp:98 profile-id=\(profile);") }) }
    }
  }

  @Test func `Packets come again in a format of their own where they are asked for, and the codec has one`() throws {
    func repair(_ lines: String...) throws -> UInt8? {
      let offer = Self.offer(
        Self.audio, Self.video.replacing("96 97 98", with: "96 97 98 99 100") + lines.map { $0 + "\r\n" }.joined())
      return try Negotiation(try SessionOffer(offer)).tracks.last?.repair
    }
    #expect(try repair("a=rtpmap:99 rtx/90000", "a=fmtp:99 apt=98;rtx-time=3000") == 99)
    #expect(try repair("a=rtpmap:99 rtx/90000", "a=fmtp:99 apt=97") == nil)
    #expect(try repair("a=rtpmap:99 rtx/48000", "a=fmtp:99 apt=98") == nil)
    #expect(try repair("a=rtpmap:98 rtx/90000", "a=fmtp:98 apt=98") == nil)
    #expect(try repair("a=rtpmap:99 red/90000", "a=fmtp:99 apt=98") == nil)
  }

  @Test func `Encodings of simulcast are tracks, and are named again`() throws {
    let offer = Self.offer(Self.audio, Self.video + SimulcastTests.lines)
    let tracks = try Negotiation(try SessionOffer(offer)).tracks
    #expect(tracks.map(\.id) == [.audio, .video, TrackID(.video, 2), TrackID(.video, 3)])
    #expect(tracks.map(\.rid) == [nil, "l", "m", "h"])
    let answer = try Self.answer(offer)
    #expect(answer.filter { $0.hasPrefix("m=video") } == ["m=video 9 UDP/TLS/RTP/SAVPF 98"])
    for line in [
      "a=group:BUNDLE 0 1", "a=rid:l recv", "a=rid:m recv", "a=rid:h recv", "a=simulcast:recv l;m;h",
      "a=extmap:10 \(Negotiation.ridExtension)",
    ] {
      #expect(answer.filter { $0 == line }.count == 1, "\(line)")
    }
  }

  @Test func `Chromium's three encodings are taken, and what tells them apart`() throws {
    let text = String(decoding: try Fixtures.bytes("sdp/chromium-156-simulcast.sdp"), as: UTF8.self)
    let negotiation = try Negotiation(try SessionOffer(text))
    #expect(negotiation.tracks.map(\.rid) == [nil, "h", "m", "l"])
    #expect((negotiation.midNumber, negotiation.ridNumber, negotiation.repairedNumber) == (4, 10, 11))
    let answer = try Self.answer(text)
    for (number, uri) in [(10, Negotiation.ridExtension), (11, Negotiation.repairedExtension)] {
      #expect(answer.filter { $0 == "a=extmap:\(number) \(uri)" }.count == 1)
    }
    #expect(answer.contains("a=simulcast:recv h;m;l"))
  }

  /// What a section says of its encodings, and which are taken.
  private static let encodings: [(String, [String])] = [
    ("a=rid:a send|a=rid:b send|a=simulcast:send b;~a", ["b", "a"]),
    ("a=rid:a send|a=rid:b send|a=rid:c send|a=simulcast:send a,c;b recv d", ["a", "b"]),
    ("a=rid:a send pt=97|a=rid:b send|a=rid:c send|a=simulcast:send a,c;b", ["c", "b"]),
    ("a=rid:a send pt=98|a=rid:b send max-width=640;pt=96,97|a=rid:c send|a=simulcast:send a;b;c", ["a", "c"]),
    ("a=rid:a send|a=rid:b recv|a=simulcast:send a;b", []), ("a=rid:a send|a=rid:b send", []),
    ("a=rid:a send|a=simulcast:send a;a", []), ("a=rid:a? send|a=rid:b send|a=simulcast:send a?;b", []),
    ("a=rid:a send|a=rid:b send|a=simulcast:send", []),
    ((0..<9).map { "a=rid:\($0) send|" }.joined() + "a=simulcast:send 0;1;2;3;4;5;6;7;8", ["0", "1", "2", "3"]),
  ]

  @Test func `Encodings are those that are sent with the codec that is taken, up to a limit`() throws {
    for (text, names) in Self.encodings {
      let lines = text.split(separator: "|").map { $0 + "\r\n" }.joined()
      let number = "a=extmap:10 \(Negotiation.ridExtension)\r\n"
      let offer = Self.offer(Self.audio, Self.video + number + lines)
      let tracks = try Negotiation(try SessionOffer(offer)).tracks.filter { $0.kind == .video }
      #expect(tracks.compactMap(\.rid) == names, "\(text)")
      #expect(tracks.count == max(names.count, 1), "\(text)")
      #expect(try Self.answer(offer).contains { $0.hasPrefix("a=simulcast:") } == !names.isEmpty, "\(text)")
    }
  }

  @Test func `Of what is sent the encodings and their alternatives are read`() throws {
    #expect(OfferedEncoding.simulcast("recv x send a,~c;b;?") == [["a", "c"], ["b"], []])
    #expect(OfferedEncoding.simulcast("recv a;b").isEmpty)
    let one = try #require(OfferedEncoding("h send max-width=640;pt=96,97"))
    #expect(one.name == "h" && one.allows(97) && !one.allows(98))
    let (received, aimless) = (OfferedEncoding("h recv"), OfferedEncoding("h"))
    #expect(received == nil)
    #expect(aimless == nil)
  }

  @Test func `Of VP8, which is encoded anew, one encoding is taken`() throws {
    let video = Self.section("video", "96", "a=mid:1", "a=rtpmap:96 VP8/90000") + SimulcastTests.lines
    let tracks = try Negotiation(try SessionOffer(Self.offer(Self.audio, video))).tracks
    #expect(tracks.map(\.rid) == [nil, nil])
  }

  @Test func `Simulcast without names in packets is not said again, so that one encoding is sent`() throws {
    let lines = "a=rid:h send\r\na=rid:l send\r\na=simulcast:send h;l\r\n"
    let answer = try Self.answer(Self.offer(Self.audio, Self.video + lines))
    #expect(!answer.contains { $0.hasPrefix("a=rid") || $0.hasPrefix("a=simulcast") })
    #expect(answer.contains("m=video 9 UDP/TLS/RTP/SAVPF 98"))
  }

  @Test func `Nothing is half accepted`() {
    for (text, code) in Self.refused {
      #expect("\(text.prefix(300))") { _ = try Negotiation(try SessionOffer(text)) } throws: {
        ($0 as? OfferError)?.code == code
      }
    }
  }

  @Test func `Of feedback only what weir may send is kept`() throws {
    let flood = (0..<1000).map { "a=rtcp-fb:* x\($0)\r\n" }.joined()
    let common = Self.offer(Self.audio, Self.video).replacing("a=group", with: flood + "a=rtcp-fb:* nack\r\na=group")
    let sections = try SessionOffer(common).sections
    #expect(sections[0].formats.map(\.feedback) == [["transport-cc"], []])
    #expect(sections[1].formats.map(\.feedback) == [[], [], ["nack", "nack pli"]])
    let own = try SessionOffer(Self.offer(Self.audio + flood + "a=rtcp-fb:* goog-remb\r\n", bundle: "0")).sections
    #expect(own[0].formats.map(\.feedback) == [["transport-cc", "goog-remb"], ["goog-remb"]])
  }

  @Test func `What the session says of its transport counts for its sections`() throws {
    let line = "a=setup:actpass\r\n"
    let sections = Self.offer(Self.audio.replacing(line, with: ""), bundle: "0")
    let text = sections.replacing("a=group", with: line + "a=group")
    #expect(try Negotiation(try SessionOffer(text)).role == .server)
  }

  @Test func `An offer cut anywhere is refused or answered, never a trap`() {
    let whole = Array(Self.offer(Self.audio, Self.video).utf8)
    for count in whole.indices {
      guard let offer = try? SessionOffer(String(decoding: whole.prefix(count), as: UTF8.self)) else { continue }
      _ = try? Negotiation(offer)
    }
  }
}
