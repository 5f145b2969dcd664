import Base
import FMP4
import NIOCore
import Publishing
import Support
import Testing
@testable import WebRTC

/// Encodings of one picture, as Chromium sends them: each with a sender and a count of its own, named by a header extension.
@Suite struct SimulcastTests {
  static let lines = [
    "a=extmap:4 \(Negotiation.midExtension)", "a=extmap:10 \(Negotiation.ridExtension)", "a=rid:l send", "a=rid:m send",
    "a=rid:h send", "a=simulcast:send l;m;h",
  ].map { $0 + "\r\n" }.joined()

  /// A sender of three sizes, which answers requests for key frames with the next frame of all of them.
  struct Sender {
    /// Parameter sets of Chromium 156 at 240, 480 and 960 pixels.
    static let sets: [[UInt8]] = [
      SyntheticMedia.hex("6742c00d8c8d41e26f34d41818181e1108d400"),
      SyntheticMedia.hex("6742c01e8c8d40f047f5350606060784423500"),
      SyntheticMedia.hex("6742c0208c8d407808bf735060606078442350"),
    ]
    static let picture = SyntheticMedia.hex("68ce3c80")
    static let names = ["l", "m", "h"]
    /// The first counts of its senders 30, 31, 32; of the second just before it wraps.
    static let bases: [UInt32] = [2_401_892_398, 4_294_960_000, 212_772_383]

    var publication: WebRTCPublication
    var out: [PublicationAction] = []
    var now = MonotonicTime.zero
    /// For how long its clocks stood, in nanoseconds.
    var stood: Int64 = 0
    /// Which of its encodings come.
    var sends = [true, true, true]
    /// The encoding whose next key frame comes without its first packet, which has the parameter sets.
    var beheads: Int?
    var sequences: [UInt16] = [7, 65_530, 9]
    var frame: UInt32 = 0
    var wantsKey = true
    /// Requests for key frames: milliseconds, and whom.
    var requests: [(at: Int64, sources: Set<UInt32>)] = []

    init() throws {
      let offer = try SessionOffer(OfferTests.offer(OfferTests.audio, OfferTests.video + SimulcastTests.lines))
      let clock = ClockReading(wall: WallTime(milliseconds: 1_000_000), monotonic: .zero)
      publication = WebRTCPublication(try Negotiation(offer), reading: clock, now: .zero)
      publication.keyFrameDistance = 2_000_000_000
    }

    static func payload(_ layer: Int, isKey: Bool) -> [UInt8] {
      guard isKey else { return [0x41, 0x9A, UInt8(layer)] }
      return [0x78] + [sets[layer], picture, [0x65, 0x88, UInt8(layer)]].flatMap { [0, UInt8($0.count)] + $0 }
    }

    static func name(_ layer: Int) -> [UInt8] { [0x40, UInt8(ascii: "1"), 0xA0] + Array(names[layer].utf8) }

    /// A frame of each encoding, a packet of audio and what is due.
    mutating func step() throws {
      let isKey = wantsKey
      wantsKey = false
      for layer in 0..<3 where sends[layer] {
        // The larger ones arrive later.
        let arrival = now &+ Int64(layer) * 3_000_000
        let packet = RTPPackets.bytes(
          sequences[layer], at: Self.bases[layer] &+ frame * 3000, source: 30 + UInt32(layer), marker: true,
          extensions: Self.name(layer), Self.payload(layer, isKey: isKey && layer != beheads))
        sequences[layer] &+= 1
        try publication.receive(rtp: packet, now: arrival, to: &out)
        // Each report is a millisecond off, to either side.
        if frame % 15 == 14 {
          let off: Int64 = frame % 2 == 0 ? 1_000_000 : -1_000_000
          let report = RTPPackets.report(30 + UInt32(layer), now.nanoseconds + off, Self.bases[layer] &+ frame * 3000)
          publication.receive(rtcp: report, now: now, to: &out)
        }
      }
      if isKey { beheads = nil }
      let audio = RTPPackets.bytes(UInt16(frame), at: frame * 1600, source: 5, type: 111, [0xFC, 1, 2])
      try publication.receive(rtp: audio, now: now, to: &out)
      frame += 1
      for part in Int64(1)...2 {
        now = MonotonicTime(nanoseconds: stood + Int64(frame - 1) * 33_333_333 + part * 16_666_666)
        read(try publication.tick(now: now, to: &out))
      }
    }

    /// Nothing is sent, and its clocks stand.
    mutating func pause(milliseconds: Int64) {
      stood += milliseconds * 1_000_000
      now = now &+ milliseconds * 1_000_000
    }

    mutating func run(_ frames: Int) throws { for _ in 0..<frames { try step() } }

    mutating func bye(_ layer: Int) {
      publication.receive(rtcp: ByteBuffer(bytes: [0x81, 203, 0, 1, 0, 0, 0, 30 + UInt8(layer)]), now: now, to: &out)
    }

