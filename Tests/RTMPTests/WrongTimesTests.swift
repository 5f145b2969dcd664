import FMP4
import NIOCore
@testable import RTMP
import Testing

/// A wrong timestamp costs no frame, and a jump of the clock none but for what it overlaps.
@Suite("RTMP sessions: wrong timestamps")
struct WrongTimesTests {
  typealias S = RTMPScript

  /// Eight seconds of video and audio from ten seconds on, in pieces of seven bytes.
  private func published(keyEvery: UInt32 = 50, _ stamp: (MediaKind, UInt32) -> UInt32) -> SessionDriver {
    var bytes = S.metadata() + S.headers
    var audio: UInt32 = 0
    for frame in 0..<200 as Range<UInt32> {
      bytes += S.video(S.avcFrame(key: frame % keyEvery == 0), stamp(.video, 10_000 + frame * 40))
      while (audio * 64 + 1) / 3 < (frame + 1) * 40 {
        bytes += S.audio(S.aacFrame, stamp(.audio, 10_000 + (audio * 64 + 1) / 3))
        audio += 1
      }
    }
    var driver = SessionDriver()
    driver.feed(S.opening())
    driver.feed(bytes + S.command([.string("deleteStream"), .number(7), .null, .number(1)], stream: 1), piece: 7)
    return driver
  }

  private func judge(_ driver: SessionDriver, discontinuities: Int = 0) {
    #expect(driver.times(.video) == (0..<200).map { $0 * 1000 })
    #expect(driver.times(.audio) == (0..<375).map { $0 * 1024 })
    #expect(driver.discontinuities == discontinuities && driver.lost == 0 && driver.tracks.count == 1)
    #expect(driver.ending == .finished)
  }

  /// ffmpeg's times begin again at 2³¹ ms, here with a picture of the middle of a group, and audio behind it that lags.
  @Test(arguments: [14_000, 14_011, 14_080] as [UInt32])
  func timesThatLackTheirHighestBitWrapWithoutALoss(at wrap: UInt32) {
    judge(published(keyEvery: 200) { ($1 &- wrap) & 0x7FFF_FFFF })
  }

  @Test(arguments: [36_014_000, 19_000, 0] as [UInt32], [UInt32(50), 200])
  func aFrameOfVideoWithAWrongTimeIsTakenLikeAnyOther(_ time: UInt32, _ keyEvery: UInt32) {
    let driver = published(keyEvery: keyEvery) { $0 == .video && $1 == 14_000 ? time : $1 }
    judge(driver)
    #expect(driver.logs.count { $0.contains("timestamp of a frame of video was wrong") } == 1)
  }

  @Test(arguments: [36_014_000, 19_000, 0] as [UInt32])
  func aFrameOfAudioWithAWrongTimeIsTakenLikeAnyOther(_ time: UInt32) {
    judge(published { $0 == .audio && $1 == 14_011 ? time : $1 })
  }

  @Test func oneFrameInSixtyIsTakenEachTime() {
    judge(published { $0 == .video && $1 % 2400 == 400 && $1 > 10_400 ? $1 + 7_200_000 : $1 })
  }

  @Test func theLastFrameIsTakenToo() {
    judge(published { $0 == .video && $1 == 17_960 ? 0 : $1 })
  }

  /// The clock jumps within a group of pictures. Its other pictures are decoded as before.
  @Test(arguments: [36_000_000, UInt32.max - 8_999] as [UInt32])
  func afterAJumpThePicturesBeforeTheNextKeyFrameStay(_ jump: UInt32) throws {
    let driver = published { $1 >= 13_000 ? $1 &+ jump : $1 }
    #expect(driver.times(.video) == (0..<200).map { $0 * 1000 })
    #expect(driver.discontinuities == 1 && driver.tracks.count == 1)
    let place = try #require(
      driver.events.firstIndex { if case .discontinuity = $0 { true } else { false } })
    let next = driver.events[place...].compactMap { event -> Sample? in
      if case .sample(let sample) = event, sample.track == .video { sample } else { nil }
    }
    #expect(next.first?.isSync == true && next.first?.decodeTime == 100_000)
  }
}
