import Base
import FMP4
import NIOCore
import Publishing
import Testing
@testable import WebRTC

/// A sender of sound and pictures, 25 a second, that pauses within its connection.
@Suite struct WebRTCPauseTests {
  private static let wall = WallTime(milliseconds: 1_000_000)

  private struct Driver {
    var publication: WebRTCPublication
    var out: [PublicationAction] = []
    /// Pictures and packets of sound that were sent, and their sequence numbers.
    var (pictures, sounds): (Int, Int) = (0, 0)
    private(set) var now = MonotonicTime.zero

    init() throws {
      let offer = try SessionOffer(OfferTests.offer(OfferTests.audio, OfferTests.video))
      publication = WebRTCPublication(
        try Negotiation(offer), reading: ClockReading(wall: WebRTCPauseTests.wall, monotonic: .zero), now: .zero)
    }

    /// Sends the media of a stretch of the sender's clock, in milliseconds, which comes `later` than that. `pace`: milliseconds of
    /// media that come in one.
    mutating func send(_ media: Range<Int64>, later: Int64 = 0, pace: Int64 = 1, keyFrame: (Int64) -> Bool) throws {
      for time in stride(from: media.lowerBound, to: media.upperBound, by: 20) {
        let at = media.lowerBound + later + (time - media.lowerBound) / pace
        now = MonotonicTime(nanoseconds: at * 1_000_000)
        if time % 40 == 0 {
          let payload: [UInt8] = keyFrame(time) ? WebRTCPublicationTests.keyFrame : [0x41, 0x9A, 3]
          let packet = RTPPackets.bytes(
            UInt16(pictures), at: UInt32(time * 90), source: 77, marker: true, payload)
          pictures += 1
          try publication.receive(rtp: packet, now: now, to: &out)
        }
        let packet = RTPPackets.bytes(UInt16(sounds), at: UInt32(time * 48), source: 5, type: 111, [0xFC, 1, 2])
        sounds += 1
        try publication.receive(rtp: packet, now: now, to: &out)
        _ = try publication.tick(now: now, to: &out)
      }
    }

    mutating func finish() { publication.finish(to: &out) }

    func lost(_ kind: MediaKind) -> Int {
      out.count { if case .lost(let lost) = $0 { lost == kind } else { false } }
    }

    /// How far each picture is dated from when it came, in milliseconds, before and behind each discontinuity.
    func dates(_ arrivals: [Int64]) -> [[Int64]] {
      var (dates, anchor, arrivals): ([[Int64]], WallClockAnchor?, ArraySlice) = ([[]], nil, arrivals[...])
      for action in out {
        switch action {
        case .event(.clock(let told)): anchor = told
        case .event(.discontinuity): dates.append([])
        case .event(.sample(let sample)) where sample.track == .video:
          guard let came = arrivals.popFirst(), let anchor else { continue }
          let date = anchor.wallTime(at: MediaTime(ticks: sample.decodeTime, timescale: 90_000))
          dates[dates.count - 1].append((date &- WebRTCPauseTests.wall) / 1_000_000 - came)
        default: break
        }
      }
      return dates
    }
  }

  /// Behind the pause five pictures come before the key frame that was asked for. Its clock has gone on, or stood.
  @Test(arguments: [true, false], [12_000, 19_000] as [Int64])
  func `A pause of more than ten seconds is a discontinuity, and what is behind it is dated as it came`(
    clockGoesOn: Bool, pause: Int64
  ) throws {
    var driver = try Driver()
    try driver.send(0..<4000) { $0 == 0 }
    let start = clockGoesOn ? 4000 + pause : 4000
    try driver.send(start..<(start + 3000), later: clockGoesOn ? 0 : pause) { $0 == start + 200 }
    driver.finish()
    #expect(driver.lost(.video) == 5 && driver.lost(.audio) == 10, "up to the key frame")
    let before = Array(stride(from: Int64(0), to: 4000, by: 40))
    let dates = driver.dates(before + Array(stride(from: 4200 + pause, to: 7000 + pause, by: 40)))
    #expect(dates.map(\.count) == [100, 70])
    #expect(dates.joined().allSatisfy { $0.magnitude <= 50 }, "\(dates)")
  }

  @Test func `A pause of less than ten seconds is a gap of the timeline`() throws {
    var driver = try Driver()
    try driver.send(0..<4000) { $0 == 0 }
    try driver.send(13_000..<16_000) { $0 == 13_000 }
    driver.finish()
    #expect(driver.lost(.video) == 0 && driver.lost(.audio) == 0)
    #expect(driver.dates(Array(stride(from: Int64(0), to: 4000, by: 40))).map(\.count) == [100])
  }

  /// It sends the media of the pause at once, five times as fast as they play.
  @Test func `A sender that was suspended and catches up loses nothing`() throws {
    var driver = try Driver()
    try driver.send(0..<4000) { $0 % 2000 == 0 }
    try driver.send(4000..<19_000, later: 12_000, pace: 5) { $0 % 2000 == 0 }
    try driver.send(19_000..<22_000) { $0 % 2000 == 0 }
    driver.finish()
    #expect(driver.lost(.video) == 0 && driver.lost(.audio) == 0)
    let samples = driver.out.compactMap { action -> Sample? in
      if case .event(.sample(let sample)) = action, sample.track == .video { sample } else { nil }
    }
    #expect(samples.count == driver.pictures)
    #expect(zip(samples, samples.dropFirst()).allSatisfy { $1.decodeTime - $0.decodeTime == 3600 })
    #expect(!driver.out.contains { if case .event(.discontinuity) = $0 { true } else { false } })
  }

  /// The publisher ends while that is judged.
  @Test func `What waits behind a pause counts at the end`() throws {
    var driver = try Driver()
    try driver.send(0..<4000) { $0 == 0 }
    try driver.send(4000..<4400, later: 15_000) { $0 == 4000 }
    let before = driver.out.count { if case .event(.sample) = $0 { true } else { false } }
    driver.finish()
    let after = driver.out.count { if case .event(.sample) = $0 { true } else { false } }
    #expect(before == 300 && after - before == 30)
  }

  /// Three encodings and their sound, whose clocks stood. A frame comes first, of an encoding that is on the clock of the picture or
  /// not yet.
  @Test(arguments: [false, true]) func `The pause of a simulcast is judged`(isUnknown: Bool) throws {
    var sender = try SimulcastTests.Sender()
    if isUnknown { sender.sends[0] = false }
    try sender.run(150)
    sender.sends[0] = true
    let end = sender.out.count
    let pause: Int64 = 12_000
    sender.pause(milliseconds: pause)
    sender.wantsKey = true
    try sender.run(50)
    sender.publication.finish(to: &sender.out)
    let anchors = sender.out[end...].compactMap { action -> WallClockAnchor? in
      if case .event(.clock(let told)) = action { told } else { nil }
    }
    let pictures = sender.out[end...].compactMap { action -> Sample? in
      if case .event(.sample(let sample)) = action, sample.track == .video { sample } else { nil }
    }
    #expect(sender.out[end...].count { if case .event(.discontinuity) = $0 { true } else { false } } == 1)
    let (first, anchor) = (try #require(pictures.first), try #require(anchors.last))
    #expect(first.isSync)
    let date = anchor.wallTime(at: MediaTime(ticks: first.decodeTime, timescale: 90_000))
    let late = (date &- Self.wall) / 1_000_000 - 5000 - pause
    #expect(late.magnitude <= 50, "\(late)")
  }
}
