import Base
import FMP4
@testable import Publishing
import Support
import Testing

@Suite("Which time of day media had")
struct TimesOfDayTests {
  private static let wallOffset: WallTime = 1_795_245_850_000_000_000
  private static let millisecond: Int64 = 1_000_000

  /// Begun at 0 on the timeline, after a way of so many milliseconds.
  private func begun(delay: Int64, now: MonotonicTime = 0) -> TimesOfDay {
    var times = TimesOfDay(reading: ClockReading(wall: Self.wallOffset, monotonic: 0))
    times.gather(end: now.nanoseconds - delay * Self.millisecond, now: now)
    _ = times.begin(at: 0, now: now)
    return times
  }

  @Test func `The most direct way so far tells when media time 0 was`() {
    var times = TimesOfDay(reading: ClockReading(wall: Self.wallOffset, monotonic: 0))
    times.gather(end: 100, now: 500)
    times.gather(end: 200, now: 550)
    times.gather(end: 300, now: 900)
    let anchor = times.begin(at: 1000, now: 900)
    #expect(anchor == WallClockAnchor(mediaTime: .zero, wallTime: Self.wallOffset + 350 + 1000))
  }

  @Test func `What belongs to another timeline does not count`() {
    var times = TimesOfDay(reading: ClockReading(wall: 0, monotonic: 0))
    times.gather(end: 500, now: 500)
    times.forgetGathered()
    times.gather(end: 500, now: 570)
    #expect(times.begin(at: 0, now: 570).wallTime == 70)
  }

  @Test func `A beginning that came in a burst is told anew once`() throws {
    var times = begun(delay: 740)
    var told: [(anchor: WallClockAnchor, reason: TimesOfDay.Reason)] = []
    for tick in 1..<100 as Range<Int64> {
      let end = tick * 33 * Self.millisecond
      if let change = times.follow(end, now: .at(end + 20 * Self.millisecond)) { told.append(change) }
    }
    let change = try #require(told.first)
    #expect(told.count == 1 && change.reason == .lateBeginning(720))
    #expect(change.anchor.wallTime == Self.wallOffset + 20 * Self.millisecond)
  }

  /// The first half second comes at once.
  @Test func `A burst is told as such, and its time soon after`() throws {
    var times = begun(delay: 500, now: .at(500 * Self.millisecond))
    var told: [(at: Int64, anchor: WallClockAnchor)] = []
    for tick in 1..<40 as Range<Int64> {
      let end = tick * 33 * Self.millisecond
      let now = max(500 * Self.millisecond, end)
      if let anchor = times.watchBurst(end, now: .at(now)) { told.append((now / Self.millisecond, anchor)) }
    }
    #expect(told.map(\.anchor.isProvisional) == [true, false])
    #expect(told.map { $0.at }.first == 500 && told.last.map { (700...770).contains($0.at) } == true)
    #expect(told.last?.anchor.wallTime == Self.wallOffset)
    #expect(times.endBurst() == nil, "it is over")
  }

  @Test func `A burst is over when nothing follows or the timeline breaks`() {
    for breaks in [false, true] {
      var times = begun(delay: 500)
      #expect(times.watchBurst(300 * Self.millisecond, now: 0)?.isProvisional == true)
      let anchor = breaks ? times.endBurst() : times.tick(now: .at(200 * Self.millisecond))
      #expect(anchor?.isProvisional == false && anchor?.wallTime == Self.wallOffset - 300 * Self.millisecond)
    }
  }

  @Test(arguments: [(90, .slowClock, 40), (-90, .fastClock, -40)] as [(Int64, TimesOfDay.Reason, Int64)])
  func `A clock that drifts is followed in steps`(
    _ delay: Int64, _ reason: TimesOfDay.Reason, _ step: Int64
  ) throws {
    var times = begun(delay: 0)
    // The beginning is over before it drifts.
    for tick in 0..<20 as Range<Int64> { _ = times.follow(tick * 100_000_000, now: .at(tick * 100_000_000)) }
    var first: (anchor: WallClockAnchor, reason: TimesOfDay.Reason)?
    for second in 2..<400 as Range<Int64> where first == nil {
      let end = second * 1_000_000_000
      first = times.follow(end, now: .at(end + delay * Self.millisecond))
    }
    #expect(first?.reason == reason)
    #expect(first?.anchor.wallTime == Self.wallOffset + step * Self.millisecond)
  }

