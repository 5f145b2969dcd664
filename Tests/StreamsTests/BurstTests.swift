import FMP4
import NIOCore
@testable import Streams
import StreamSupport
import Support
import Testing

/// Publishers that send faster than real time at first, while somebody watches: no list contradicts another one.
@Suite struct BurstTests {
  /// An epoch that is looked at after each event.
  private struct Watched {
    var driver: EpochDriver
    private var dates: [Int: WallTime] = [:]

    /// `group`: the distance of key frames, if the name was published before.
    init(group: MediaTime? = nil) {
      driver = EpochDriver(StreamSettings { $0.layout = .separate }, knownGroup: group)
    }

    mutating func receive(_ event: MediaEvent) throws {
      try driver.receive(event)
      look()
    }

    mutating func interrupt() throws {
      try driver.interrupt()
      look()
    }

    /// As playlists and manifests are given out.
    private mutating func look() {
      guard driver.epoch.window.tellsDates else { return }
      driver.epoch.isDated = true
      for segment in driver.epoch.window.segments where !segment.isOutage {
        let known = dates.updateValue(segment.wallStart, forKey: segment.sequenceNumber)
        #expect(known == nil || known == segment.wallStart, "the date of \(segment.sequenceNumber) was listed")
      }
    }

    /// A publication whose first `burst` milliseconds of media come at once, at so many milliseconds after the epoch's start. By its
    /// times of day, as a `Publication` tells them.
    mutating func publish(seconds: Int, at arrival: Int64, burst: Int64) throws {
      driver.epoch.startPublication()
      let came = EpochDriver.wall + arrival * 1_000_000
      try receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: came)))
      try receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
      var (isKnown, isOver) = (burst == 0, burst == 0)
      for sample in SyntheticMedia.interleaved(seconds: seconds, isSteady: true) {
        let time = sample.track == .video ? sample.decodeTime / 30 : sample.decodeTime / 48
        if !isKnown, time >= 100 {
          isKnown = true
          var clock = WallClockAnchor(mediaTime: .zero, wallTime: came &- time * 1_000_000)
          clock.isProvisional = true
          try receive(.clock(clock))
        }
        // 0.2 s after the burst.
        if !isOver, time >= burst + 200 {
          isOver = true
          try receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: came &- burst * 1_000_000)))
        }
        try receive(.sample(sample))
      }
    }
  }

  /// Dates follow from lengths, and Periods from each other.
  private func judge(_ epoch: Epoch, within tolerance: Int64 = 20_000_000) {
    let segments = Array(epoch.window.segments)
    for (segment, next) in zip(segments, segments.dropFirst()) {
      let off = next.wallStart &- segment.wallEnd
      #expect(off.magnitude <= tolerance.magnitude, "\(next.sequenceNumber) is \(off / 1_000_000) ms off")
      #expect(next.wallStart > segment.wallStart)
    }
    let periods = epoch.window.periods
    for (period, next) in zip(periods, periods.dropFirst()) {
      let last = segments.last { $0.sequenceNumber < next.firstSequenceNumber && !$0.isOutage }
      guard let last else { continue }
      let end = period.wallStart &+ (last.start + last.duration - period.mediaStart).nanoseconds
      #expect(next.wallStart &- end >= -20_000_000, "Period \(next.ordinal)")
    }
  }

  private func milliseconds(_ time: WallTime?) -> Int64? { time.map { ($0 &- EpochDriver.wall) / 1_000_000 } }

  @Test(arguments: [0, 500, 4200, 10_000] as [Int64], [false, true])
  func aBeginningIsDatedByWhenItWasMade(burst: Int64, isKnown: Bool) throws {
    var watched = Watched(group: isKnown ? MediaTime(milliseconds: 2000) : nil)
    try watched.publish(seconds: 14, at: burst, burst: burst)
    judge(watched.driver.epoch)
    #expect(milliseconds(watched.driver.epoch.window.segments.first?.wallStart) == 0)
    #expect(watched.driver.epoch.availabilityStart == EpochDriver.wall)
    #expect(watched.driver.epoch.window.periods.count == 1)
  }

  /// After five seconds, and so many milliseconds without a publisher.
  @Test(arguments: [500, 4200, 10_000] as [Int64], [1000, 12_000] as [Int64])
  func aReturnIsDatedByWhenItWasMadeOrBehindWhatIsListed(burst: Int64, outage: Int64) throws {
    var watched = Watched()
    try watched.publish(seconds: 5, at: 0, burst: 0)
    try watched.interrupt()
    try watched.publish(seconds: 14, at: 5000 + outage, burst: burst)
    judge(watched.driver.epoch, within: 40_000_000)
    let returned = watched.driver.epoch.window.segments.first { $0.followsDiscontinuity }
    // The audio before ends a frame after the video.
    let date = try #require(milliseconds(returned?.wallStart))
    #expect((-10...40).contains(date - max(5000, 5000 + outage - burst)), "\(date)")
    #expect(watched.driver.epoch.window.periods.count == 2)
  }

  /// It ends within its burst: nothing of it is lost.
  @Test func whatWaitsIsTakenWhenThePublisherGoes() throws {
    var watched = Watched()
    try watched.publish(seconds: 3, at: 0, burst: 3000)
    try watched.interrupt()
    #expect(watched.driver.epoch.heldBytes > 0)
    let fragments = watched.driver.events.compactMap { if case .fragment(let one) = $0 { one.fragment } else { nil } }
    let frames = fragments.flatMap(\.runs).filter { $0.track == .video }.reduce(0) { $0 + $1.samples.count }
    #expect(frames == 90)
    let causes = watched.driver.events.compactMap { if case .discontinuity(let cause) = $0 { cause } else { nil } }
    #expect(causes == [.publisher])
  }

  @Test func noMoreWaitsThanMay() {
    var burst = HeldBurst()
    for number in 0..<HeldBurst.mostEvents {
      #expect(!burst.isFull)
      burst.append(.sample(SyntheticMedia.frame(number)))
    }
    #expect(burst.isFull && burst.byteCount == HeldBurst.mostEvents * 100)
  }

  /// What turns out later than lists may wait for: dates go back in steps that lists allow, and manifests show it late.
  @Test(arguments: [200, 500, 4200] as [Int64]) func aClockThatIsSetBackLaterIsFollowedInSteps(late: Int64) throws {
    var driver = EpochDriver()
    driver.epoch.startPublication()
    driver.epoch.isDated = true
    let truth = EpochDriver.wall
    try driver.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: truth + late * 1_000_000)))
    try driver.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
    for sample in SyntheticMedia.interleaved(seconds: 30) {
      if sample.track == .video, sample.decodeTime == 30_000 {
        try driver.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: truth)))
      }
      try driver.receive(.sample(sample))
    }
    judge(driver.epoch, within: ListedClock.step + 1_000_000)
    #expect(driver.epoch.window.periods.count == 1)
    let last = try #require(driver.epoch.window.segments.last)
    let left = (last.wallStart &- truth) / 1_000_000 - last.start.rescaled(to: 1000)
    // Half a second soon, and of what remains a step of 40 ms within 100 s.
    #expect(left == (late <= 500 ? 0 : late - 540))
  }
}
