import FMP4
import Support
import Testing
@testable import WebRTC

/// Sections of offers, line by line.
@Suite("Media sections of offers")
struct MediaSectionTests {
  private func section(_ line: String = "video 9 UDP/TLS/RTP/SAVPF 96 97", _ attributes: (String, String)...) throws
    -> MediaSection
  {
    var section = try MediaSection(line: Substring(line))
    for (name, value) in attributes { section.receive(Substring(name), Substring(value)) }
    return section
  }

  // MARK: the line

  @Test func `A line is kind, port, transport and formats`() throws {
    let read = try section("video 9/2 udp/tls/rtp/savpf 96 127 128 x 97")
    #expect(read.kind == "video" && read.transport == "UDP/TLS/RTP/SAVPF" && !read.isRejected)
    #expect(read.formats.map(\.payloadType) == [96, 127, 97] && read.formatText == "96 127 128 x 97")
  }

  @Test(arguments: ["", "video", "video 9 X", "video x X 9", "video 65536 X 9", "video -1 X 9"])
  func `A line without a part is refused`(line: String) {
    #expect(throws: OfferError.self) { try MediaSection(line: Substring(line)) }
  }

  @Test func `Formats are read to the limit`() throws {
    func line(_ count: Int) -> String { "video 9 X " + (0..<count).map { "\($0 % 128)" }.joined(separator: " ") }
    #expect(try section(line(WebRTCLimits.formats)).formats.count == WebRTCLimits.formats)
    #expect(throws: OfferError.self) { try MediaSection(line: Substring(line(WebRTCLimits.formats + 1))) }
  }

  /// RFC 9143 §6.
  @Test func `Port 0 turns a section off, unless its bundle carries it`() throws {
    #expect(try section("video 0 X 9").isRejected)
    #expect(try !section("video 0 X 9", ("bundle-only", "")).isRejected)
  }

  // MARK: attributes

  @Test func `What is not known leaves what was said before`() throws {
    let read = try section(
      "video 9 X 9", ("setup", "active"), ("setup", "sideways"), ("fingerprint", "sha-1 AB"), ("recvonly", ""),
      ("nonsense", "x"))
    #expect(read.setup == .active && read.direction == .recvonly && read.fingerprint == nil)
  }

  @Test func `Formats are described by their numbers, and feedback of all by a star`() throws {
    let read = try section(
      "video 9 X 96 97", ("rtpmap", "97 H264/90000"), ("rtpmap", "98 VP8/90000"), ("rtpmap", "97"),
      ("fmtp", "97 packetization-mode=1"), ("rtcp-fb", "97 nack pli"), ("rtcp-fb", "* ccm fir"),
      ("rtcp-fb", "96 something new"))
    #expect(read.formats.map(\.name) == ["", "h264"] && read.formats[1].clock == 90_000)
    #expect(read.formats[1].parameter("packetization-mode") == "1")
    #expect(read.formats.map(\.feedback) == [["ccm fir"], ["nack pli", "ccm fir"]])
  }

  /// RFC 8285 §4.2: 1 to 14 are numbers of the short form.
  @Test func `Header extensions have numbers of the short form`() throws {
    let read = try section(
      "video 9 X 9", ("extmap", "0 a"), ("extmap", "1 uri"), ("extmap", "14/sendonly uri"), ("extmap", "15 uri"),
      ("extmap", "x uri"), ("extmap", "2"))
    #expect(read.extensions == [1: "uri", 14: "uri"] && read.number(of: "uri") == 1 && read.number(of: "a") == nil)
  }

  @Test func `Senders are kept once each, to the limit`() throws {
    var read = try section("video 9 X 9")
    for number in 0..<2 * WebRTCLimits.sources {
      for _ in 0..<2 { read.receive("ssrc", Substring("\(number) cname:x")) }
    }
    #expect(read.sources == (0..<UInt32(WebRTCLimits.sources)).map { $0 })
    read.receive("ssrc", "4294967296 cname:x")
    #expect(read.sources.count == WebRTCLimits.sources)
  }

  // MARK: fingerprints

  private static func digest(_ count: Int, _ byte: String = "AB") -> String {
    [String](repeating: byte, count: count).joined(separator: ":")
  }

