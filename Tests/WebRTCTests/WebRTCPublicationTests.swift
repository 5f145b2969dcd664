import Base
import FMP4
import Logging
import NIOCore
@testable import Publishing
import Support
import Testing
@testable import WebRTC

/// Packets of a sender as a publication, and what the sender is told.
@Suite struct WebRTCPublicationTests {
  private struct Driver {
    static let wall = WallTime(milliseconds: 1_000_000)
    var publication: WebRTCPublication
    var now = MonotonicTime.zero
    var out: [PublicationAction] = []

    init(video: String = OfferTests.video) throws {
      let offer = try SessionOffer(OfferTests.offer(OfferTests.audio, video))
      let clock = ClockReading(wall: Self.wall, monotonic: .zero)
      publication = WebRTCPublication(try Negotiation(offer), reading: clock, now: .zero)
    }

    mutating func audio(_ sequence: UInt16, at timestamp: UInt32) throws {
      let packet = RTPPackets.bytes(sequence, at: timestamp, source: 5, type: 111, [0xFC, 1, 2])
      try publication.receive(rtp: packet, now: now, to: &out)
      now = now &+ 20_000_000
    }

    /// Audio samples: decode time and bytes.
    var samples: [(time: Int64, size: Int)] {
      out.compactMap {
        if case .event(.sample(let sample)) = $0 { (sample.decodeTime, sample.payload.readableBytes) } else { nil }
      }
    }

    /// Times of day of media time 0 after the clock began, in tenths of a millisecond.
    var clocks: [Int64] {
      out.compactMap {
        if case .event(.clock(let anchor)) = $0 { (anchor.wallTime &- Self.wall) / 100_000 } else { nil }
      }
    }

    /// What became of a warning.
    func told(_ warning: PublicationWarning) -> [String] {
      out.compactMap { action -> String? in
        switch action {
        case .warn(warning): "warn"
        case .withdraw(warning): "withdraw"
        case .log(.warning, warning.description): "log"
        default: nil
        }
      }
    }

    /// Packets that were made up.
    var filled: Int { samples.count { $0.size == 1 } }

    mutating func tick() throws -> [ByteBuffer] { try publication.tick(now: now, to: &out) }

    /// Three seconds pass.
    mutating func wait() throws {
      for _ in 0..<300 {
        now = now &+ 10_000_000
        _ = try tick()
      }
    }

    /// Whether a packet of video counts as media.
    mutating func takes(
      _ sequence: UInt16, of source: UInt32, type: UInt8 = 98, _ payload: [UInt8] = [1]
    ) throws -> Bool {
      let packet = RTPPackets.bytes(sequence, source: source, type: type, payload)
      return try publication.receive(rtp: packet, now: now, to: &out)
    }
  }

  @Test func `Opus that is missing or silent leaves no hole`() throws {
    var driver = try Driver()
    // The second packet is late, the fourth is lost; then silence of 60 ms.
    for (sequence, timestamp): (UInt16, UInt32) in [(1, 0), (3, 1920), (2, 960), (5, 3840), (6, 4800), (7, 8640)] {
      try driver.audio(sequence, at: timestamp)
    }
    try driver.wait()
    let times = driver.samples.map(\.time)
    #expect(times == (0..<10).map { Int64($0) * 960 })
    #expect(driver.samples.map(\.size) == [3, 3, 3, 1, 3, 3, 1, 1, 1, 3])
    #expect(driver.out.count { if case .lost(.audio) = $0 { true } else { false } } == 1)
  }

  @Test func `A key frame is asked for until one is there, twice a second at most, unless it comes by itself`() throws {
    var driver = try Driver()
    try driver.publication.receive(rtp: RTPPackets.bytes(1, source: 77), now: driver.now, to: &driver.out)
    var asked = 0
    for _ in 0..<100 {
      driver.now = driver.now &+ 20_000_000
      for datagram in try driver.tick() {
        let bytes = Array(datagram.readableBytesView)
        let place = bytes.indices.first { $0 % 4 == 0 && bytes[$0...].starts(with: [0x81, 206, 0, 2]) }
        if place != nil { asked += 1 }
      }
    }
    #expect(asked == 3)
  }

