@testable import Base
import FMP4
import NIOCore
import Publishing
import Support
import Testing
@testable import WebRTC

/// Senders whose audio has a clock of its own, which is off by parts in a million. Reports tell it, each with the jitter of
/// a thread. Times are true ones, in nanoseconds since the first frame of video, unless a name says otherwise.
@Suite struct SenderDriftTests {
  /// When a packet of 20 ms was captured.
  private static func captured(_ packet: Int64, _ partsPerMillion: Int64) -> Int64 {
    packet * 20_000_000 * 1_000_000 / (1_000_000 + partsPerMillion)
  }

  /// What the clock of the audio shows, in ticks of 48 kHz.
  private static func ticks(_ time: Int64, _ partsPerMillion: Int64) -> UInt32 {
    UInt32(time * (1_000_000 + partsPerMillion) / 1_000_000 * 48 / 1_000_000)
  }

  @Test(arguments: [100, -100, 0] as [Int64])
  func `Audio stays within 20 ms of the video for an hour`(_ partsPerMillion: Int64) {
    var (clocks, grid, random) = (SenderClocks(), AudioGrid(timescale: 48_000), SplitMix(state: 7))
    func jitter() -> Int64 { Int64(random.next() % 10_000_001) - 5_000_000 }
    _ = clocks.time(.video, .video, 0, hertz: 90_000, now: .zero)
    clocks.isRunning = true
    var (worst, corrections, dropped) = (Int64(0), 0, 0)
    for packet in Int64(0)..<(3600 * 50) {
      let captured = Self.captured(packet, partsPerMillion)
      // It is 6 ms on its way, and that long off its place until reports are sure.
      let now = captured + 6_000_000
      if packet > 0, packet % 50 == 0 {
        clocks.receive(.video, wall: now + jitter(), timestamp: UInt32(now * 9 / 100_000))
      }
      if packet > 0, packet % 250 == 0 {
        clocks.receive(.audio, wall: now + jitter(), timestamp: Self.ticks(now, partsPerMillion))
      }
      let time = clocks.time(
        .audio, .audio, UInt32(packet * 960), hertz: 48_000, now: MonotonicTime(nanoseconds: now))
      switch grid.place(time, duration: 960) {
      case .at(let place): worst = max(worst, abs(place * 1_000_000 / 48 - captured))
      case .drop: dropped += 1
      }
      if grid.correction != nil { corrections += 1 }
    }
    #expect(worst <= 20_000_000, "\(worst) ns")
    // 360 ms by 20 ms at a time, less what may be off at either end.
    #expect(partsPerMillion == 0 ? corrections == 0 : (16...19).contains(corrections), "\(corrections)")
    #expect(dropped == (partsPerMillion > 0 ? corrections : 0))
  }

  /// aiortc on a busy machine dates its reports when it sends, and sends late: by up to 160 ms, now the audio, now the video.
  @Test(arguments: [200, -200, 0] as [Int64])
  func `Reports of a sender under load move audio once in 30 s at most`(_ partsPerMillion: Int64) {
    var (clocks, grid, random) = (SenderClocks(), AudioGrid(timescale: 48_000), SplitMix(state: 11))
    func late(_ most: UInt64) -> Int64 { Int64(random.next() % (most + 1)) * 1_000_000 }
    _ = clocks.time(.video, .video, 0, hertz: 90_000, now: .zero)
    clocks.isRunning = true
    var corrections: [Int64] = []
    for packet in Int64(0)..<(600 * 50) {
      let now = Self.captured(packet, partsPerMillion) + 6_000_000
      if packet > 0, packet % 50 == 0 {
        let isVideoLate = packet / 500 % 2 == 0
        clocks.receive(.video, wall: now + late(isVideoLate ? 160 : 20), timestamp: UInt32(now * 9 / 100_000))
        clocks.receive(
          .audio, wall: now + late(isVideoLate ? 20 : 160), timestamp: Self.ticks(now, partsPerMillion))
      }
      let time = clocks.time(
        .audio, .audio, UInt32(packet * 960), hertz: 48_000, now: MonotonicTime(nanoseconds: now))
      _ = grid.place(time, duration: 960)
      if grid.correction != nil { corrections.append(now) }
    }
    // The first half minute is the way to its place.
    let later = corrections.filter { $0 > 30_000_000_000 }
    #expect(zip(later, later.dropFirst()).allSatisfy { $1 - $0 >= 29_900_000_000 }, "\(corrections)")
    #expect(corrections.count <= 32, "\(corrections)")
  }

