import Base
import FMP4
import NIOCore
import Publishing
import Support
import Testing
@testable import WebRTC

/// Offers of viewers, what they are answered, and what they report.
@Suite struct ViewerOfferTests {
  private final class Stream: WatchedStream {
    let name: StreamName
    init?(_ name: String) {
      guard let name = StreamName(name) else { return nil }
      self.name = name
    }
    func follow(_ follower: any SampleFollower) -> Bool { false }
    func unfollow(_ follower: any SampleFollower) {}
    func use(_ tracks: Set<TrackID>) {}
    func askForKeyFrame() -> Bool { false }
  }

  private final class Place: WatchingPlace {
    func connected() -> Bool { true }
    func whenRevoked(_ end: @escaping @Sendable () -> Void) {}
  }

  private static func opus() throws -> TrackDescription {
    TrackDescription(
      id: .audio, codec: Codec(try Opus.Configuration(channels: 2, preSkip: 312)), timescale: 48_000)
  }

  private static func watched(
    _ tracks: [TrackDescription], isReordered: Bool = false, makable: Set<MediaKind> = []
  ) throws -> WatchedMedia {
    WatchedMedia(
      stream: try #require(Stream("cam")), tracks: tracks, isReordered: isReordered, makable: makable, place: Place(),
      mayWatch: { true })
  }

  /// A video that is made of another one.
  private static func rung() throws -> TrackDescription {
    var track = try SyntheticMedia.video()
    track.id = TrackID(.max - 2)
    return track
  }

  /// As publishers offer, but to receive.
  private static let (audio, video) = (
    OfferTests.audio.replacing("sendonly", with: "recvonly"), OfferTests.video.replacing("sendonly", with: "recvonly")
  )

  private static func answer(_ negotiation: ViewerNegotiation) -> [Substring] {
    ViewerAnswer(
      negotiation: negotiation, agent: ICEAgent(), fingerprint: negotiation.transport.fingerprint, candidates: [],
      session: 7, sources: [.video: 11, .audio: 12]
    ).text.split(separator: "\r\n")
  }

  @Test func `What fits is sent, by one codec of each section`() throws {
    let offer = try SessionOffer(OfferTests.offer(Self.audio, Self.video))
    let negotiation = try ViewerNegotiation(offer, of: try Self.watched([SyntheticMedia.video(), Self.opus()]))
    #expect(negotiation.lines.map(\.format.payloadType) == [111, 98] && negotiation.omissions.isEmpty)
    let answer = Self.answer(negotiation)
    #expect(
      answer.filter { $0.hasPrefix("m=") } == ["m=audio 9 UDP/TLS/RTP/SAVPF 111", "m=video 9 UDP/TLS/RTP/SAVPF 98"])
    for line in [
      "a=sendonly", "a=ssrc:11 cname:weir", "a=ssrc:12 cname:weir", "a=rtcp-fb:98 nack pli", "a=group:BUNDLE 0 1",
      "a=fmtp:98 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f",
    ] { #expect(answer.contains(Substring(line)), "\(line)") }
    #expect(!answer.contains("a=recvonly") && !answer.contains(where: { $0.hasPrefix("a=extmap") }))
  }

  @Test func `What does not fit is inactive, with its reason`() throws {
    let offer = try SessionOffer(OfferTests.offer(Self.audio, Self.video))
    let still = try ViewerNegotiation(
      offer, of: try Self.watched([SyntheticMedia.video(), Self.opus()], isReordered: true))
    #expect(still.lines.map(\.coding) == [.opus] && still.omissions.first?.hasPrefix("video;code=b-frames;") == true)
    #expect(Self.answer(still).contains("a=inactive") && Self.answer(still).contains("a=group:BUNDLE 0"))
    let silent = try ViewerNegotiation(offer, of: try Self.watched([SyntheticMedia.video()]))
    #expect(silent.lines.map(\.coding) == [.h264] && silent.omissions.first?.hasPrefix("audio;code=none;") == true)
    let old = try SessionOffer(
      OfferTests.offer(Self.audio, Self.video.replacing("packetization-mode=1", with: "packetization-mode=0")))
    let without = try ViewerNegotiation(old, of: try Self.watched([SyntheticMedia.video(), Self.opus()]))
    #expect(without.omissions.first?.hasPrefix("video;code=not-offered;") == true)
  }