  /// Parameter sets, and a key frame behind them, each as a packet of its own sequence number, and both in one.
  static let parameterSets: [UInt8] = {
    // A record of H.264 with one set of each kind.
    let record = PublishedRecord.avc25
    let end = 8 + Int(record[7])
    let sets = [Array(record[8..<end]), Array(record[(end + 3)..<(end + 3 + Int(record[end + 2]))])]
    return [0x78] + sets.flatMap { [0, UInt8($0.count)] + $0 }
  }()
  static let slice: [UInt8] = [0x65, 0x88, 0x84, 1]
  static let keyFrame: [UInt8] = parameterSets + [0, UInt8(slice.count)] + slice

  /// Its parameter sets state 25 frames a second. One keeps far from it, one within 0.7 ms.
  @Test(arguments: [(2000, 1999), (3540, 121)] as [(UInt32, UInt32)])
  func `Times of a camera that keeps to no rate are its own, to the tick`(least: UInt32, spread: UInt32) throws {
    var driver = try Driver()
    for number: UInt16 in 0..<20 { try driver.audio(number, at: UInt32(number) * 960) }
    var wire: [UInt32] = [0]
    for number in UInt32(1)..<120 { wire.append(wire[Int(number) - 1] + least + number * 37 % spread) }
    for (number, time) in wire.enumerated() {
      let payload: [UInt8] = number == 0 ? Self.keyFrame : [0x41, 0x9A, 3]
      let packet = RTPPackets.bytes(UInt16(number), at: time, source: 77, marker: true, payload)
      driver.now = driver.now &+ 30_000_000
      try driver.publication.receive(rtp: packet, now: driver.now, to: &driver.out)
    }
    var timescales: Set<UInt32> = []
    for action in driver.out {
      guard case .event(.tracks(let tracks)) = action else { continue }
      timescales.formUnion(tracks.filter { $0.kind == .video }.map(\.timescale))
    }
    #expect(timescales == [90_000])
    let times = driver.out.compactMap { action -> Int64? in
      if case .event(.sample(let sample)) = action, sample.track == .video { sample.decodeTime } else { nil }
    }
    #expect(times.count == 120)
    let apart = zip(times, wire).map { $0 - Int64($1) }
    #expect(Set(apart).count == 1, "\(Set(apart))")
  }

  @Test(arguments: [450_000, 324_000_000, -450_000, -324_000_000] as [Int32])
  func `A frame with a wrong timestamp is taken like any other`(_ error: Int32) throws {
    var driver = try Driver()
    for number: UInt16 in 0..<20 { try driver.audio(number, at: UInt32(number) * 960) }
    for number in UInt32(0)..<100 {
      let payload: [UInt8] = number == 0 ? Self.keyFrame : [0x41, 0x9A, 3]
      let time = 1_000_000_000 + number * 3600 &+ (number == 50 ? UInt32(bitPattern: error) : 0)
      let packet = RTPPackets.bytes(UInt16(number), at: time, source: 77, marker: true, payload)
      driver.now = driver.now &+ 40_000_000
      try driver.publication.receive(rtp: packet, now: driver.now, to: &driver.out)
    }
    var (times, broken): ([Int64], Int) = ([], 0)
    for action in driver.out {
      switch action {
      case .event(.sample(let sample)) where sample.track == .video: times.append(sample.decodeTime)
      case .event(.discontinuity), .lost(.video): broken += 1
      default: break
      }
    }
    #expect(times.count == 100 && broken == 0)
    #expect(Set(zip(times, times.dropFirst()).map { $1 - $0 }).count == 1)
  }

