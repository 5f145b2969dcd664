import Base
import FMP4
import NIOCore
@testable import Publishing
import Support
import Testing

/// A protocol that is none of weir's: packets with a track's number, a clock of 90 kHz in 33 bits, and the codec's own bytes.
private struct PacketProtocol {
  static let range: UInt64 = 1 << 33

  var publication = Publication(reading: ClockReading(wall: 0, monotonic: 0))
  var clock = WireClock(hertz: 90_000, bits: 33)
  var now: MonotonicTime = 0
  var events: [MediaEvent] = []
  var warnings: [PublicationWarning] = []
  var lost = 0
  var early: [MediaKind] = []

  mutating func configure(_ track: UInt32, _ coding: CodecID, _ record: [UInt8]) throws {
    var out: [PublicationAction] = []
    _ = try publication.configure(TrackID(track), coding, record: ByteBuffer(bytes: record), now: now, to: &out)
    keep(out)
  }

  /// `time` in ticks of 90 kHz.
  mutating func frame(_ track: UInt32 = 1, at time: UInt64, isKey: Bool) {
    let slice: [UInt8] = [isKey ? 0x65 : 0x41] + [UInt8](repeating: 0x88, count: 20)
    send(track, .h264, BoxBytes.u32(UInt32(slice.count)) + slice, at: time)
  }

  mutating func audio(_ track: UInt32, at time: UInt64) {
    send(track, .aac, [0x21, 0x10, 0x04, 0x60, 0x8C, 0x1C], at: time)
  }

  private mutating func send(_ track: UInt32, _ coding: CodecID, _ bytes: [UInt8], at time: UInt64) {
    var out: [PublicationAction] = []
    publication.receive(
      WireUnit(
        track: TrackID(track), coding: coding, time: clock.nanoseconds(time % Self.range),
        payload: ByteBuffer(bytes: bytes)), now: now, to: &out)
    keep(out)
  }

  mutating func tick() throws {
    var out: [PublicationAction] = []
    try publication.tick(now: now, to: &out)
    keep(out)
  }

  mutating func finish() {
    var out: [PublicationAction] = []
    publication.finish(to: &out)
    keep(out)
  }

  private mutating func keep(_ actions: [PublicationAction]) {
    for action in actions {
      switch action {
      case .event(let event): events.append(event)
      case .lost: lost += 1
      case .warn(let warning): warnings.append(warning)
      case .inBand(.early(let kind)): early.append(kind)
      case .withdraw, .inBand, .log: break
      }
    }
  }

  func times(_ track: UInt32) -> [Int64] {
    events.compactMap { event in
      if case .sample(let sample) = event, sample.track == TrackID(track) { sample.decodeTime } else { nil }
    }
  }

  var tracks: [[TrackDescription]] {
    events.compactMap { if case .tracks(let tracks) = $0 { tracks } else { nil } }
  }
}

