import Base
import FMP4
import NIOCore
import Testing
@testable import WebRTC

/// What is kept of a stream for its viewers, and what each of them gets of it.
@Suite struct ViewerQueueTests {
  private static func piece(_ count: Int = 100) -> RTPPiece { RTPPiece(ByteBuffer(repeating: 1, count: count)) }
  private static func time(_ milliseconds: Int64) -> MonotonicTime {
    MonotonicTime(nanoseconds: milliseconds * 1_000_000)
  }

  /// Frames of two packets each, 40 ms apart, a key frame each `group`.
  private static func log(_ count: Int, group: Int, bytes: Int = 100) -> PacketLog {
    var log = PacketLog()
    for frame in 0..<count { add(frame, group: group, bytes: bytes, to: &log) }
    return log
  }

  private static func add(_ frame: Int, group: Int, bytes: Int = 100, to log: inout PacketLog) {
    log.append(
      [piece(bytes), piece(bytes)], at: UInt32(frame) * 3600, isSync: frame % group == 0,
      now: time(Int64(frame) * 40))
  }

  private static func sender() -> TrackSender { TrackSender(payloadType: 96, source: 7, needsKeyFrame: true) }

  private static func takeAll(_ sender: inout TrackSender, _ log: PacketLog) -> [TrackSender.Outgoing] {
    var all: [TrackSender.Outgoing] = []
    while let (_, outgoing) = sender.take(log) { all.append(outgoing) }
    return all
  }

  // MARK: what is kept

  @Test func `All since the newest key frame is kept, and a while before it`() {
    var log = Self.log(100, group: 75)
    log.trim(to: 1 << 20, now: Self.time(99 * 40))
    #expect(log.keyFrame == 150 && log[150] != nil && log.end == 200)
    #expect(log.start == 2 * (99 - 50), "2 s before now")
    // A group that is longer than that stays whole.
    var long = Self.log(100, group: 1000)
    long.trim(to: 1 << 20, now: Self.time(99 * 40))
    #expect(long.start == 0 && long.keyFrame == 0)
  }

  @Test func `Bytes are bounded, whatever the distance of key frames`() {
    var log = Self.log(100, group: 1000)
    log.trim(to: 5000, now: Self.time(99 * 40))
    #expect(log.byteCount == 5000 && log.start == 150 && log.keyFrame == nil)
    #expect(log[149] == nil && log[150] != nil && log[200] == nil)
  }

  @Test func `After a gap nothing is left, and who had all so far notices`() {
    var log = Self.log(10, group: 5)
    var sender = Self.sender()
    sender.begin(log, now: Self.time(400))
    _ = Self.takeAll(&sender, log)
    log.clear()
    #expect(log.byteCount == 0 && log.keyFrame == nil && sender.hasLost(log))
  }

  // MARK: what a viewer gets

  @Test func `It begins with the newest key frame, whose past is shown at once`() {
    var log = Self.log(10, group: 5)
    var sender = Self.sender()
    sender.begin(log, now: Self.time(400))
    let past = Self.takeAll(&sender, log)
    #expect(past.map(\.number) == Array(10..<20))
    #expect(past.map(\.sequence) == (0..<10).map { past[0].sequence &+ UInt16($0) })
    // A millisecond apart, up to the newest frame's own time.
    let times = (0..<5).reversed().map { UInt32(9 * 3600 - 90 * $0) }
    #expect(past.map(\.timestamp) == times.flatMap { [$0, $0] })
    Self.add(10, group: 5, to: &log)
    #expect(Self.takeAll(&sender, log).map(\.timestamp) == [36_000, 36_000])
  }

  @Test func `Without a key frame it waits for one`() {
    var log = Self.log(10, group: 1000)
    log.trim(to: 500, now: Self.time(400))
    var sender = Self.sender()
    sender.begin(log, now: Self.time(400))
    #expect(Self.takeAll(&sender, log).isEmpty && sender.awaitsKeyFrame)
    for frame in 11..<21 { Self.add(frame, group: 20, to: &log) }
    let taken = Self.takeAll(&sender, log)
    #expect(taken.first?.timestamp == 20 * 3600 && taken.count == 2 && !sender.awaitsKeyFrame)
  }

  @Test func `One that is too slow goes on with a key frame, and its numbers have no hole`() {
    var log = Self.log(6, group: 5)
    var sender = Self.sender()
    sender.begin(log, now: Self.time(240))
    let before = Self.takeAll(&sender, log)
    for frame in 6..<60 { Self.add(frame, group: 50, to: &log) }
    #expect(sender.lag(log, now: Self.time(60 * 40)) == 54 * 40_000_000)
    sender.skip(log, now: Self.time(60 * 40))
    let after = Self.takeAll(&sender, log)
    #expect(after.first?.number == 100 && after.first?.sequence == before.last.map { $0.sequence &+ 1 })
    // Nothing newer to begin with: it waits.
    sender.skip(log, now: Self.time(60 * 40))
    #expect(sender.awaitsKeyFrame && Self.takeAll(&sender, log).isEmpty)
  }

