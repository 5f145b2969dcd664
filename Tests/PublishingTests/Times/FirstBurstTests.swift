@testable import Publishing
import Base
import Support
import Testing

/// A publication that begins faster than real time.
@Suite struct FirstBurstTests {
  private static let frame: Int64 = 33_000_000
  private static let way: Int64 = 20_000_000

  /// When a burst of so many seconds begins and ends, in milliseconds after the first frame, and the delay known by then. It comes
  /// `speed` times faster than real time; what follows comes as it is made.
  private func run(seconds: Double, speed: Double, quietAfter: Bool = false)
    -> [(change: FirstBurst.Change, at: Int64, delay: Int64)]
  {
    let length = Int64(seconds * 1e9)
    let start = length + Self.way
    var burst = FirstBurst(delay: .at(start - Self.frame), now: .at(start))
    var found: [(FirstBurst.Change, Int64, Int64)] = []
    for number in 1..<600 as Range<Int64> where !quietAfter || number * Self.frame < length {
      let end = (number + 1) * Self.frame
      let now = max(end + Self.way, start + Int64(Double(number * Self.frame) / speed))
      if let change = burst.saw(.at(now - end), now: .at(now)) {
        found.append((change, (now - start) / 1_000_000, burst.least.nanoseconds / 1_000_000))
        if change == .ends { return found }
      }
    }
    if quietAfter, let change = burst.tick(now: .at(start + 1_000_000_000)) {
      found.append((change, 1000, burst.least.nanoseconds / 1_000_000))
    }
    return found
  }

  @Test(arguments: [0.5, 4.2, 10]) func aBurstIsKnownWhileItComesAndOverSoonAfter(seconds: Double) {
    let found = run(seconds: seconds, speed: 1000)
    #expect(found.map(\.change) == [.begins, .ends])
    #expect(found.first.map { $0.at < 5 } == true)
    #expect(found.last.map { (200...300).contains($0.at) && (20...53).contains($0.delay) } == true, "\(found)")
  }

  @Test func aSlowOneIsWaitedForASecond() {
    let found = run(seconds: 10, speed: 2)
    #expect(found.map(\.change) == [.begins, .ends])
    #expect(found.last.map { (1000...1300).contains($0.at) } == true, "\(found)")
  }

  @Test func whereNothingFollowsTimeEndsIt() {
    #expect(run(seconds: 2, speed: 1000, quietAfter: true).map(\.change) == [.begins, .ends])
  }

  @Test func mediaThatComeAsTheyAreMadeAreNone() {
    var burst = FirstBurst(delay: .at(80_000_000), now: 0)
    for number in 1..<60 as Range<Int64> {
      let now = number * Self.frame
      let delay = 15_000_000 + number * 7919 % 60_000_000
      #expect(burst.saw(.at(delay), now: .at(now)) == nil && burst.tick(now: .at(now)) == nil)
    }
    #expect(!burst.isOn)
  }
}
