import Base
import FMP4
import NIOCore
import Publishing
@testable import RTMP
import Support
import Testing

@Suite struct FollowedClockTests {
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
}