  @Test func `One that lost its picture gets the newest key frame again, with later times`() throws {
    let log = Self.log(20, group: 20)
    var sender = Self.sender()
    sender.begin(log, now: Self.time(800))
    let first = Self.takeAll(&sender, log)
    sender.begin(log, now: Self.time(900))
    let again = Self.takeAll(&sender, log)
    #expect(again.count == 40 && again.first?.number == 0)
    let (last, next) = (try #require(first.last), try #require(again.first))
    #expect(next.sequence == last.sequence &+ 1 && next.timestamp > last.timestamp)
    #expect(try #require(again.last).timestamp < 20 * 3600, "before the next frame")
  }

  @Test func `One that gets another video goes on in its numbers and its times, however late that one comes`() throws {
    let log = Self.log(20, group: 10)
    var sender = Self.sender()
    sender.begin(log, now: Self.time(800))
    let first = Self.takeAll(&sender, log)
    // A video that is made of it: the same times, and its newest frames are still to come.
    var late = Self.log(17, group: 10)
    sender.move(to: 97)
    #expect(sender.next == nil && sender.payloadType == 97)
    sender.begin(late, now: Self.time(800))
    Self.add(17, group: 10, to: &late)
    let second = Self.takeAll(&sender, late)
    let (last, next) = (try #require(first.last), try #require(second.first))
    #expect(next.number == 20 && next.sequence == last.sequence &+ 1)
    let times = [last.timestamp] + second.enumerated().filter { $0.offset % 2 == 0 }.map(\.element.timestamp)
    #expect(times == times.sorted() && Set(times).count == times.count, "each frame is later than the one before")
    #expect(sender.delay > 0 && second.last?.timestamp == 17 * 3600 &+ sender.delay)
    #expect(sender.again(last.sequence, late) == nil, "its packets are of another video")
    // Back to the earlier one: its own times.
    var early = Self.log(30, group: 10)
    sender.move(to: 96)
    sender.begin(early, now: Self.time(1200))
    Self.add(30, group: 10, to: &early)
    #expect(Self.takeAll(&sender, early).last?.timestamp == 30 * 3600 && sender.delay == 0)
  }

  @Test func `What was sent is sent again as it was, as long as it is kept`() throws {
    var log = Self.log(10, group: 5)
    var sender = Self.sender()
    sender.begin(log, now: Self.time(400))
    let taken = Self.takeAll(&sender, log)
    let (packet, same) = try #require(sender.again(taken[3].sequence, log))
    #expect(same == taken[3] && packet.piece == log[13]?.piece)
    #expect(sender.again(taken[9].sequence &+ 1, log) == nil, "not sent yet")
    #expect(sender.again(taken[0].sequence &- 1, log) == nil)
    log.trim(to: 200, now: Self.time(400))
    #expect(sender.again(taken[3].sequence, log) == nil && sender.again(taken[9].sequence, log) != nil)
  }

  @Test func `Numbers that are asked for again are remembered to a bound`() throws {
    var log = PacketLog()
    log.append((0..<WebRTCLimits.repeatablePackets + 1).map { _ in Self.piece(1) }, at: 0, isSync: true, now: .zero)
    var sender = Self.sender()
    sender.begin(log, now: .zero)
    let taken = Self.takeAll(&sender, log)
    #expect(sender.again(taken[0].sequence, log) == nil && sender.again(taken[1].sequence, log) != nil)
  }

  @Test func `An allowance grows with time, to its bound`() {
    var allowance = ByteAllowance(100, now: .zero)
    allowance.take(150)
    #expect(allowance.bytes == -50)
    allowance.grow(1000, burst: 100, now: Self.time(100))
    #expect(allowance.bytes == 50)
    allowance.grow(1000, burst: 100, now: Self.time(10_000))
    #expect(allowance.bytes == 100)
    allowance.grow(.max, burst: .max, now: Self.time(5))
    #expect(allowance.bytes == 100, "time does not go back")
  }

  @Test func `Audio and video have one clock, and an outage takes its time`() {
    var clock = RelayClock()
    let video = clock.timestamp(of: MediaTime(ticks: 90_000, timescale: 90_000), .video, now: Self.time(5000))
    let audio = clock.timestamp(of: MediaTime(ticks: 48_000, timescale: 48_000), .audio, now: Self.time(5300))
    #expect(clock.timestamp(Self.time(5000), .video) == video && clock.timestamp(Self.time(5000), .audio) == audio)
    // Late media keeps its time.
    let late = clock.timestamp(of: MediaTime(ticks: 180_000, timescale: 90_000), .video, now: Self.time(9000))
    #expect(late == video &+ 90_000)
    clock.breaks()
    let after = clock.timestamp(of: MediaTime(ticks: 270_000, timescale: 90_000), .video, now: Self.time(20_000))
    #expect(after == video &+ 15 * 90_000)
    clock.breaks()
    let made = clock.timestamp(ofMade: MediaTime(ticks: 270_000, timescale: 90_000), .video, now: Self.time(21_000))
    #expect(made == after, "what is made of it comes later, and moves nothing")
    let soon = clock.timestamp(of: MediaTime(ticks: 360_000, timescale: 90_000), .video, now: Self.time(20_100))
    #expect(soon == after &+ 90_000, "never back")
  }
}
