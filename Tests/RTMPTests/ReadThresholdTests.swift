import Base
import FMP4
import NIOCore
import NIOPosix
@testable import RTMP
import Support
import Testing

@Suite("Bytes that the system collects")
struct ReadThresholdTests {
  typealias S = RTMPScript

  private static let millisecond: Int64 = 1_000_000
  private var threshold = {
    var threshold = ReadThreshold()
    threshold.sawAudio()
    return threshold
  }()
  private var now: MonotonicTime = .at(5_000_000_000)

  /// Frames of these sizes in turns, so many milliseconds apart.
  private mutating func frames(_ sizes: [Int], every milliseconds: Int64 = 33, count: Int = 70) {
    for number in 0..<count {
      now = now &+ milliseconds * Self.millisecond
      threshold.saw(frame: sizes[number % sizes.count], now: now)
    }
  }

  @Test mutating func audioWaitsForHalfOfTheSmallestFrame() {
    #expect(threshold.bytes(now: now) == 1)
    frames([9000, 1800, 3000])
    #expect(threshold.bytes(now: now) == 900)
  }

  @Test mutating func nothingIsExpectedWithinTheFirstSecond() {
    frames([9000], count: 30)
    #expect(threshold.bytes(now: now) == 1)
  }

  @Test mutating func largeFramesHaveNoMoreThanTheMostWait() {
    frames([90_000])
    #expect(threshold.bytes(now: now) == ReadThreshold.most)
  }

  @Test mutating func smallFramesAreReadAtOnce() {
    frames([2 * ReadThreshold.least - 1])
    #expect(threshold.bytes(now: now) == 1)
  }

  @Test mutating func aSmallerFrameCountsAtOnceAndForAtLeastASecond() {
    frames([9000])
    now = now &+ 33 * Self.millisecond
    threshold.saw(frame: 100, now: now)
    #expect(threshold.bytes(now: now) == 1)
    frames([9000], count: 29)
    #expect(threshold.bytes(now: now) == 1)
    frames([9000], count: 62)
    #expect(threshold.bytes(now: now) == ReadThreshold.most)
  }

  @Test mutating func slowOrUnevenFramesAreReadAtOnce() {
    frames([9000], every: 51)
    #expect(threshold.bytes(now: now) == 1)
    frames([9000])
    #expect(threshold.bytes(now: now) == ReadThreshold.most)
    now = now &+ 51 * Self.millisecond
    #expect(threshold.bytes(now: now) == 1)
    threshold.saw(frame: 9000, now: now)
    #expect(threshold.bytes(now: now) == 1)
  }

  @Test mutating func aSenderThatWritesHeadersApartIsReadAtOnceForGood() {
    frames([9000])
    for _ in 1..<ReadThreshold.headersAlone { threshold.sawHeaderAlone() }
    #expect(threshold.bytes(now: now) == ReadThreshold.most)
    frames([9000], count: 31)
    threshold.sawHeaderAlone()
    #expect(threshold.mayCollect, "some reads end behind a header by accident")
    for _ in 1..<ReadThreshold.headersAlone { threshold.sawHeaderAlone() }
    threshold.forget()
    frames([9000])
    #expect(!threshold.mayCollect && threshold.bytes(now: now) == 1)
  }

  @Test mutating func nothingWaitsBetweenFramesWhereThereIsNoAudio() {
    threshold = ReadThreshold()
    frames([9000])
    #expect(threshold.bytes(now: now) == 1)
    threshold.sawAudio()
    #expect(threshold.bytes(now: now) == ReadThreshold.most)
  }

  // MARK: a session's

  /// A session of 25 even frames a second, for two and a half seconds. The last thing that came is a whole frame.
  private static func publishing(_ more: [UInt8] = []) -> SessionDriver {
    var driver = SessionDriver()
    driver.feed(S.opening() + more + S.headers)
    for number in 0..<62 as Range<UInt32> {
      driver.now = .at(5_000_000_000 + Int64(number) * 40 * millisecond)
      let frame = S.avcFrame(key: number % 25 == 0, size: 3000)
      driver.feed(S.audio(S.aacFrame, number * 40) + S.video(frame, number * 40))
    }
    return driver
  }

  @Test func theRestOfAMessageIsCollectedUpToABound() {
    var driver = Self.publishing()
    #expect(driver.session.bytesToCollect(now: driver.now) == (3000 + 10) / 2)
    driver.feed(S.message(1, S.u32(100_000), stream: 0, chunkStream: 2))
    let frame = S.message(9, S.avcFrame(key: false, size: 5000), time: 2500, chunkStream: 6, chunkSize: 100_000)
    driver.feed(Array(frame.dropLast(1200)))
    #expect(driver.session.bytesToCollect(now: driver.now) == 1200)
    driver.feed(Array(frame.suffix(1200).dropLast()))
    #expect(driver.session.bytesToCollect(now: driver.now) == 1)
    driver.feed([0x88])
    #expect(driver.samples.last?.payload.readableBytes == 5005)
    let long = S.message(9, S.avcFrame(key: true, size: 90_000), time: 2540, chunkStream: 6, chunkSize: 100_000)
    driver.feed(Array(long.prefix(20)))
    #expect(driver.session.bytesToCollect(now: driver.now) == RTMPLimits.collectedBytes)
  }

