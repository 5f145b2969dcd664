import Base
import FMP4
@testable import RTMP
import Support
import Testing

@Suite("The pace of messages")
struct MessagePaceTests {
  typealias S = RTMPScript

  /// 10 messages at once, then 1000 a second, 4 together: a message is a millisecond.
  private var pace = MessagePace(burst: 10, perSecond: 1000, batch: 4)
  private static let millisecond: Int64 = 1_000_000

  /// Takes what may be taken at that time.
  private mutating func taken(at now: MonotonicTime) -> Int {
    var count = 0
    while pace.pause(at: now) == nil {
      pace.count(63, at: now)
      count += 1
    }
    return count
  }

  @Test mutating func aBurstIsTakenAtOnceAndNoMessageMore() {
    let start: MonotonicTime = 5_000_000_000
    for number in 1...10 {
      #expect(pace.pause(at: start) == nil, "\(number)")
      pace.count(63, at: start)
    }
    #expect(pace.pause(at: start) == start + 4 * Self.millisecond)
  }

  @Test mutating func whoWaitedMaySendABatchAndTheRateIsKept() {
    #expect(taken(at: 0) == 10)
    var now: MonotonicTime = 0
    var count = 0
    for _ in 0..<250 {
      now = pace.pause(at: now) ?? now
      count += taken(at: now)
    }
    #expect(count == 1000)
    #expect(now == .at(1000 * Self.millisecond))
    // A loop that comes late makes up for it.
    #expect(taken(at: now + 7 * Self.millisecond) == 7)
  }

  @Test mutating func whoSendsNoFasterThanTheRateNeverWaits() {
    for number in 0..<10_000 as Range<Int64> {
      #expect(pace.pause(at: .at(number * Self.millisecond)) == nil)
      pace.count(63, at: .at(number * Self.millisecond))
    }
  }

  @Test mutating func silenceSavesUpOneBurstAndNoMore() {
    #expect(taken(at: 0) == 10)
    #expect(taken(at: .at(9 * Self.millisecond)) == 9)
    #expect(taken(at: .at(100_000 * Self.millisecond)) == 10)
  }

  @Test mutating func whatIsTakenAsAWholeIsWaitedForAfterwards() {
    for _ in 0..<1000 { pace.count(63, at: 0) }
    #expect(pace.pause(at: 0) == .at(994 * Self.millisecond))
    #expect(taken(at: .at(994 * Self.millisecond)) == 4)
    pace.forgive()
    #expect(taken(at: .at(994 * Self.millisecond)) == 10)
  }

  @Test func aMessageCountsLessTheLargerItIsAndAKilobyteASixteenth() {
    for (bytes, sixteenths) in [(0, 16), (63, 16), (64, 15), (127, 15), (512, 8), (959, 2), (960, 1), (16 << 20, 1)] {
      var pace = MessagePace(burst: 16, perSecond: 1000, batch: 1)
      var count = 0
      while pace.pause(at: 0) == nil {
        pace.count(bytes, at: 0)
        count += 1
      }
      #expect(count == (256 + sixteenths - 1) / sixteenths, "\(bytes) bytes")
    }
  }

  // MARK: a session's

  private static let burst = Int(RTMPLimits.messageBurst)

  /// So many frames of AAC from one on, each when the one before has ended.
  private static func audio(_ count: Int, from first: Int = 0) -> [UInt8] {
    Array((first..<first + count).map { S.audio(S.aacFrame, UInt32($0) * 64 / 3) }.joined())
  }

  /// A session that publishes. Its bytes are given without a pause where it sends too fast.
  private static func publishing() -> SessionDriver {
    let opening = S.connect() + S.createStream + S.publish() + S.metadata(video: false) + S.audio(S.aacHeader(), 0)
    var driver = SessionDriver()
    driver.feed(S.handshake + opening)
    driver.waits = false
    return driver
  }