@Suite("A publication of any protocol")
struct PublicationTests {
  /// 25 frames a second and three tracks of audio, from half a second before the clock wraps on.
  @Test func threeTracksOfAudioAndAClockThatWrapsBecomeOneTimeline() throws {
    var wire = PacketProtocol()
    let start = PacketProtocol.range - 45_000
    try wire.configure(1, .h264, PublishedRecord.avc25)
    for track in UInt32(2)...4 { try wire.configure(track, .aac, PublishedRecord.aac48) }
    var audioSamples: UInt64 = 0
    for frame in UInt64(0)..<50 {
      wire.now = .at(Int64(frame) * 40_000_000)
      wire.frame(at: start + frame * 3600, isKey: frame % 25 == 0)
      while audioSamples * 1920 < (frame + 1) * 3600 {
        for track in UInt32(2)...4 { wire.audio(track, at: start + audioSamples * 1920) }
        audioSamples += 1
      }
    }
    #expect(wire.tracks.map { $0.map(\.id.rawValue) } == [[1, 2, 3, 4]])
    #expect(wire.times(1) == (0..<50).map { $0 * 1000 })
    for track in UInt32(2)...4 { #expect(wire.times(track) == (0..<Int64(audioSamples)).map { $0 * 1024 }) }
    #expect(wire.warnings.isEmpty && wire.lost == 0)
  }

  @Test func aTrackThatHasBegunIsWaitedForAndAnnouncedWhenItComesLater() throws {
    var wire = PacketProtocol()
    try wire.configure(1, .h264, PublishedRecord.avc25)
    try wire.configure(2, .aac, PublishedRecord.aac48)
    try wire.configure(5, .aac, PublishedRecord.aac44)
    for frame in UInt64(0)..<50 {
      wire.now = .at(Int64(frame) * 40_000_000)
      wire.frame(at: frame * 3600, isKey: frame == 0)
      wire.audio(2, at: frame * 3600)
      try wire.tick()
      #expect(wire.events.isEmpty, "\(frame)")
    }
    wire.now = 2_000_000_000
    try wire.tick()
    #expect(wire.tracks.map { $0.map(\.id.rawValue) } == [[1, 2]])
    wire.audio(5, at: 180_000)
    #expect(wire.tracks.map { $0.map(\.id.rawValue) } == [[1, 2], [1, 2, 5]])
    #expect(wire.times(5) == [88_200])
  }

  /// A relay switches its source.
  @Test(arguments: [false, true])
  func whereVideoAndAudioChangeNoListLacksOneOfThem(audioComesFirst: Bool) throws {
    var wire = try begun()
    try wire.configure(1, .h264, PublishedRecord.avc2997)
    try wire.configure(2, .aac, Self.mono)
    if audioComesFirst { wire.audio(2, at: 90_000) }
    wire.frame(at: 90_000, isKey: false)
    wire.frame(at: 93_600, isKey: true)
    wire.audio(2, at: 93_600)
    #expect(wire.tracks.allSatisfy { $0.map(\.id.rawValue) == [1, 2] })
    // The video stays what it was up to its key frame.
    let timescales: [UInt32] = audioComesFirst ? [25_000, 25_000, 30_000] : [25_000, 30_000]
    let channels: [Int?] = audioComesFirst ? [2, 1, 1] : [2, 1]
    #expect(wire.tracks.map { $0[0].timescale } == timescales)
    #expect(wire.tracks.map { $0[1].codec.audio?.channels } == channels)
  }

  /// There it can begin at once, whatever comes first.
  @Test func changedAudioIsAnnouncedWithTheKeyFrameBeforeIt() throws {
    var wire = try begun()
    try wire.configure(2, .aac, Self.mono)
    wire.frame(at: 90_000, isKey: false)
    #expect(wire.tracks.count == 1)
    wire.frame(at: 93_600, isKey: true)
    wire.audio(2, at: 93_600)
    #expect(wire.tracks.map { $0[1].codec.audio?.channels } == [2, 1])
    let change = try #require(wire.events.lastIndex { if case .tracks = $0 { true } else { false } })
    guard case .sample(let sample) = wire.events[change + 1] else {
      Issue.record("\(wire.events[change + 1])")
      return
    }
    #expect(sample.track == .video && sample.isSync)
  }

  private static let mono: [UInt8] = [0x11, 0x88]

  /// A second of video and stereo.
  private func begun() throws -> PacketProtocol {
    var wire = PacketProtocol()
    try wire.configure(1, .h264, PublishedRecord.avc25)
    try wire.configure(2, .aac, PublishedRecord.aac48)
    for frame in UInt64(0)..<25 {
      wire.now = .at(Int64(frame) * 40_000_000)
      wire.frame(at: frame * 3600, isKey: frame == 0)
      wire.audio(2, at: frame * 3600)
    }
    return wire
  }

  @Test func aClockThatIsOffIsToldWithItsFigureAndDatesBeginATimeline() throws {
    var wire = PacketProtocol()
    try wire.configure(1, .h264, PublishedRecord.avc25)
    // Two percent fast.
    for frame in UInt64(0)..<1500 {
      wire.now = .at(Int64(frame) * 40_000_000 * 100 / 102)
      wire.frame(at: frame * 3600, isKey: frame % 25 == 0)
      if frame == 25 { try wire.tick() }
    }
    #expect(wire.warnings == [.clockIsOff(thousandths: 20)])
    #expect(wire.warnings.first?.description.contains("2.0 % faster") == true)
    let anchors = wire.events.compactMap { if case .clock(let anchor) = $0 { anchor.beginsTimeline } else { nil } }
    #expect(anchors.first == false && (1...3).contains(anchors.count(where: \.self)), "\(anchors)")
    #expect(!wire.events.contains { if case .discontinuity = $0 { true } else { false } }, "the media goes on")
  }

  /// Joined in the middle of a group. Each key frame after the first one of a configuration is a beginning no longer.
  @Test func whatComesBeforeTheFirstKeyFrameIsEarlyAndLaterLost() throws {
    var wire = PacketProtocol()
    try wire.configure(1, .h264, PublishedRecord.avc25)
    try wire.configure(2, .aac, PublishedRecord.aac48)
    for frame in UInt64(0)..<75 {
      wire.now = .at(Int64(frame) * 40_000_000)
      if frame == 50 { try wire.configure(1, .h264, PublishedRecord.avc2997) }
      wire.audio(2, at: frame * 3600)
      wire.frame(at: frame * 3600, isKey: frame == 10 || frame == 60)
    }
    // The audio frame next to the key frame is taken.
    #expect(wire.early.count { $0 == .video } == 10 && wire.early.count { $0 == .audio } == 9, "\(wire.early)")
    #expect(wire.lost == 10 && wire.times(1).count == 55 && wire.times(2).count == 66)
  }

  /// Video whose first key frame comes when the audio has begun alone.
  @Test func whatComesBeforeALateFirstKeyFrameIsEarly() throws {
    var wire = PacketProtocol()
    try wire.configure(1, .h264, PublishedRecord.avc25)
    try wire.configure(2, .aac, PublishedRecord.aac48)
    for frame in UInt64(0)..<100 {
      wire.now = .at(Int64(frame) * 40_000_000)
      wire.audio(2, at: frame * 3600)
      wire.frame(at: frame * 3600, isKey: frame == 80)
      try wire.tick()
    }
    #expect(wire.early == [MediaKind](repeating: .video, count: 80) && wire.lost == 0)
    #expect(wire.times(1).count == 20 && wire.times(2).count == 100)
  }

  /// The first video ends, and then the clock jumps. Segments go on with the second one, or with the audio.
  @Test(arguments: [false, true]) func aBreakIsToldWithTheTrackThatSegmentsBeginWith(hasSecondVideo: Bool) throws {
    var wire = PacketProtocol()
    try wire.configure(1, .h264, PublishedRecord.avc25)
    try wire.configure(2, .aac, PublishedRecord.aac48)
    if hasSecondVideo { try wire.configure(3, .h264, PublishedRecord.avc25) }
    var sounds: UInt64 = 0
    for frame in UInt64(0)..<150 {
      wire.now = .at(Int64(frame) * 40_000_000)
      let jump: UInt64 = frame < 40 ? 0 : 9_000_000
      if frame < 25 { wire.frame(at: frame * 3600, isKey: frame == 0) }
      if hasSecondVideo { wire.frame(3, at: frame * 3600 + jump, isKey: frame % 25 == 0) }
      while sounds * 1920 < (frame + 1) * 3600 {
        wire.audio(2, at: sounds * 1920 + jump)
        sounds += 1
      }
      try wire.tick()
    }
    let breaks = wire.events.indices.filter { if case .discontinuity = wire.events[$0] { true } else { false } }
    try #require(breaks.count == 1)
    let after = wire.events[breaks[0]...].compactMap { if case .sample(let sample) = $0 { sample } else { nil } }
    let sample = try #require(after.first)
    #expect(sample.track == TrackID(hasSecondVideo ? 3 : 2) && sample.isSync)
    // The last frame of the first video is at 0.96 s.
    let seconds = Double(sample.decodeTime) / (hasSecondVideo ? 25_000 : 48_000)
    #expect((3.9...4.1).contains(seconds), "\(seconds)")
  }

  /// An encoder with one key frame, whose clock jumps by 100 s. Dates follow after half a minute, and no picture is lost.
  @Test func withoutAKeyFrameTheTimeOfDayBehindABreakIsTold() throws {
    var wire = PacketProtocol()
    try wire.configure(1, .h264, PublishedRecord.avc25)
    for frame in UInt64(0)..<1000 {
      wire.now = .at(Int64(frame) * 40_000_000 + (frame < 100 ? 0 : 12_000_000_000))
      wire.frame(at: frame * 3600 + (frame < 100 ? 0 : 9_000_000), isKey: frame == 0)
      try wire.tick()
    }
    let breaks = wire.events.count { if case .discontinuity = $0 { true } else { false } }
    let clocks = wire.events.compactMap { if case .clock(let clock) = $0 { clock } else { nil } }
    #expect(breaks == 0 && clocks.count == 2 && wire.times(1).count == 1000)
    let moved = try #require(clocks.last).wallTime(at: .zero) &- (try #require(clocks.first)).wallTime(at: .zero)
    // The timeline goes on without the jump of the clock, and media came 12 s later.
    #expect((11_900_000_000...12_100_000_000).contains(moved), "\(moved)")
  }

  /// What a publisher sends is taken, early or lost, whatever it sends.
  @Test(arguments: 0..<8) func whatIsSentIsTakenEarlyOrLost(seed: UInt64) throws {
    var random = seed &* 2_654_435_761 &+ 7
    func next(_ count: UInt64) -> UInt64 {
      random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return (random >> 33) % count
    }
    var wire = PacketProtocol()
    try wire.configure(1, .h264, PublishedRecord.avc25)
    if seed % 2 == 0 { try wire.configure(2, .aac, PublishedRecord.aac48) }
    var sent = 0
    for frame in UInt64(0)..<400 {
      wire.now = .at(Int64(frame) * 40_000_000)
      // Late configurations and changes, wrong times, jumps, and beginnings between key frames.
      if frame == 3 + seed { try wire.configure(2, .aac, PublishedRecord.aac48) }
      if frame == 200, seed > 3 { try wire.configure(1, .h264, PublishedRecord.avc2997) }
      let shift: UInt64 = frame >= 300 ? 1_800_000 : 0
      let video = next(40) == 0 ? next(2_000_000) : 90_000 + frame * 3600 + shift
      wire.frame(at: video, isKey: frame % 25 == seed)
      for part in 0..<2 as Range<UInt64> {
        let audio = next(60) == 0 ? next(2_000_000) : 90_000 + frame * 3600 + part * 1800 + shift
        wire.audio(2, at: audio)
      }
      sent += 3
      try wire.tick()
    }
    wire.finish()
    let taken = wire.events.count { if case .sample = $0 { true } else { false } }
    #expect(taken + wire.early.count + wire.lost == sent, "\(taken) taken, \(wire.early) early, \(wire.lost) lost")
    #expect(taken > 300)
  }

  @Test func aPublicationThatEndsWhileItWaitsForATrackIsTakenAllTheSame() throws {
    var wire = PacketProtocol()
    try wire.configure(1, .h264, PublishedRecord.avc25)
    try wire.configure(2, .aac, PublishedRecord.aac48)
    for frame in UInt64(0)..<20 {
      wire.now = .at(Int64(frame) * 40_000_000)
      wire.frame(at: frame * 3600, isKey: frame == 0)
    }
    #expect(wire.events.isEmpty)
    wire.finish()
    #expect(wire.times(1).count == 20 && wire.lost == 0)
  }

  @Test func noMoreTracksAreTakenThanMayBe() throws {
    var wire = PacketProtocol()
    for track in 1...UInt32(PublicationLimits.tracks) { try wire.configure(track, .aac, PublishedRecord.aac48) }
    #expect(wire.warnings.isEmpty)
    try wire.configure(UInt32(PublicationLimits.tracks) + 1, .aac, PublishedRecord.aac48)
    #expect(wire.warnings == [.leftOutTrack(.audio)])
    wire.audio(UInt32(PublicationLimits.tracks) + 1, at: 0)
    #expect(wire.lost == 1)
  }
}