  @Test func `Dates of a clock that is far off step, and a timeline begins there`() {
    var times = begun(delay: 0)
    var anchors: [WallClockAnchor] = []
    for frame in 0..<4000 as Range<Int64> {
      let end = frame * 40 * Self.millisecond
      if let change = times.follow(end, now: .at(end + frame * Self.millisecond)) { anchors.append(change.anchor) }
    }
    #expect(times.clockError == -24)
    #expect(anchors.count >= 4 && anchors.allSatisfy(\.beginsTimeline))
  }

  @Test func `A pause of the publisher is told where it is long enough to be seen`() {
    var times = begun(delay: 20)
    let second: Int64 = 1_000_000_000
    #expect(times.breakTimeline(second, now: .at(second + 119 * Self.millisecond)) == nil)
    let anchor = times.breakTimeline(second, now: .at(second + 120 * Self.millisecond))
    #expect(anchor?.wallTime == Self.wallOffset + 120 * Self.millisecond)
    #expect(times.breakTimeline(second, now: .at(second + 130 * Self.millisecond)) == nil, "it is what is told now")
  }

  /// A publisher whose media came 20 ms after the end of its frames, and who then says when place 0 was.
  private func watched() -> TimesOfDay {
    var times = begun(delay: 20)
    for tick in 1..<60 as Range<Int64> {
      let end = tick * 33 * Self.millisecond
      _ = times.follow(end, now: .at(end + 20 * Self.millisecond))
    }
    return times
  }

  /// In microseconds before arrival.
  @Test(
    arguments: [(500_000, true), (500_001, false), (0, true), (-50_000, true), (-50_001, false)] as [(Int64, Bool)])
  func `A sender's clock is believed from half a second before arrival up to a frame after it`(
    _ lead: Int64, _ isBelieved: Bool
  ) {
    var times = watched()
    let told = Self.wallOffset + 20 * Self.millisecond
    let stated = times.state(told + -lead * 1000)
    #expect((stated != nil) == isBelieved)
    guard let stated else { return }
    #expect(stated.lead == lead * 1000 && stated.anchor.wallTime == told + -lead * 1000)
    // The first one that fits is kept.
    #expect(times.state(told) == nil)
  }

  /// Frames turn out to come sooner by so many milliseconds, by a clock that was 30 ms ahead.
  @Test(arguments: [(20, nil), (21, -1)] as [(Int64, Int64?)])
  func `A sender's clock stays what media is dated by while it is not too far ahead`(_ sooner: Int64, _ date: Int64?) {
    var times = watched()
    #expect(times.state(Self.wallOffset + 50 * Self.millisecond)?.lead == -30 * Self.millisecond)
    times.beginAgain(now: 2_000_000_000)
    var changes: [WallTime] = []
    for tick in 61..<100 as Range<Int64> {
      let end = tick * 33 * Self.millisecond
      let change = times.follow(end, now: .at(end + (20 - sooner) * Self.millisecond))
      if let change { changes.append(change.anchor.wallTime) }
    }
    // Too far ahead it is wrong: then arrival counts.
    #expect(changes == (date.map { [Self.wallOffset + $0 * Self.millisecond] } ?? []))
  }

  @Test func `Who states times of day has a clock that is right, however late media comes`() {
    var times = watched()
    #expect(times.state(Self.wallOffset)?.lead == 20 * Self.millisecond)
    for frame in 50..<4000 as Range<Int64> {
      let end = frame * 40 * Self.millisecond
      let change = times.follow(end, now: .at(end + (20 + frame) * Self.millisecond))
      #expect(times.clockError == nil && change?.anchor.beginsTimeline != true)
    }
  }

  @Test func `Before the beginning nothing is followed`() {
    var times = TimesOfDay(reading: ClockReading(wall: 0, monotonic: 0))
    #expect(times.follow(0, now: 0) == nil && times.breakTimeline(0, now: .at(1 << 60)) == nil)
    times.beginAgain(now: 0)
    #expect(times.follow(0, now: 0) == nil)
  }

  @Test func `A beginning that begins again is told anew`() throws {
    var times = begun(delay: 50)
    for tick in 1..<60 as Range<Int64> {
      let end = tick * 33 * Self.millisecond
      #expect(times.follow(end, now: .at(end + 50 * Self.millisecond)) == nil)
    }
    // Frames turn out to be shown 30 ms later than was thought.
    times.beginAgain(now: 2_000_000_000)
    var change: (anchor: WallClockAnchor, reason: TimesOfDay.Reason)?
    for tick in 61..<100 as Range<Int64> where change == nil {
      let end = tick * 33 * Self.millisecond
      change = times.follow(end, now: .at(end + 20 * Self.millisecond))
    }
    #expect(change?.reason == .lateBeginning(30))
  }
}