  @Test func `HEVC goes on as it is: sets that come again change nothing, and a frame that goes back is lost`() throws {
    let section = OfferTests.section("video", "98", "a=mid:1", "a=rtpmap:98 H265/90000", "a=rtcp-fb:98 nack pli")
    let configuration = try HEVC.Configuration(record: ByteBuffer(bytes: SyntheticMedia.hevcRecord))
    let units = configuration.vps + configuration.sps + configuration.pps + [[0x26, 1, 0xAF, 1]]
    let keyFrame: [UInt8] = [0x60, 1] + units.flatMap { [0, UInt8($0.count)] + $0 }
    var driver = try Driver(video: section)
    for number: UInt16 in 0..<20 { try driver.audio(number, at: UInt32(number) * 960) }
    for number in UInt16(0)..<60 {
      let payload: [UInt8] = number % 30 == 0 ? keyFrame : [0x02, 1, 0xD0, 3]
      // RTP has no decode times: of two frames in another order the later one is left out.
      let time = UInt32(number) * 3000 - (number == 40 ? 4500 : 0)
      let packet = RTPPackets.bytes(number, at: time, source: 77, marker: true, payload)
      driver.now = driver.now &+ 30_000_000
      try driver.publication.receive(rtp: packet, now: driver.now, to: &driver.out)
    }
    let samples = driver.out.compactMap { action -> Sample? in
      if case .event(.sample(let sample)) = action, sample.track == .video { sample } else { nil }
    }
    #expect(samples.count == 59 && samples.count(where: \.isSync) == 2)
    #expect(samples.allSatisfy { $0.payload.readableBytes == 8 }, "parameter sets are in the sample entry alone")
    #expect(driver.out.count { if case .lost(.video) = $0 { true } else { false } } == 1)
    var codecs: Set<String> = []
    for action in driver.out {
      guard case .event(.tracks(let tracks)) = action else { continue }
      codecs.formUnion(tracks.filter { $0.kind == .video }.map(\.codec.codecString))
    }
    #expect(codecs == ["hvc1.1.6.L120.90"])
  }

  private static let vp9 = OfferTests.section(
    "video", "98", "a=mid:1", "a=rtpmap:98 VP9/90000", "a=fmtp:98 profile-id=0", "a=rtcp-fb:98 nack pli")
  /// The beginning of a key frame, the same without its sync code, and another frame, each behind a descriptor.
  private static let (vp9Key, vp9Damaged, vp9Frame): ([UInt8], [UInt8], [UInt8]) = (
    [0x0C, 0x82, 0x49, 0x83, 0x42, 0x40, 0x27, 0xF0, 0x16, 0x76, 0x06],
    [0x0C, 0x82, 0x49, 0x83, 0x43, 0x40, 0x27, 0xF0, 0x16, 0x76, 0x06], [0x0C, 0x86, 0x00, 0x40]
  )

  @Test func `VP9 that cannot be read is counted and told, and asked for again, until it can be read`() throws {
    var driver = try Driver(video: Self.vp9)
    var asked = 0
    for number in UInt16(0)..<40 {
      let payload = number == 30 ? Self.vp9Key : number % 10 == 0 ? Self.vp9Damaged : Self.vp9Frame
      let packet = RTPPackets.bytes(number, at: UInt32(number) * 3600, source: 77, marker: true, payload)
      try driver.publication.receive(rtp: packet, now: driver.now, to: &driver.out)
      driver.now = driver.now &+ 40_000_000
      for datagram in try driver.tick() {
        let bytes = Array(datagram.readableBytesView)
        if bytes.indices.contains(where: { bytes[$0...].starts(with: [0x81, 206, 0, 2]) }) { asked += 1 }
      }
    }
    try driver.wait()
    #expect(driver.told(Self.unreadable) == ["log", "warn", "withdraw"])
    // Also those between them: none can be shown before the first key frame that can be read.
    #expect(driver.out.count { if case .lost(.video) = $0 { true } else { false } } == 30)
    #expect((2...3).contains(asked), "\(asked)")
    #expect(driver.samples.count == 10)
  }

  private static let unreadable = PublicationWarning.unreadable(
    .video, "a key frame of VP9 without its sync code (at byte 1)")

  @Test func `Each warning of unreadable VP9 ends with the next key frame, and only the first is logged`() throws {
    var driver = try Driver(video: Self.vp9)
    for number in UInt16(0)..<50 {
      let key = number == 10 || number == 30 ? Self.vp9Damaged : Self.vp9Key
      let payload = number % 10 == 0 ? key : Self.vp9Frame
      let packet = RTPPackets.bytes(number, at: UInt32(number) * 3600, source: 77, marker: true, payload)
      try driver.publication.receive(rtp: packet, now: driver.now, to: &driver.out)
      driver.now = driver.now &+ 40_000_000
      _ = try driver.tick()
    }
    try driver.wait()
    #expect(driver.told(Self.unreadable) == ["log", "warn", "withdraw", "warn", "withdraw"])
  }

