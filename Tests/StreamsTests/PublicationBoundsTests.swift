import Base
import FMP4
import NIOCore
@testable import Streams
import Support
import Testing

@Suite struct PublicationBoundsTests {
  private static let second: Int64 = 1_000_000_000

  private static func begins(_ bounds: inout PublicationBounds, at seconds: Int64) -> Bool {
    bounds.begin(now: .at(seconds * second))
  }

  private static func violation(
    _ bounds: inout PublicationBounds, _ event: MediaEvent, _ end: MediaTime?, _ now: MonotonicTime
  ) -> String? {
    bounds.violation(about: event, end: end, now: now)
  }

  private static func sample(_ bytes: Int = 100) -> MediaEvent {
    .sample(
      Sample(
        track: .video, decodeTime: 0, compositionOffset: 0, duration: nil, isSync: true, isDisposable: false,
        payload: ByteBuffer(repeating: 0, count: bytes)))
  }

  @Test func aPublicationThatJumpsTooOftenIsEnded() {
    var bounds = PublicationBounds(PublicationBounds.Limits(jumpsPerMinute: 10, changesPerMinute: 3))
    #expect(Self.begins(&bounds, at: 0))
    for _ in 0..<9 { #expect(Self.violation(&bounds, .discontinuity, nil, 0) == nil) }
    #expect(Self.violation(&bounds, .discontinuity, nil, 0)?.contains("--max-jumps") == true)
    // A minute brings as many again; each beginning is a break, too.
    #expect(!Self.begins(&bounds, at: 0))
    #expect(bounds.secondsUntilBreak == 6)
    #expect(Self.begins(&bounds, at: 60))
    for _ in 0..<9 { #expect(Self.violation(&bounds, .discontinuity, nil, .at(60 * Self.second)) == nil) }
    #expect(Self.violation(&bounds, .discontinuity, nil, .at(60 * Self.second)) != nil)
  }

  @Test func aPublicationWhoseParametersChangeTooOftenIsEnded() {
    var bounds = PublicationBounds(PublicationBounds.Limits(jumpsPerMinute: 10, changesPerMinute: 3))
    for _ in 0..<4 { #expect(Self.violation(&bounds, .tracks([]), nil, 0) == nil) }
    #expect(Self.violation(&bounds, .tracks([]), nil, 0)?.contains("--max-changes") == true)
  }

  /// Media seconds in each second, and whether the publication is ended for it.
  @Test(arguments: [(1.0, false), (0.3, false), (0.15, true), (0, true), (60, false)])
  func aClockThatCrawlsIsEnded(_ pace: Double, _ isEnded: Bool) {
    var bounds = PublicationBounds(PublicationBounds.Limits())
    var complaints = 0
    for frame in 0..<1200 {
      let end = MediaTime(milliseconds: Int64(Double(frame) * 1000 / 30 * pace))
      let now = Int64(frame) * Self.second / 30
      if Self.violation(&bounds, Self.sample(), end, .at(now)) != nil {
        complaints += 1
        #expect(now >= 30 * Self.second)
      }
    }
    #expect((complaints > 0) == isEnded)
  }

  @Test func publicationsThatBeginTooOftenAreRefused() {
    var bounds = PublicationBounds(PublicationBounds.Limits(jumpsPerMinute: 120, changesPerMinute: 3))
    for _ in 0..<120 { #expect(Self.begins(&bounds, at: 0)) }
    #expect(!Self.begins(&bounds, at: 0))
    #expect(bounds.secondsUntilBreak == 1)
    #expect(Self.begins(&bounds, at: 1))
  }

  @Test func aRefusedTakeoverChangesNothingOfTheHolder() {
    var bounds = PublicationBounds(PublicationBounds.Limits(jumpsPerMinute: 2, changesPerMinute: 1))
    #expect(Self.begins(&bounds, at: 0))
    for _ in 0..<2 { #expect(Self.violation(&bounds, .tracks([]), nil, 0) == nil) }
    #expect(Self.violation(&bounds, .discontinuity, nil, 0) == nil)
    #expect(!Self.begins(&bounds, at: 0))
    #expect(Self.violation(&bounds, .tracks([]), nil, 0) != nil, "its next change is not its first again")
  }

  /// Seconds between samples whose clock hardly moves.
  @Test(arguments: [0.1, 1.5, 2, 5, 10, 14])
  func aClockThatCrawlsIsEndedHoweverRareItsSamplesAre(_ distance: Double) {
    var bounds = PublicationBounds(PublicationBounds.Limits())
    var ended: Int64?
    for sample in 0..<Int(90 / distance) where ended == nil {
      let now = Int64(Double(sample) * distance * 1e9)
      let end = MediaTime(milliseconds: Int64(sample))
      if Self.violation(&bounds, Self.sample(), end, .at(now)) != nil { ended = now }
    }
    #expect(ended.map { (30 * Self.second...45 * Self.second).contains($0) } == true, "\(ended ?? -1)")
  }

  /// Seconds between frames.
  @Test(arguments: [1, 5, 12, 25])
  func aSlideShowWhoseClockRunsIsNot(_ distance: Int) {
    var bounds = PublicationBounds(PublicationBounds.Limits())
    for frame in 0..<100 {
      let now = Int64(frame * distance) * Self.second
      #expect(Self.violation(&bounds, Self.sample(), MediaTime(nanoseconds: now), .at(now)) == nil)
    }
  }

  /// Seconds in which it sends and in which it does not, in turn; its timestamps count as jumping at a pause, or not.
  @Test(arguments: [(20, 25), (5, 15), (2, 1), (1, 9), (10, 10), (3, 300)])
  func aPublisherThatPausesIsNot(_ sends: Int, _ pauses: Int) {
    for jumps in [false, true] {
      var bounds = PublicationBounds(PublicationBounds.Limits())
      for turn in 0..<20 {
        let start = Int64(turn * (sends + pauses)) * Self.second
        if jumps { #expect(Self.violation(&bounds, .discontinuity, nil, .at(start)) == nil) }
        for frame in 0..<sends * 30 {
          let now = start + Int64(frame) * Self.second / 30
          #expect(Self.violation(&bounds, Self.sample(), MediaTime(nanoseconds: now), .at(now)) == nil)
        }
      }
    }
  }

  @Test func aConnectionThatWasHeldUpIsNot() {
    var bounds = PublicationBounds(PublicationBounds.Limits())
    for frame in 0..<3000 {
      let end = MediaTime(milliseconds: Int64(frame) * 1000 / 30)
      // Nothing comes for 28 s, and then all of it.
      let time = Int64(frame) * Self.second / 30
      let now = time > 10 * Self.second && time < 38 * Self.second ? 38 * Self.second : time
      #expect(Self.violation(&bounds, Self.sample(), end, .at(now)) == nil)
    }
  }
}