  @Test func `Where nothing fits the offer is refused`() throws {
    func code(_ text: String, _ watched: WatchedMedia) -> OfferError.Code? {
      do throws(OfferError) {
        _ = try ViewerNegotiation(try SessionOffer(text), of: watched)
        return nil
      } catch { return error.code }
    }
    let offer = OfferTests.offer(Self.audio, Self.video)
    let (reordered, nothing) = (try Self.watched([SyntheticMedia.video()], isReordered: true), try Self.watched([]))
    #expect(code(offer, reordered) == .unfitting && code(offer, nothing) == .unfitting)
    let both = try Self.watched([SyntheticMedia.video(), Self.opus()])
    #expect(code(OfferTests.offer(OfferTests.audio, OfferTests.video), both) == .unacceptable, "it sends")
    #expect(code(OfferTests.offer(Self.audio, Self.video, bundle: "0"), both) == .unacceptable)
    #expect(code(offer.replacing("setup:actpass", with: "setup:holdconn"), both) == .unacceptable)
    #expect(code(offer.replacing("a=rtcp-mux", with: "a=x"), both) == .unacceptable)
    #expect(code(String(repeating: "v", count: 70_000), both) == .malformed)
  }

  @Test func `A rung takes the place of what does not fit, and the answer says why`() throws {
    let offer = try SessionOffer(OfferTests.offer(Self.audio, Self.video))
    let rung = try Self.rung()
    let tracks = [try SyntheticMedia.video(), rung, try Self.opus()]
    let replaced = try ViewerNegotiation(offer, of: try Self.watched(tracks, isReordered: true))
    #expect(replaced.lines.first { $0.kind == .video }?.track == rung.id && replaced.omissions.isEmpty)
    #expect(replaced.replacements.first?.hasPrefix("video;rung=180p;code=b-frames;detail=") == true)
    // Without B-frames the publication's own is sent, and the rung is there for a slow viewer.
    let own = try ViewerNegotiation(offer, of: try Self.watched(tracks))
    #expect(own.lines.first { $0.kind == .video }?.track == .video && own.replacements.isEmpty)
  }

  @Test func `Videos in several codecs have a format each`() throws {
    let both = Self.video.replacing("SAVPF 96 97 98", with: "SAVPF 96 97 98 45")
      .replacing("a=rtpmap:98", with: "a=rtpmap:45 AV1/90000\r\na=rtcp-fb:45 nack pli\r\na=rtpmap:98")
    try #require(both.contains("AV1"))
    let watched = try Self.watched([SyntheticMedia.av1(), Self.rung()])
    let negotiation = try ViewerNegotiation(try SessionOffer(OfferTests.offer(Self.audio, both)), of: watched)
    #expect(negotiation.encoding(.av1)?.format.payloadType == 45)
    #expect(negotiation.encoding(.h264)?.format.payloadType == 98 && negotiation.encoding(.opus) == nil)
    let answer = Self.answer(negotiation)
    for line in ["m=video 9 UDP/TLS/RTP/SAVPF 45 98", "a=rtpmap:45 AV1/90000", "a=rtpmap:98 H264/90000"] {
      #expect(answer.contains(Substring(line)), "\(line)")
    }
  }