  @Test func `A key frame is asked for before a segment becomes too long, and when the stream wants one`() throws {
    var driver = try Driver()
    driver.publication.keyFrameDistance = 2_000_000_000
    /// Times in milliseconds of requests, while a sender answers each after 60 ms.
    var asked: [Int64] = []
    var sequence: UInt16 = 0
    var keyFrameAt: Int64? = 0
    for millisecond in stride(from: Int64(0), to: 9000, by: 20) {
      driver.now = MonotonicTime(nanoseconds: millisecond * 1_000_000)
      let isKey = keyFrameAt.map { $0 <= millisecond } ?? false
      if isKey { keyFrameAt = nil }
      let payload: [UInt8] = isKey ? Self.keyFrame : [0x41, 0x9A, 3]
      let packet = RTPPackets.bytes(
        sequence, at: UInt32(millisecond * 90), source: 77, marker: true, payload)
      sequence &+= 1
      try driver.publication.receive(rtp: packet, now: driver.now, to: &driver.out)
      if millisecond == 5000 { driver.publication.requestKeyFrame() }
      let bytes = try driver.tick().flatMap { Array($0.readableBytesView) }
      guard bytes.indices.contains(where: { bytes[$0...].starts(with: [0x81, 206, 0, 2]) }) else { continue }
      asked.append(millisecond)
      keyFrameAt = keyFrameAt ?? millisecond + 60
    }
    // About 2 s after each key frame at the latest, 0.1 s ahead; once at 5 s beside that.
    #expect(asked.count == 5, "\(asked)")
    #expect(asked.contains(5000))
    #expect(zip(asked, asked.dropFirst()).allSatisfy { $1 - $0 <= 2000 && $1 - $0 >= 500 }, "\(asked)")
  }