  @Test(arguments: [("sha-256", 32), ("SHA-384", 48), ("sha-512", 64)])
  func `A digest has the length of its algorithm`(name: String, count: Int) throws {
    let read = try #require(Fingerprint(Substring("\(name) \(Self.digest(count))")))
    #expect(read.algorithm == name.lowercased() && read.digest == [UInt8](repeating: 0xAB, count: count))
    #expect(read.text == "\(name.lowercased()) \(Self.digest(count))")
    for wrong in [count - 1, count + 1, 0] { #expect(Fingerprint(Substring("\(name) \(Self.digest(wrong))")) == nil) }
  }

  @Test(arguments: ["A", "ABC", "XY", "+A", "-0", "", "é"])
  func `A digest is made of two digits each`(byte: String) {
    #expect(Fingerprint(Substring("sha-256 \(Self.digest(31)):\(byte)")) == nil)
  }

  @Test func `Weak and unknown algorithms are none`() {
    #expect(Fingerprint(Substring("sha-1 \(Self.digest(20))")) == nil)
    #expect(Fingerprint(Substring("md5 \(Self.digest(16))")) == nil && Fingerprint("sha-256") == nil)
    #expect(Fingerprint(Substring("sha-256 \(Self.digest(32, "0f"))"))?.digest.first == 15, "lower case is read, too")
  }

  // MARK: formats

  @Test func `A map has a name, a rate and perhaps channels`() {
    for (text, name, clock, channels) in [
      ("opus/48000/2", "opus", 48_000, 2), ("H264/90000", "h264", 90_000, 1), ("PCMA/8000/x", "pcma", 8000, 1),
      ("opus/48000/256", "opus", 48_000, 1), ("opus", "", 0, 1), ("opus/", "", 0, 1), ("opus/4294967296", "", 0, 1),
    ] as [(String, String, UInt32, UInt8)] {
      var format = PayloadFormat(111)
      format.readMap(Substring(text))
      #expect((format.name, format.clock, format.channels) == (name, clock, channels), "\(text)")
    }
    // RFC 3551 §6: these need no map.
    #expect((PayloadFormat(0).name, PayloadFormat(8).name, PayloadFormat(8).clock) == ("pcmu", "pcma", 8000))
    #expect(PayloadFormat(9).name.isEmpty)
  }

  @Test func `Parameters are found by their names, with spaces and in any case`() {
    var format = PayloadFormat(98)
    format.parameters = "a=1; Profile-Level-ID = 42E01F ;b;c=x=y"
    #expect(format.parameter("a") == "1" && format.parameter("profile-level-id") == "42e01f")
    #expect(format.parameter("b") == nil && format.parameter("c") == "x=y" && format.parameter("d") == nil)
  }

  // MARK: the transport

  private func transport(_ section: String) throws -> OfferedTransport {
    try OfferedTransport(try SessionOffer(OfferTests.offer(section, bundle: "0")), of: [0])
  }

  private func isRefused(_ section: String) -> Bool {
    do throws(OfferError) {
      _ = try OfferedTransport(try SessionOffer(OfferTests.offer(section, bundle: "0")), of: [0])
      return false
    } catch { return error.code == .unacceptable }
  }

  /// RFC 8839 §5.4: 4 to 256 and 22 to 256 characters.
  @Test func `Credentials have the lengths of RFC 8839`() throws {
    func fragment(_ count: Int) -> String {
      OfferTests.audio.replacing("ice-ufrag:abcd", with: "ice-ufrag:" + String(repeating: "u", count: count))
    }
    func password(_ count: Int) -> String {
      OfferTests.audio.replacing("0123456789abcdefghijklmn", with: String(repeating: "p", count: count))
    }
    for count in [4, 256] { #expect(try transport(fragment(count)).fragment.utf8.count == count) }
    for count in [22, 256] { #expect(try transport(password(count)).password.utf8.count == count) }
    #expect([3, 257].allSatisfy { isRefused(fragment($0)) } && [21, 257].allSatisfy { isRefused(password($0)) })
  }

  /// RFC 8842 §5.3: who offers `passive` waits for the first message.
  @Test func `Who sends the first message of DTLS is said, or the offer is refused`() throws {
    func setup(_ text: String) -> String { OfferTests.audio.replacing("setup:actpass", with: "setup:\(text)") }
    #expect(try transport(setup("actpass")).role == .server && transport(setup("active")).role == .server)
    #expect(try transport(setup("passive")).role == .client)
    #expect(isRefused(setup("holdconn")) && isRefused(setup("x")))
  }

  // MARK: codecs

  private func format(_ type: UInt8, _ map: String, _ parameters: String = "") -> PayloadFormat {
    var format = PayloadFormat(type)
    format.readMap(Substring(map))
    format.parameters = parameters
    return format
  }

  private func chosen(_ kind: MediaKind, _ formats: PayloadFormat...) -> UInt8? {
    RTPCodec.choose(formats, kind)?.1.payloadType
  }

  @Test func `The codec that is wanted most is taken, whatever the order of the offer`() {
    let (av1, vp9, avc) = (format(1, "AV1/90000"), format(2, "VP9/90000"), format(3, "H264/90000"))
    #expect(chosen(.video, av1, vp9, avc) == 3 && chosen(.video, av1, vp9) == 2 && chosen(.video, av1) == 1)
    #expect(chosen(.audio, format(0, "PCMU/8000"), format(8, "PCMA/8000"), format(111, "opus/48000/2")) == 111)
    #expect(chosen(.audio, format(0, "PCMU/8000"), format(8, "PCMA/8000")) == 8)
    let (vp8, hevc) = (format(4, "VP8/90000"), format(5, "H265/90000"))
    #expect(chosen(.audio, avc) == nil && chosen(.video, vp8, av1) == 1 && chosen(.video, vp8) == 4)
    #expect(chosen(.video, vp8, hevc, av1) == 1 && chosen(.video, vp8, hevc) == 5)
    #expect(RTPCodec.choose([vp8], .video, .refused) == nil, "it would have to be encoded anew")
  }

  @Test func `Forms that weir does not read are not taken`() {
    func isTaken(_ kind: MediaKind, _ map: String, _ parameters: String = "") -> Bool {
      chosen(kind, format(96, map, parameters)) != nil
    }
    #expect(isTaken(.video, "H264/90000") && isTaken(.video, "H264/90000", "packetization-mode=1"))
    #expect(!isTaken(.video, "H264/90000", "packetization-mode=2") && !isTaken(.video, "H264/8000"))
    #expect(isTaken(.video, "AV1/90000", "profile=0") && !isTaken(.video, "AV1/90000", "profile=1"))
    #expect(isTaken(.video, "VP9/90000", "profile-id=2") && !isTaken(.video, "VP9/90000", "profile-id=1"))
    #expect(isTaken(.audio, "PCMA/8000") && !isTaken(.audio, "PCMA/8000/2") && !isTaken(.audio, "PCMA/16000"))
  }

  /// RFC 7798 §7.1: Main is meant where no profile is named.
  @Test func `Of HEVC Main and Main 10 are taken, in one stream and in decoding order`() {
    func isTaken(_ parameters: String) -> Bool { chosen(.video, format(96, "H265/90000", parameters)) != nil }
    for good in [
      "", "profile-id=1", "profile-id=2; tier-flag=1; level-id=186", "profile-space=0;tx-mode=SRST",
      "sprop-max-don-diff=0;sprop-depack-buf-nalus=0",
    ] { #expect(isTaken(good), "\(good)") }
    for bad in [
      "profile-id=0", "profile-id=3", "profile-id=4", "profile-id=x", "profile-space=1", "tx-mode=MRST", "tx-mode=MRMT",
      "sprop-max-don-diff=1", "sprop-max-don-diff=x",
    ] { #expect(!isTaken(bad), "\(bad)") }
    #expect(chosen(.video, format(96, "H265/48000")) == nil)
  }

  @Test func `Profile, tier and level of HEVC are said again as they were offered`() {
    let text = "level-id=186;profile-id=2;tier-flag=1;tx-mode=SRST;interop-constraints=B00000000000;max-lps=9"
    let answer = "profile-id=2;tier-flag=1;level-id=186;tx-mode=SRST;interop-constraints=b00000000000"
    #expect(RTPCodec.parameters(.hevc, format(96, "H265/90000", text))?.hasPrefix(answer + ";x-google") == true)
    #expect(RTPCodec.sentParameters(.hevc, format(96, "H265/90000", text)) == answer)
  }

  @Test(arguments: [
    "", "level-id=256", "level-id=-1;tier-flag=2", "interop-constraints=B0", "profile-compatibility-indicator=6000000g",
    "tier-flag=１;level-id=9３",
  ])
  func `Parameters of HEVC that are none are not said again`(text: String) {
    let answer = RTPCodec.sentParameters(.hevc, format(96, "H265/90000", text))
    #expect(answer == "profile-id=1;tier-flag=0;level-id=93;tx-mode=SRST")
  }

  @Test func `A viewer gets HEVC by its own profile, and Main also by Main 10`() throws {
    let (main, ten) = (
      try SyntheticMedia.hevc().codec, try SyntheticMedia.hevc(SyntheticMedia.hevcMain10Record).codec
    )
    let (plain, second) = (format(97, "H265/90000", "level-id=93"), format(98, "H265/90000", "profile-id=2"))
    #expect(RTPCodec.choose([second, plain], for: main)?.payloadType == 97)
    #expect(RTPCodec.choose([plain, second], for: ten)?.payloadType == 98)
    #expect(RTPCodec.choose([second], for: main)?.payloadType == 98 && RTPCodec.choose([plain], for: ten) == nil)
    #expect(RTPCodec.choose([format(99, "H264/90000", "packetization-mode=1")], for: main) == nil)
    #expect(RTPCodec.packetizer(main) != nil)
  }

  @Test func `H·264 with fragments comes before one without`() {
    let (single, fragments) = (
      format(97, "H264/90000", "packetization-mode=0"), format(98, "H264/90000", "packetization-mode=1")
    )
    #expect(chosen(.video, single, fragments) == 98 && chosen(.video, single) == 97)
  }

  @Test(arguments: ["", "42e01", "42e01f0", "42e01g", "１２", "x;y=zz"])
  func `A profile that is none is not said again`(text: String) throws {
    let format = format(98, "H264/90000", "packetization-mode=1;profile-level-id=\(text)")
    let answers = [RTPCodec.parameters(.h264, format), RTPCodec.sentParameters(.h264, format)]
    for answer in answers {
      let answer = try #require(answer)
      #expect(answer.contains("profile-level-id=42e01f") && answer.utf8.allSatisfy { $0 < 128 }, "\(answer)")
    }
  }

  @Test func `A profile is said again as it was offered`() {
    let format = format(98, "H264/90000", "profile-level-id=640028")
    #expect(RTPCodec.parameters(.h264, format)?.contains("packetization-mode=0;profile-level-id=640028;") == true)
    #expect(RTPCodec.sentParameters(.h264, format)?.hasSuffix("packetization-mode=1;profile-level-id=640028") == true)
  }

  @Test func `A viewer gets H·264 by its own profile, or by another, and never without fragments`() throws {
    let codec = try SyntheticMedia.video().codec  // High
    let (single, base, high) = (
      format(97, "H264/90000", "packetization-mode=0;profile-level-id=640028"),
      format(98, "H264/90000", "packetization-mode=1;profile-level-id=42e01f"),
      format(99, "H264/90000", "packetization-mode=1;profile-level-id=640028")
    )
    #expect(RTPCodec.choose([single, base, high], for: codec)?.payloadType == 99)
    #expect(RTPCodec.choose([single, base], for: codec)?.payloadType == 98)
    #expect(RTPCodec.choose([single], for: codec) == nil && RTPCodec.choose([], for: codec) == nil)
    #expect(RTPCodec.isSent(.h264) && RTPCodec.isSent(.hevc) && !RTPCodec.isSent(.vp8))
    #expect(RTPCodec.packetizer(codec) != nil)
    #expect(RTPCodec.packetizer(try SyntheticMedia.audio().codec) == nil, "AAC becomes Opus first")
  }
}