  @Test(arguments: [200, -200] as [Int64])
  func `Audio whose clock is off by 200 ppm is moved once in 100 s`(_ partsPerMillion: Int64) {
    var (clocks, grid) = (SenderClocks(), AudioGrid(timescale: 48_000))
    _ = clocks.time(.video, .video, 0, hertz: 90_000, now: .zero)
    clocks.isRunning = true
    var (worst, corrections) = (Int64(0), 0)
    for packet in Int64(0)..<(1000 * 50) {
      let captured = Self.captured(packet, partsPerMillion)
      if packet > 0, packet % 50 == 0 {
        clocks.receive(.video, wall: captured, timestamp: UInt32(captured * 9 / 100_000))
        clocks.receive(.audio, wall: captured, timestamp: Self.ticks(captured, partsPerMillion))
      }
      let time = clocks.time(
        .audio, .audio, UInt32(packet * 960), hertz: 48_000, now: MonotonicTime(nanoseconds: captured))
      if case .at(let place) = grid.place(time, duration: 960) {
        worst = max(worst, abs(place * 1_000_000 / 48 - captured))
      }
      if grid.correction != nil { corrections += 1 }
    }
    #expect(worst <= 20_000_000 && (8...11).contains(corrections), "\(worst) ns, \(corrections)")
  }

  @Test(arguments: [100, -100] as [Int64])
  func `A publication keeps audio beside its video while their clocks drift apart`(_ partsPerMillion: Int64) throws {
    let offer = try SessionOffer(OfferTests.offer(OfferTests.audio, OfferTests.video))
    let clock = ClockReading(wall: WallTime(milliseconds: 1_000_000), monotonic: .zero)
    var publication = WebRTCPublication(try Negotiation(offer), reading: clock, now: .zero)
    var (out, hertz) = ([PublicationAction](), [TrackID: Int64]())
    /// Media time minus true time of the first frame of video.
    var origin: Int64?
    var (worst, heard, seen) = (Int64(0), 0, 0)
    // 8 minutes: twice a packet's length at 100 ppm.
    for packet in Int64(0)..<(480 * 50) {
      let captured = Self.captured(packet, partsPerMillion)
      let now = MonotonicTime(nanoseconds: captured + 10_000_000)
      if packet % 10 == 0 {
        let payload: [UInt8] = packet == 0 ? WebRTCPublicationTests.keyFrame : [0x41, 0x9A, 3]
        let frame = RTPPackets.bytes(
          UInt16(packet / 10), at: UInt32(packet * 1800), source: 77, marker: true, payload)
        try publication.receive(rtp: frame, now: MonotonicTime(nanoseconds: packet * 20_000_000), to: &out)
      }
      if packet % 50 == 25 {
        publication.receive(
          rtcp: RTPPackets.report(77, now.nanoseconds, UInt32(now.nanoseconds * 9 / 100_000)), now: now, to: &out)
        publication.receive(
          rtcp: RTPPackets.report(5, now.nanoseconds, Self.ticks(now.nanoseconds, partsPerMillion)), now: now, to: &out)
      }
      // Its number is in it.
      let bytes: [UInt8] = [0xFC, UInt8(packet >> 8), UInt8(packet & 0xFF)]
      let audio = RTPPackets.bytes(UInt16(packet), at: UInt32(packet * 960), source: 5, type: 111, bytes)
      try publication.receive(rtp: audio, now: now, to: &out)
      if packet % 5 == 0 { _ = try publication.tick(now: now, to: &out) }
      for action in out {
        switch action {
        case .event(.tracks(let tracks)): for track in tracks { hertz[track.id] = Int64(track.timescale) }
        case .event(.sample(let sample)):
          let time = sample.decodeTime * 1_000_000 / ((hertz[sample.track] ?? 1000) / 1000)
          if sample.track == .video {
            seen += 1
            if let origin { #expect(abs(time - origin - Int64(seen - 1) * 200_000_000) <= 1_000_000) }
            origin = origin ?? time
          } else if let origin {
            let number = Int64(sample.payload.getInteger(at: sample.payload.readerIndex + 1, as: UInt16.self) ?? 0)
            worst = max(worst, abs(time - origin - Self.captured(number, partsPerMillion)))
            heard += 1
          }
        default: break
        }
      }
      out.removeAll(keepingCapacity: true)
    }
    #expect(worst <= 20_000_000, "\(worst) ns")
    #expect(heard > 23_900 && seen > 2395, "\(heard) \(seen)")
  }
}