  /// A key frame at the beginning and after 12 s, whatever is asked.
  @Test
  func `A sender that ignores requests is asked twice a second at most, and that is told until a key frame comes`()
    throws
  {
    var driver = try Driver()
    driver.publication.keyFrameDistance = 2_000_000_000
    var (asked, told): ([Int64], [String]) = ([], [])
    for (index, millisecond) in stride(from: Int64(0), to: 14_000, by: 20).enumerated() {
      driver.now = MonotonicTime(nanoseconds: millisecond * 1_000_000)
      let payload: [UInt8] = millisecond == 0 || millisecond == 12_000 ? Self.keyFrame : [0x41, 0x9A, 3]
      let packet = RTPPackets.bytes(
        UInt16(index), at: UInt32(millisecond * 90), source: 77, marker: true, payload)
      try driver.publication.receive(rtp: packet, now: driver.now, to: &driver.out)
      let bytes = try driver.tick().flatMap { Array($0.readableBytesView) }
      if bytes.indices.contains(where: { bytes[$0...].starts(with: [0x81, 206, 0, 2]) }) { asked.append(millisecond) }
      for action in driver.out {
        switch action {
        case .warn(.ignoresRequests): told.append("told at \(millisecond / 500 * 500)")
        case .withdraw(.ignoresRequests): told.append("withdrawn at \(millisecond)")
        default: break
        }
      }
      driver.out.removeAll { if case .event(.tracks) = $0 { false } else { true } }
    }
    // Asked for from just before 2 s on.
    #expect(
      told == ["told at 6500", "withdrawn at 12000"] || told == ["told at 7000", "withdrawn at 12000"], "\(told)")
    #expect(zip(asked, asked.dropFirst()).allSatisfy { $1 - $0 >= 500 }, "\(asked)")
    #expect((18...22).contains(asked.count), "\(asked)")
  }

  @Test func `A sender without frames is not said to ignore requests`() throws {
    var driver = try Driver()
    driver.publication.keyFrameDistance = 2_000_000_000
    let packet = RTPPackets.bytes(0, at: 0, source: 77, marker: true, Self.keyFrame)
    try driver.publication.receive(rtp: packet, now: driver.now, to: &driver.out)
    for _ in 0..<4 { try driver.wait() }
    #expect(driver.told(.ignoresRequests).isEmpty)
  }

  @Test func `Times of day are the sender's own once its clock fits`() throws {
    var driver = try Driver()
    // Without video the beginning is waited for, and then its times are watched for half a second.
    for number: UInt16 in 0..<160 { try driver.audio(number, at: UInt32(number) * 960) }
    /// The first packet was made so many milliseconds after the driver's clock began.
    func report(_ milliseconds: Int64) -> ByteBuffer {
      let time = 2_208_988_800_000 + Driver.wall.milliseconds + milliseconds
      var bytes = ByteBuffer(bytes: [0x80, 200, 0, 6, 0, 0, 0, 5])
      bytes.writeInteger(UInt32(time / 1000))
      bytes.writeInteger(UInt32((time % 1000) << 32 / 1000))
      bytes.writeInteger(UInt32(0))
      bytes.writeRepeatingByte(0, count: 8)
      return bytes
    }
    let before = driver.clocks
    // From the future, and from too long ago: not believed.
    for wrong: Int64 in [500, -900] {
      var other = driver
      other.publication.receive(rtcp: report(wrong), now: other.now, to: &other.out)
      #expect(other.out.count == driver.out.count)
    }
    driver.publication.receive(rtcp: report(-80), now: driver.now, to: &driver.out)
    #expect(driver.clocks.count == before.count + 1)
    // In tenths of a millisecond: the first packet came at once, 20 ms before its end.
    #expect(before.last == -200 && ((driver.clocks.last ?? 0) + 800).magnitude <= 1)
  }

  /// The packet with the parameter sets is the first one: no number shows that it is missing. It and a key frame are
  /// asked for at once, and it is waited for as any other one.
  @Test(arguments: [true, false])
  func `A lost packet in front of the first one is asked for again, and a key frame is, too`(comes: Bool) throws {
    var driver = try Driver()
    for number in UInt16(11)..<14 {
      let payload: [UInt8] = number == 11 ? Self.slice : [0x41, 0x9A, 3]
      let packet = RTPPackets.bytes(number, at: UInt32(number) * 3000, source: 77, marker: true, payload)
      try driver.publication.receive(rtp: packet, now: driver.now, to: &driver.out)
    }
    let bytes = try driver.tick().flatMap { Array($0.readableBytesView) }
    let again: [UInt8] = [0x81, 205, 0, 3, 0, 0, 0, 1, 0, 0, 0, 77, 0, 10, 0, 0]
    let request: [UInt8] = [0x81, 206, 0, 2, 0, 0, 0, 1, 0, 0, 0, 77]
    for wanted in [again, request] { #expect(bytes.indices.contains { bytes[$0...].starts(with: wanted) }) }
    #expect(driver.out.allSatisfy { if case .lost(.video) = $0 { false } else { true } })
    if comes {
      let packet = RTPPackets.bytes(10, at: 33_000, source: 77, Self.parameterSets)
      try driver.publication.receive(rtp: packet, now: driver.now, to: &driver.out)
    }
    for number in UInt16(0)..<3 { try driver.audio(number, at: UInt32(number) * 960) }
    try driver.wait()
    let videos = driver.out.count { if case .event(.sample(let sample)) = $0 { sample.track == .video } else { false } }
    let lost = driver.out.count { if case .lost(.video) = $0 { true } else { false } }
    // Without them each frame is told as lost, once: what was not there is none.
    #expect((videos, lost) == (comes ? (3, 0) : (0, 3)))
  }

  @Test func `Where packets are lost a key frame is asked for four times a second`() throws {
    var driver = try Driver()
    var asked: [Int64] = []
    for number in UInt16(0)..<60 {
      driver.now = MonotonicTime(nanoseconds: Int64(number) * 20_000_000)
      // One never comes.
      if number != 10 {
        let payload: [UInt8] = number == 0 ? Self.keyFrame : [0x41, 0x9A, 3]
        let packet = RTPPackets.bytes(number, at: UInt32(number) * 1800, source: 77, marker: true, payload)
        try driver.publication.receive(rtp: packet, now: driver.now, to: &driver.out)
      }
      let bytes = try driver.tick().flatMap { Array($0.readableBytesView) }
      if bytes.indices.contains(where: { bytes[$0...].starts(with: [0x81, 206, 0, 2]) }) {
        asked.append(driver.now.nanoseconds / 1_000_000)
      }
    }
    // It is given up after 250 ms: asked for at once, and again each 260 ms of the driver.
    #expect((460...500).contains(asked.first ?? 0) && asked.count == 3, "\(asked)")
    #expect(zip(asked, asked.dropFirst()).allSatisfy { (250...280).contains($1 - $0) }, "\(asked)")
  }

  @Test func `Where a request may be lost there is time for two`() {
    var video = WebRTCPublication.Video()
    video.noteKeyFrame(.zero)
    let now = MonotonicTime(nanoseconds: 1_700_000_000)
    let (usual, early) = (
      video.isDue(2_000_000_000, reserve: 0, now), video.isDue(2_000_000_000, reserve: 250_000_000, now)
    )
    #expect(!usual && early)
  }

  /// 33 pictures a second, one packet each. The numbers of some that are wrong, and where they come.
  @Test(arguments: [100, 1500, 20_000])
  func `A packet with a number far ahead is told within 2 s, and pictures go on within 1 s`(_ step: UInt16) throws {
    var driver = try Driver()
    var (shown, told): ([UInt16], [String]) = ([], [])
    for number in UInt16(0)..<1400 {
      let now = Int64(number) * 30
      driver.now = MonotonicTime(nanoseconds: now * 1_000_000)
      for sequence in number == 100 ? [number &+ step, number] : [number] {
        let payload: [UInt8] = number % 40 == 0 ? Self.keyFrame : [0x41, 0x9A, 3]
        let packet = RTPPackets.bytes(sequence, at: UInt32(number) * 2700, source: 77, marker: true, payload)
        try driver.publication.receive(rtp: packet, now: driver.now, to: &driver.out)
      }
      _ = try driver.tick()
      for action in driver.out {
        switch action {
        case .event(.sample): shown.append(number)
        case .warn(.numbersJump): told.append("told in second \(now / 1000 - 3)")
        case .withdraw(.numbersJump): told.append("withdrawn in second \(now / 1000 - 3)")
        default: break
        }
      }
      driver.out = []
    }
    #expect(told.count == 2 && ["told in second 0", "told in second 1"].contains(told.first))
    #expect(["withdrawn in second 30", "withdrawn in second 31"].contains(told.last), "\(told)")
    #expect(zip(shown, shown.dropFirst()).allSatisfy { $1 - $0 <= 34 }, "\(shown.count)")
    #expect(shown.last == 1399)
    if step == 1500 { #expect(shown.filter { $0 > 100 } == Array(101..<1400), "no other picture is lost") }
  }

  @Test func `Missing packets of video are asked for by their numbers`() throws {
    var driver = try Driver()
    for sequence: UInt16 in [10, 12, 13, 15] {
      try driver.publication.receive(rtp: RTPPackets.bytes(sequence, source: 77), now: driver.now, to: &driver.out)
    }
    let bytes = try driver.tick().flatMap { Array($0.readableBytesView) }
    let expected: [UInt8] = [0x81, 205, 0, 3, 0, 0, 0, 1, 0, 0, 0, 77, 0, 11, 0, 4]
    #expect(bytes.indices.contains { bytes[$0...].starts(with: expected) })
  }

  @Test func `No more silence is made up than time allows`() throws {
    var driver = try Driver()
    // Each packet claims 5/6 of a second, and comes 20 ms behind the one before.
    for number: UInt16 in 0..<10 { try driver.audio(number, at: UInt32(number) * 40_000) }
    try driver.wait()
    #expect(driver.samples.count > 0 && driver.filled == 0)
    // A fifth each, for a second: half a second ahead at most.
    driver = try Driver()
    for number: UInt16 in 0..<50 { try driver.audio(number, at: UInt32(number) * 9600) }
    try driver.wait()
    #expect(driver.filled > 0 && driver.filled <= 75)
  }

  @Test func `A track goes on with its newest sender`() throws {
    var driver = try Driver()
    var taken: [Bool] = []
    for (sequence, source): (UInt16, UInt32) in [(1, 77), (1, 78), (2, 77), (2, 78)] {
      taken.append(try driver.takes(sequence, of: source))
    }
    #expect(taken == [true, true, false, true])
    // Neither a type that was not taken nor a packet that only pads is media.
    let others = [try driver.takes(3, of: 78, type: 97), try driver.takes(3, of: 78, [])]
    #expect(others == [false, false])
    let bytes = try driver.tick().flatMap { Array($0.readableBytesView) }
    func asks(_ source: UInt8) -> Bool {
      let request: [UInt8] = [0x81, 206, 0, 2, 0, 0, 0, 1, 0, 0, 0, source]
      return bytes.indices.contains { bytes[$0...].starts(with: request) }
    }
    #expect(asks(78) && !asks(77))
    // The earlier one says that it ends, then the newest.
    func bye(_ source: UInt8) -> ByteBuffer { ByteBuffer(bytes: [0x81, 203, 0, 1, 0, 0, 0, source]) }
    driver.publication.receive(rtcp: bye(77), now: driver.now, to: &driver.out)
    #expect(!driver.publication.hasEnded)
    driver.publication.receive(rtcp: bye(78), now: driver.now, to: &driver.out)
    #expect(driver.publication.hasEnded)
  }

  /// RFC 4588: the number of the packet that is repeated, then its payload.
  @Test func `A packet that comes again by a sender of its own fills the gap`() throws {
    let repairs =
      OfferTests.video.replacing("96 97 98", with: "96 97 98 99") + "a=rtpmap:99 rtx/90000\r\na=fmtp:99 apt=98\r\n"
    var driver = try Driver(video: repairs)
    for (sequence, timestamp, payload): (UInt16, UInt32, [UInt8]) in [
      (10, 0, Self.keyFrame), (12, 6000, [0x41, 0x9A, 3]), (13, 9000, [0x41, 0x9A, 3]),
    ] {
      let packet = RTPPackets.bytes(sequence, at: timestamp, source: 77, marker: true, payload)
      var out: [PublicationAction] = []
      try driver.publication.receive(rtp: packet, now: driver.now, to: &out)
      driver.out += out
    }
    func again(_ payload: [UInt8], padding: UInt8 = 0) throws -> Bool {
      let packet = RTPPackets.bytes(
        500, at: 3000, source: 78, type: 99, marker: true, padding: padding, payload)
      var out: [PublicationAction] = []
      let isMedia = try driver.publication.receive(rtp: packet, now: driver.now, to: &out)
      driver.out += out
      return isMedia
    }
    // Padding alone, one that came, half a number, the missing one, and the same again.
    var taken = [try again([], padding: 200), try again([0, 13, 0x41, 0x9A, 3]), try again([0])]
    taken += [try again([0, 11, 0x41, 0x9A, 3]), try again([0, 11, 0x41, 0x9A, 3])]
    #expect(taken == [false, false, false, true, false])
    for number in UInt16(0)..<3 { try driver.audio(number, at: UInt32(number) * 960) }
    try driver.wait()
    let videos = driver.out.count { if case .event(.sample(let sample)) = $0 { sample.track == .video } else { false } }
    #expect(videos == 4)
    #expect(!driver.out.contains { if case .lost = $0 { true } else { false } })
    // Its sender is none of media.
    let media = try driver.takes(14, of: 77, [0x41, 0x9A, 3])
    #expect(media)
  }

  @Test func `Senders beyond the limit are not kept`() throws {
    var driver = try Driver()
    for source in 100..<UInt32(100 + WebRTCLimits.sources) {
      try driver.publication.receive(rtp: RTPPackets.bytes(1, source: source), now: driver.now, to: &driver.out)
    }
    #expect(!driver.publication.takes(source: 7) && driver.publication.takes(source: 100))
  }
}