  @Test func nothingIsCollectedBeforeAPublicationNorForASmallWindow() {
    var early = SessionDriver()
    early.feed(S.handshake + Array(S.connect().dropLast(5)))
    #expect(early.session.bytesToCollect(now: early.now) == 1)
    let window = S.message(5, S.u32(UInt32(RTMPLimits.collectingWindow) - 1), stream: 0, chunkStream: 2)
    let small = Self.publishing(window)
    #expect(small.session.bytesToCollect(now: small.now) == 1)
  }

  /// Who sends no more than a window without an answer, of which the last bytes are collected, is answered.
  @Test func anAcknowledgementDoesNotWaitForWhatIsCollected() throws {
    let window = RTMPLimits.collectingWindow
    var driver = SessionDriver()
    driver.feed(S.opening() + S.message(5, S.u32(UInt32(window)), stream: 0, chunkStream: 2) + S.headers)
    let before = driver.sent.count
    let media = S.video(S.avcFrame(key: true, size: window), 0)
    driver.feed(Array(media.prefix(window - RTMPLimits.collectedBytes)))
    #expect(driver.sent.count > before)
  }

  // MARK: a socket's

  /// Sends 25 large frames a second and audio between them, until `body` says that it has seen enough or 20 s have passed.
  private func publish(
    to gate: RecordingGate, _ body: (Client, _ rounds: Int) async throws -> Bool
  ) async throws {
    let listener = RTMPListener(
      gate: gate, clock: .system(), logger: LogCollector().logger, group: MultiThreadedEventLoopGroup.singleton)
    let address = try await listener.start(.address(try SocketAddress(ipAddress: "127.0.0.1", port: 0)))
    let client = try await Client.connect(to: address)
    try await client.send(S.opening() + S.headers)
    var rounds: UInt32 = 0
    while rounds < 500 {
      rounds += 1
      try await client.send(S.video(S.avcFrame(key: rounds % 25 == 1, size: 5000), rounds * 40))
      try await Task.sleep(for: .milliseconds(10))
      if try await body(client, Int(rounds)) { break }
      try await Task.sleep(for: .milliseconds(10))
    }
    try await client.close()
    await listener.stop()
  }

  @Test func audioBetweenFramesIsReadWithTheNextFrame() async throws {
    let gate = RecordingGate()
    var inARow = 0
    try await publish(to: gate) { client, round in
      let before = gate.sinks.first?.samples.count ?? 0
      try await client.send(S.audio(S.aacFrame, UInt32(round) * 40 + 10))
      try await Task.sleep(for: .milliseconds(15))
      inARow = before > 0 && gate.sinks.first?.samples.count == before ? inARow + 1 : 0
      return inARow == 5
    }
    #expect(inARow == 5)
    // The last one, behind which no frame came.
    let sink = try #require(gate.sinks.first)
    #expect(sink.samples.last?.track == .audio)
  }

  @Test func audioIsReadAtOnceForWhoGetsSamplesAsTheyCome() async throws {
    let gate = RecordingGate()
    var waited = 0
    try await publish(to: gate) { client, round in
      gate.sinks.first?.passSamplesOn()
      let before = gate.sinks.first?.samples.count ?? 0
      try await client.send(S.audio(S.aacFrame, UInt32(round) * 40 + 10))
      try await Task.sleep(for: .milliseconds(15))
      if before > 0, gate.sinks.first?.samples.count == before { waited += 1 }
      return round == 100
    }
    #expect(waited < 20, "of 100, half of which came after frames had been even for long enough")
  }

  @Test func whatWaitsInVainIsReadAfterAMoment() async throws {
    let gate = RecordingGate()
    try await publish(to: gate) { client, round in
      if round == 1 { try await client.send(S.audio(S.aacFrame, UInt32(round) * 40 + 10)) }
      guard round == 100 else { return false }
      let before = gate.sinks.first?.samples.count ?? 0
      try await client.send(S.audio(S.aacFrame, UInt32(round) * 40 + 10))
      for _ in 0..<200 where gate.sinks.first?.samples.count == before { try await Task.sleep(for: .milliseconds(10)) }
      #expect(gate.sinks.first?.samples.count == before + 1)
      try await client.send(S.command([.string("deleteStream"), .number(0), .null, .number(1)]))
      for _ in 0..<200 where gate.sinks.first?.ending == nil { try await Task.sleep(for: .milliseconds(10)) }
      #expect(gate.sinks.first?.ending == .finished)
      return true
    }
  }
}