  @Test func `HEVC is sent to viewers that offer it; others get what is made of it`() throws {
    let hevc = Self.video.replacing("SAVPF 96 97 98", with: "SAVPF 96 97 98 49")
      .replacing("a=rtpmap:98", with: "a=rtpmap:49 H265/90000\r\na=rtcp-fb:49 nack pli\r\na=rtpmap:98")
    try #require(hevc.contains("H265"))
    let rung = try Self.rung()
    let watched = try Self.watched([SyntheticMedia.hevc(), rung])
    let own = try ViewerNegotiation(try SessionOffer(OfferTests.offer(Self.audio, hevc)), of: watched)
    #expect(own.lines.first?.track == .video && own.replacements.isEmpty)
    let answer = Self.answer(own)
    for line in ["a=rtpmap:49 H265/90000", "a=fmtp:49 profile-id=1;tier-flag=0;level-id=93;tx-mode=SRST"] {
      #expect(answer.contains(Substring(line)), "\(line)")
    }
    let offer = try SessionOffer(OfferTests.offer(Self.audio, Self.video))
    // Without B-frames it would not fit either.
    for isReordered in [false, true] {
      let other = try ViewerNegotiation(
        offer, of: try Self.watched([SyntheticMedia.hevc(), rung], isReordered: isReordered))
      #expect(other.lines.first?.track == rung.id)
      #expect(other.replacements.first?.hasPrefix("video;rung=180p;code=not-offered;") == true)
    }
    let makable = try Self.watched([SyntheticMedia.hevc(), Self.opus()], makable: [.video])
    #expect(try ViewerNegotiation(offer, of: makable).needs == [.video])
  }

  @Test func `What can be made is asked for, of an offer that is good and takes it`() throws {
    let tracks = [try SyntheticMedia.video(), try SyntheticMedia.audio()]
    func needs(_ text: String, _ makable: Set<MediaKind>) throws -> Set<MediaKind> {
      let watched = try Self.watched(tracks, isReordered: true, makable: makable)
      return try ViewerNegotiation(try SessionOffer(text), of: watched).needs
    }
    let offer = OfferTests.offer(Self.audio, Self.video)
    #expect(try needs(offer, [.audio, .video]) == [.audio, .video])
    #expect(try needs(offer, [.video]) == [.video])
    #expect(throws: OfferError.self) { _ = try needs(offer, []) }
    let old = offer.replacing("packetization-mode=1", with: "packetization-mode=0")
    #expect(try needs(old, [.audio, .video]) == [.audio])
    #expect(throws: OfferError.self) { _ = try needs(offer.replacing("a=rtcp-mux", with: "a=x"), [.audio, .video]) }
    // What only looks like an offer of audio or video starts no worker.
    for text in [
      "m=audio", "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\n", "v=0\r\nm=video 9 UDP/TLS/RTP/SAVPF 96\r\n",
      offer.replacing("a=fingerprint", with: "a=x"), offer.replacing("a=ice-pwd", with: "a=x"),
    ] {
      #expect(throws: OfferError.self, "\(text.prefix(20))") { _ = try needs(text, [.audio, .video]) }
    }
    let watched = try Self.watched([try SyntheticMedia.video(), try Self.opus()], makable: [.video])
    #expect(try ViewerNegotiation(try SessionOffer(offer), of: watched).needs.isEmpty, "all fits")
  }

  @Test func `A viewer of video that wants to know when packets were sent is told`() throws {
    let offered = "a=rtcp-mux\r\na=extmap:5 \(SendTime.uri)"
    for (offer, told) in [
      (OfferTests.offer(Self.audio, Self.video), []),
      (OfferTests.offer(Self.audio, Self.video).replacing("a=rtcp-mux", with: offered), ["a=extmap:5 \(SendTime.uri)"]),
    ] {
      let watched = try Self.watched([SyntheticMedia.video(), Self.opus()])
      let negotiation = try ViewerNegotiation(try SessionOffer(offer), of: watched)
      #expect(Self.answer(negotiation).filter { $0.hasPrefix("a=extmap") }.map(String.init) == told)
      #expect(negotiation.lines.compactMap(\.sendTime).map(\.number) == (told.isEmpty ? [] : [5]))
    }
  }

