import FMP4
import NIOCore
import Support
import Testing

@testable import Ingest

@Suite struct ClockFollowerTests {
  private static let hours = isLong ? 24 : 4

  /// A publisher whose clock is off, over a network that delays by 20 to 50 ms.
  @Test(arguments: [100, -100] as [Int64])
  func aClockThatIsOffIsFollowed(_ partsPerMillion: Int64) throws {
    typealias S = RTMPScript
    let start: MonotonicTime = 5_000_000_000
    let reading = ClockReading(wall: 1_795_245_850_000_000_000, monotonic: 0)
    var publication = FLVPublication(reading: reading)
    var out: [PublicationAction] = []
    let (frame, audio) = (ByteBuffer(bytes: S.avcFrame(key: true)), ByteBuffer(bytes: S.aacFrame))
    try publication.receiveVideo(ByteBuffer(bytes: S.avcHeader()), timestamp: 0, now: start, to: &out)
    try publication.receiveAudio(ByteBuffer(bytes: S.aacHeader()), timestamp: 0, now: start, to: &out)

    var noise: UInt64 = 1
    var anchor: WallClockAnchor?
    var moves = 0
    var timescales: [TrackID: UInt32] = [:]
    var reached: [TrackID: MediaTime] = [:]
    var (frames, audioSamples) = (Int64(0), Int64(0))
    var (worst, worstSkew) = (0.0, 0.0)
    var (minute, least) = (Int64(0), Double.infinity)
    while frames < Self.hours * 3600 * 2 {
      // Two frames a second, and all of the audio.
      let (videoTime, audioTime) = (frames * 500, audioSamples * 64 / 3)
      let isVideo = videoTime <= audioTime
      let media = isVideo ? videoTime : audioTime
      noise = noise &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      // Media time passes faster than real time where the clock is fast.
      let delay = 20_000_000 + Int64(noise >> 39) % 30_000_000
      let now = start + media * (1_000_000 - partsPerMillion) + delay
      if isVideo {
        frames += 1
        try publication.receiveVideo(frame, timestamp: UInt32(media), now: now, to: &out)
      } else {
        audioSamples += 1
        try publication.receiveAudio(audio, timestamp: UInt32(media), now: now, to: &out)
      }
      for case .event(let event) in out {
        switch event {
        case .clock(let next):
          moves += anchor == nil ? 0 : 1
          anchor = next
        case .tracks(let tracks): for track in tracks { timescales[track.id] = track.timescale }
        case .sample(let sample):
          reached[sample.track] = MediaTime(ticks: sample.decodeTime, timescale: timescales[sample.track] ?? 1)
        case .discontinuity, .end, .progress: break
        }
      }
      out.removeAll(keepingCapacity: true)
      guard let anchor else { continue }
      let late = Double(reading.wallTime(at: now) &- anchor.wallTime(at: MediaTime(milliseconds: media))) / 1e6
      least = min(least, late)
      if media / 60_000 != minute {
        worst = max(worst, abs(least))
        (minute, least) = (media / 60_000, .infinity)
        if let video = reached[.video], let audio = reached[.audio] {
          let apart = abs(video.seconds * 1000 - Double(videoTime)) + abs(audio.seconds * 1000 - Double(audioTime))
          worstSkew = max(worstSkew, apart - 500 - 64.0 / 3)
        }
      }
    }
    #expect(worst <= 100, "\(worst) ms after \(moves) moves")
    #expect(moves > 8 * Self.hours)
    #expect(worstSkew <= 20, "\(worstSkew) ms")
  }

  @Test func aGoodClockIsLeftAlone() {
    var follower = ClockFollower(delay: 20_000_000, now: 0)
    for second in 0..<86_400 as Range<Int64> {
      let jitter = second * 7919 % 35_000_000
      #expect(follower.saw(second * 1_000_000_000, now: .at(second * 1_000_000_000 + 20_000_000 + jitter)) == nil)
    }
  }

  @Test func aFullQueueIsNotTakenForADrift() {
    var follower = ClockFollower(delay: 0, now: 0)
    var told = MonotonicTime.zero
    // Ten minutes of three seconds' delay.
    for tick in 0..<6000 as Range<Int64> {
      told = follower.saw(tick * 100_000_000, now: .at(tick * 100_000_000 + 3_000_000_000)) ?? told
    }
    #expect(told <= .at(6 * ClockFollower.step))
  }

  @Test func whatWasSeenBeforeABreakIsForgotten() {
    var follower = ClockFollower(delay: 0, now: 0)
    for second in 0..<140 as Range<Int64> {
      if second == 119 { follower.forget() }
      #expect(follower.saw(second * 1_000_000_000, now: .at(second * 1_000_000_000 + 90_000_000)) == nil)
    }
  }

  /// An encoder with look-ahead: a second of media comes at once, and the rest as it is made.
  @Test func theTimesOfAFirstBurstAreToldAnewOnce() {
    var follower = ClockFollower(delay: 740_000_000, now: 740_000_000)
    var told: [MonotonicTime] = []
    for tick in 0..<300 as Range<Int64> {
      let delay = max(20_000_000, 740_000_000 - tick * 33_000_000) + tick * 7919 % 9_000_000
      if let new = follower.saw(tick * 33_000_000, now: .at(tick * 33_000_000 + delay)) { told.append(new) }
    }
    #expect(told.count == 1 && told.allSatisfy { (20_000_000..<30_000_000).contains($0) }, "\(told)")
  }

  @Test func aBurstThatLastsIsNotWaitedForLongerThanFourSeconds() {
    var follower = ClockFollower(delay: 5_000_000_000, now: 5_000_000_000)
    var told: [(at: Int64, delay: MonotonicTime)] = []
    // Twice as fast as real time.
    for tick in 0..<200 as Range<Int64> {
      let now = tick * 33_000_000
      if let new = follower.saw(tick * 66_000_000, now: .at(now + 5_000_000_000)) { told.append((now, new)) }
    }
    #expect(told.count == 1 && told.allSatisfy { $0.at <= 4_100_000_000 && $0.delay < 1_200_000_000 }, "\(told)")
  }

  @Test func aBeginningThatWasNotLateIsLeftAlone() {
    var follower = ClockFollower(delay: 15_500_000, now: 0)
    for tick in 0..<300 as Range<Int64> {
      #expect(
        follower.saw(tick * 33_000_000, now: .at(tick * 33_000_000 + 15_000_000 + tick * 7919 % 40_000_000)) == nil)
    }
  }

  /// What had gathered before the beginning comes a little faster than real time: in the end times of day are right.
  @Test(arguments: [105, 120, 200] as [Int64]) func aQueueThatDrainsSlowlyIsNoDelay(_ percent: Int64) {
    let (delay, queue) = (20_000_000 as Int64, 3_000_000_000 as Int64)
    var follower = ClockFollower(delay: .at(delay + queue), now: .at(delay + queue))
    for frame in 0..<9000 as Range<Int64> {
      let time = frame * 1000 / 30
      let inQueue = max(0, queue - time * 1_000_000 * (percent - 100) / percent)
      _ = follower.saw(time * 1_000_000, now: .at(time * 1_000_000 + delay + inQueue))
    }
    #expect(follower.told.nanoseconds - delay < 100_000_000)
  }
}