    private mutating func read(_ datagrams: [ByteBuffer]) {
      var sources: Set<UInt32> = []
      for datagram in datagrams {
        for event in RTCPReader.read(datagram) { if case .keyFrame(let source) = event { sources.insert(source) } }
      }
      guard !sources.isEmpty else { return }
      requests.append((now.nanoseconds / 1_000_000, sources))
      wantsKey = true
    }

    /// The video tracks of each announcement, and their widths.
    var announced: [[TrackID: Int]] {
      out.compactMap { action in
        guard case .event(.tracks(let tracks)) = action else { return nil }
        let videos = tracks.filter { $0.kind == .video }
        return Dictionary(uniqueKeysWithValues: videos.map { ($0.id, $0.codec.displaySize?.width ?? 0) })
      }
    }

    func samples(_ track: TrackID) -> [Sample] {
      out.compactMap { if case .event(.sample(let sample)) = $0, sample.track == track { sample } else { nil } }
    }

    var lost: Int { out.count { if case .lost(.video) = $0 { true } else { false } } }
  }

  private static let (first, second, third) = (TrackID.video, TrackID(.video, 2), TrackID(.video, 3))

  @Test func `Three encodings are three tracks of one clock, the largest first`() throws {
    var sender = try Sender()
    try sender.run(150)
    #expect(sender.announced.count == 1)
    let widths = try #require(sender.announced.first)
    #expect(widths.keys.sorted() == [Self.first, Self.second, Self.third])
    #expect(widths[Self.first] ?? 0 > widths[Self.second] ?? 0 && widths[Self.second] ?? 0 > widths[Self.third] ?? 0)
    let tracks = [Self.first, Self.second, Self.third].map { sender.samples($0) }
    // From the choice on, well within two seconds.
    #expect(tracks[0].count >= 90, "\(tracks[0].count)")
    for track in tracks {
      #expect(track.map(\.decodeTime) == tracks[0].map(\.decodeTime), "one clock, to the tick")
      #expect(track.map(\.isSync) == tracks[0].map(\.isSync), "key frames of one picture")
    }
    #expect(tracks[0].first?.isSync == true && sender.lost == 0)
    #expect(sender.requests.allSatisfy { $0.sources == [30, 31, 32] }, "\(sender.requests)")
    // At most 2 s apart.
    let keys = tracks[0].filter(\.isSync).map(\.decodeTime)
    #expect(keys.count >= 2 && zip(keys, keys.dropFirst()).allSatisfy { $1 - $0 <= 180_000 }, "\(keys)")
    let audio = sender.samples(.audio)
    #expect(audio.count > 80, "\(audio.count)")
  }