  @Test(
    arguments: [(1_500_000_000, 0x06_0000), (64_000_000_000, 0), (63_999_999_999, 0xFF_FFFF), (-1, nil)]
      as [(Int64, UInt32?)])
  func `The time of sending has 24 bits and wraps`(_ nanoseconds: Int64, _ value: UInt32?) {
    let now = MonotonicTime(nanoseconds: nanoseconds)
    var bytes = [UInt8](repeating: 0, count: SendTime.bytes)
    bytes.withUnsafeMutableBytes { SendTime(number: 5).write(now, to: $0) }
    #expect(Array(bytes.prefix(5)) == [0xBE, 0xDE, 0, 1, 0x52], "one extension of three bytes (RFC 8285 §4.2)")
    if let value { #expect(bytes.suffix(3).reduce(0) { $0 << 8 | UInt32($1) } == value) }
  }

  // MARK: reports

  @Test func `Requests of receivers are read`() {
    let again = ByteBuffer(bytes: [0x81, 205, 0, 3, 0, 0, 0, 1, 0, 0, 0, 11, 0xFF, 0xFF, 0, 3])
    #expect(RTCPReader.read(again) == [.again([65_535, 0, 1], of: 11)])
    let picture = ByteBuffer(bytes: [0x81, 206, 0, 2, 0, 0, 0, 1, 0, 0, 0, 11])
    #expect(RTCPReader.read(picture) == [.keyFrame(of: 11)])
    let full = ByteBuffer(bytes: [0x84, 206, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 11, 1, 0, 0, 0])
    #expect(RTCPReader.read(full) == [.keyFrame(of: 11)])
    var estimate = RTCPWriter()
    estimate.estimate(3_000_000, of: [11])
    guard case .estimate(let bits)? = RTCPReader.read(estimate.bytes).last else {
      Issue.record("no estimate")
      return
    }
    #expect((2_990_000...3_000_000).contains(bits))
    for bytes in [again, picture, full, estimate.bytes] {
      for count in 0..<bytes.readableBytes {
        _ = RTCPReader.read(ByteBuffer(bytes: bytes.readableBytesView.prefix(count)))
      }
    }
    var flood = ByteBuffer(bytes: [0x81, 205, 0x01, 0xF3, 0, 0, 0, 1, 0, 0, 0, 11])
    flood.writeRepeatingByte(0xFF, count: 4 * 497)
    guard case .again(let numbers, _)? = RTCPReader.read(flood).first else {
      Issue.record("no request")
      return
    }
    #expect(numbers.count < WebRTCLimits.repeatsOfRequest + 17)
  }

  @Test func `A sender's report, its name, and its farewell`() {
    let sending = RTCPWriter.Sending(source: 11, clock: 1 << 32 | 5, timestamp: 9, packets: 2, bytes: 300)
    var writer = RTCPWriter([sending], name: "weir")
    writer.bye([11], because: "done")
    #expect(
      Array(writer.bytes.readableBytesView) == [
        0x80, 200, 0, 6, 0, 0, 0, 11, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0, 9, 0, 0, 0, 2, 0, 0, 1, 44,
        0x81, 202, 0, 3, 0, 0, 0, 11, 1, 4, 119, 101, 105, 114, 0, 0,
        0x81, 203, 0, 3, 0, 0, 0, 11, 4, 100, 111, 110, 101, 0, 0, 0,
      ])
    #expect(
      RTCPReader.read(writer.bytes) == [
        .report(SenderReport(source: 11, clock: 1 << 32 | 5, timestamp: 9)), .bye(11),
      ])
  }

  @Test func `A packet of media is encrypted where it is written, and again to the same bytes`() throws {
    try #require(SRTPSession.isAvailable)
    let (a, b) = ([UInt8](repeating: 1, count: 28), [UInt8](repeating: 2, count: 28))
    let one = try #require(SRTPSession(profile: SRTPSession.gcm, inbound: a, outbound: b))
    let other = try #require(SRTPSession(profile: SRTPSession.gcm, inbound: b, outbound: a))
    let packet = RTPPackets.bytes(7, at: 9, source: 3, marker: true, [5, 6, 7])
    func close() throws -> ByteBuffer {
      try #require(
        one.close(rtp: packet.readableBytes) { target in
          packet.withUnsafeReadableBytes { target.copyMemory(from: $0) }
        })
    }
    let first = try close()
    #expect(try close() == first)
    #expect(other.open(rtp: first) == packet)
  }
}