  @Test func messagesBeyondTheBurstWaitAndNoneIsLost() {
    var driver = Self.publishing()
    driver.feed(Self.audio(Self.burst - 10))
    #expect(driver.session.heldUntil == nil)
    #expect(driver.samples.count == Self.burst - 10)
    driver.feed(
      Self.audio(250, from: Self.burst - 10) + S.command([.string("deleteStream"), .number(0), .null, .number(1)]),
      piece: 1000)
    let first = driver.session.heldUntil ?? .zero
    #expect(abs(first.nanoseconds - RTMPLimits.messageBatch * 1_000_000_000 / RTMPLimits.messagesPerSecond) < 1_000_000)
    #expect((Self.burst - 5...Self.burst).contains(driver.samples.count))
    var rounds = 0
    while let time = driver.session.heldUntil {
      driver.goOn(time)
      rounds += 1
    }
    #expect(rounds == 3)
    #expect(driver.samples.count == Self.burst + 240)
    #expect(driver.ending == .finished)
    #expect(driver.endings.isEmpty)
  }

  @Test func ofAPeerThatLeftAnotherBurstIsTaken() {
    var driver = Self.publishing()
    driver.feed(Self.audio(3 * Self.burst))
    #expect((Self.burst - 5...Self.burst).contains(driver.samples.count))
    driver.takeRest()
    #expect((2 * Self.burst - 5...2 * Self.burst).contains(driver.samples.count))
  }

  @Test func whoSendsTooFastIsAcknowledgedAfterAPause() throws {
    var driver = Self.publishing()
    driver.feed(S.message(5, S.u32(1000), stream: 0, chunkStream: 2))
    driver.feed(Self.audio(Self.burst / 4), piece: 1000)
    let before = try driver.acknowledgements()
    #expect(before > 10)
    driver.feed(Self.audio(Self.burst / 2, from: Self.burst / 4), piece: 1000)
    let strained = try driver.acknowledgements()
    #expect(strained > before)
    driver.feed(Self.audio(100, from: Self.burst * 3 / 4), piece: 1000)
    #expect(try driver.acknowledgements() == strained)
    let deadline = try #require(driver.session.deadline(after: 0))
    #expect(deadline <= 3_000_000_000)
    driver.tick(3_000_000_000)
    #expect(try driver.acknowledgements() == strained + 1)
  }

  @Test func whatWaitsOfAnEndedPublicationIsForgotten() {
    var driver = Self.publishing()
    driver.feed(Self.audio(Self.burst + 10))
    driver.refuse()
    #expect(driver.session.heldUntil == nil)
    let count = driver.samples.count
    driver.feed(Self.audio(10))
    #expect(driver.samples.count == count)
  }

  @Test(arguments: [RTMPLimits.messagesOfAggregate, RTMPLimits.messagesOfAggregate + 1])
  func anAggregateMessageHasSoManyMessages(_ count: Int) {
    var driver = Self.publishing()
    // The parts of all of them follow each other in time.
    func aggregate(_ number: Int) -> [UInt8] {
      var parts: [UInt8] = []
      for index in 0..<count {
        let time = UInt32(number * count + index) * 64 / 3
        parts.append(8)
        parts += S.u24(UInt32(S.aacFrame.count))
        parts += S.u24(time & 0xFF_FFFF)
        parts += [UInt8(time >> 24), 0, 0, 0]
        parts += S.aacFrame
        parts += S.u32(UInt32(11 + S.aacFrame.count))
      }
      return S.message(22, parts, time: UInt32(number * count) * 64 / 3)
    }
    for number in 0..<4 { driver.feed(aggregate(number)) }
    if count == RTMPLimits.messagesOfAggregate {
      #expect(driver.samples.count == 4 * count)
      driver.feed(aggregate(4))
      #expect(driver.session.heldUntil != nil, "each of them counts")
    } else {
      #expect(driver.ending == .failed("more than 4096 messages in one aggregate message; send smaller ones"))
    }
  }
}