  @Test(arguments: 0..<3) func `The beginning of an encoding that is lost is asked for at once`(_ layer: Int) throws {
    var sender = try Sender()
    sender.beheads = layer
    try sender.run(2)
    #expect(
      sender.requests.first?.at ?? .max <= 34 && sender.requests.first?.sources == [30, 31, 32], "\(sender.requests)")
    try sender.run(148)
    #expect(sender.announced.first?.count == 3 && sender.lost == 0)
    #expect(sender.samples(Self.first).count >= 88)
  }

  @Test func `An encoding that stops leaves, and joins again when it flows; the others go on`() throws {
    var sender = try Sender()
    try sender.run(120)
    sender.sends[2] = false
    let before = sender.requests.count
    try sender.run(120)
    #expect(sender.announced.last?.keys.sorted() == [Self.second, Self.third])
    #expect(!sender.publication.hasEnded)
    // Four seconds: those that go on have their key frames, and no more than at the usual distance and one for the change.
    #expect(sender.requests.count - before <= 5, "\(sender.requests)")
    let gone = sender.samples(Self.first).count
    sender.sends[2] = true
    try sender.run(45)
    #expect(sender.announced.last?.keys.sorted() == [Self.second, Self.third], "it has to flow for a while")
    #expect(sender.samples(Self.first).count == gone)
    try sender.run(180)
    #expect(sender.announced.last?.keys.sorted() == [Self.first, Self.second, Self.third])
    let times = [Self.second, Self.third].map { sender.samples($0).map(\.decodeTime) }
    #expect(times[0] == times[1])
    #expect(zip(times[0], times[0].dropFirst()).allSatisfy { $1 - $0 == 3000 }, "no frame of the others is missing")
    #expect(sender.lost == 0)
  }

  @Test func `An encoding that does not come is waited for a second and a half, and may come later`() throws {
    var sender = try Sender()
    sender.sends[0] = false
    try sender.run(44)
    #expect(sender.announced.isEmpty)
    try sender.run(16)
    #expect(sender.announced.last?.keys.sorted() == [Self.first, Self.second])
    sender.sends[0] = true
    try sender.run(150)
    #expect(sender.announced.last?.keys.sorted() == [Self.first, Self.second, Self.third])
    let (times, late) = (sender.samples(Self.first).map(\.decodeTime), sender.samples(Self.third))
    #expect(late.first?.isSync == true && Set(late.map(\.decodeTime)).isSubset(of: times))
  }

  @Test func `A sender that ends one encoding goes on; with its last one it has ended`() throws {
    var sender = try Sender()
    try sender.run(90)
    sender.bye(2)
    sender.sends[2] = false
    try sender.run(20)
    #expect(!sender.publication.hasEnded)
    #expect(sender.announced.last?.keys.sorted() == [Self.second, Self.third])
    sender.bye(1)
    #expect(!sender.publication.hasEnded)
    sender.bye(0)
    #expect(sender.publication.hasEnded)
  }

  @Test(arguments: [false, true])
  func `An encoding that follows another one without overlap goes on in its place`(_ tells: Bool) throws {
    var sender = try Sender()
    sender.sends = [true, false, false]
    try sender.run(120)
    #expect(sender.announced.last?.keys.sorted() == [Self.first])
    if tells { sender.bye(0) }
    sender.sends = [false, false, true]
    try sender.run(150)
    #expect(!sender.publication.hasEnded)
    #expect(sender.announced.last?.keys.sorted() == [Self.second])
    let (before, after) = (sender.samples(Self.first), sender.samples(Self.second))
    #expect(after.first?.isSync == true && after.count > 30, "\(after.count)")
    // By reports, which are a millisecond off.
    let step = (after.first?.decodeTime ?? 0) - (before.last?.decodeTime ?? 0)
    #expect(step % 3000 <= 180 || step % 3000 >= 2820, "\(step)")
  }

  @Test func `A sender belongs to the encoding that it names, and to none without a name`() throws {
    var sender = try Sender()
    func takes(_ source: UInt32, _ extensions: [UInt8]?) throws -> Bool {
      let packet = RTPPackets.bytes(1, source: source, extensions: extensions, [0x41, 0x9A, 1])
      var out: [PublicationAction] = []
      return try sender.publication.receive(rtp: packet, now: .zero, to: &out)
    }
    let named = try takes(40, Sender.name(0))
    let (nameless, unknown) = (try takes(41, nil), try takes(42, [0x40, UInt8(ascii: "1"), 0xA0, UInt8(ascii: "x")]))
    #expect(named && !nameless && !unknown)
    // The name stands in the first packets alone.
    let later = try takes(40, nil)
    #expect(later)
  }

  @Test func `Packets that come again belong to the encoding that they name`() throws {
    let repairs = OfferTests.video.replacing("96 97 98", with: "96 97 98 99")
    let lines =
      Self.lines + "a=extmap:11 \(Negotiation.repairedExtension)\r\na=rtpmap:99 rtx/90000\r\na=fmtp:99 apt=98\r\n"
    let negotiation = try Negotiation(try SessionOffer(OfferTests.offer(OfferTests.audio, repairs + lines)))
    func track(_ extensions: [UInt8]) throws -> String? {
      let packet = try #require(
        RTPPacket(RTPPackets.bytes(1, source: 50, type: 99, extensions: extensions, [0, 1, 2])))
      return negotiation.track(repairedBy: packet)?.rid
    }
    #expect(try track([0x40, UInt8(ascii: "1"), 0xB0, UInt8(ascii: "m")]) == "m")
    #expect(try track([0xB0, UInt8(ascii: "h")]) == "h")
    // The name of media is none of a repeated packet.
    #expect(try track([0xA0, UInt8(ascii: "m")]) == nil)
  }

  // MARK: clocks

  @Test func `Encodings without reports are on one clock where they count alike`() {
    var clocks = LayerClocks()
    for frame in UInt32(0)..<5 {
      #expect(!clocks.isKnown(Self.second))
      let now = MonotonicTime(nanoseconds: Int64(frame) * 100_000_000)
      for id in [Self.first, Self.second] { clocks.saw(id, 1000 &+ frame * 3000, now) }
    }
    #expect(clocks.common(Self.second, 4000) == 4000)
  }

  @Test func `Reports that no pair of frames fits put nothing on the clock`() {
    var clocks = LayerClocks()
    // The frames of the second lie between those of the first.
    for frame in UInt32(0)..<20 {
      clocks.saw(Self.first, frame * 3000, .zero)
      clocks.saw(Self.second, 77 &+ frame * 3000, .zero)
    }
    clocks.report(Self.first, wall: 1_000_000_000, timestamp: 90_000, .zero)
    clocks.report(Self.second, wall: 1_000_000_000, timestamp: 90_000 + 77 + 1500, .at(100_000_000))
    #expect(!clocks.isKnown(Self.second))
    let fitting: (Int64, UInt32) = (1_001_000_000, 90_000 + 77 + 90 + 400)
    clocks.report(Self.second, wall: fitting.0, timestamp: fitting.1, .at(199_000_000))
    #expect(!clocks.isKnown(Self.second), "it is looked for ten times a second at most")
    clocks.report(Self.second, wall: fitting.0, timestamp: fitting.1, .at(200_000_000))
    #expect(clocks.common(Self.second, 77) == 0)
    clocks.forget(Self.first)
    #expect(!clocks.isEmpty && clocks.isKnown(Self.second) && !clocks.isKnown(Self.first))
    clocks.forget(Self.second)
    #expect(clocks.isEmpty)
  }
}
