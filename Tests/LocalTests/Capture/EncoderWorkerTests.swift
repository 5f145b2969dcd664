import Base
import FMP4
@testable import LibAV
@testable import Local
import Logging
import NIOCore
import Support
import Synchronization
import Testing

@Suite struct EncoderHistoryTests {
  private static let second: Int64 = 1_000_000_000

  @Test func aFirstTroubleIsChanceAndASecondOneTakesAnotherEncoder() {
    var history = EncoderHistory()
    #expect(history.decide(on: .failed("x"), of: .h264VAAPI, at: 0) == .rebuild)
    #expect(history.avoided.isEmpty)
    #expect(history.decide(on: .stalled(nanoseconds: 1), of: .h264VAAPI, at: .at(Self.second)) == .rebuild)
    #expect(history.avoided == [.h264VAAPI] && history.rebuilt == 2)
  }

  @Test func troublesAMinuteApartGoOnForEverAndFiveWithinOneEndIt() {
    var history = EncoderHistory()
    for minute in 0..<20 {
      #expect(history.decide(on: .failed("x"), of: .x264, at: .at(Int64(minute) * 61 * Self.second)) == .rebuild)
    }
    history = EncoderHistory()
    for count in 1...4 { #expect(history.decide(on: .failed("x"), of: .x264, at: .at(Int64(count))) == .rebuild) }
    #expect(
      history.decide(on: .failed("out of memory"), of: .x264, at: 5)
        == .giveUp("the encoder failed (out of memory), for the 5th time within a minute"))
  }
}

@Suite struct EncoderWorkerTests {
  /// What came out: the times of frames, and which of them were key frames.
  private final class Output: EncodedFrameSink {
    let frames = Mutex<[(time: MonotonicTime, isSync: Bool)]>([])

    func describe(video codec: Codec, rotation: Rotation) {}
    func video(
      presentation: MonotonicTime, decode: MonotonicTime, isSync: Bool, isDisposable: Bool, payload: ByteBuffer
    ) {
      frames.withLock { $0.append((presentation, isSync)) }
    }
  }

  /// Gives out each frame as it came; the first of each coder is a key frame. At some times it gets into trouble.
  private final class FakeCoder: FrameEncoding {
    let encoder: VideoEncoderName
    private let trouble: [MonotonicTime: @Sendable () throws -> Void]
    private var hasBegun = false

    init(_ encoder: VideoEncoderName = .x264, on trouble: [MonotonicTime: @Sendable () throws -> Void] = [:]) {
      self.encoder = encoder
      self.trouble = trouble
    }

    func fits(_ item: QueuedFrame) -> Bool { true }

    func encode(_ item: QueuedFrame, forcingKeyFrame: Bool, _ sink: any EncodedFrameSink) throws {
      try trouble[item.time]?()
      sink.video(
        presentation: item.time, decode: item.time, isSync: forcingKeyFrame || !hasBegun, isDisposable: false,
        payload: ByteBuffer(bytes: [1]))
      hasBegun = true
    }

    func finish(_ sink: any EncodedFrameSink) {
      sink.video(
        presentation: 1000, decode: 1000, isSync: false, isDisposable: false, payload: ByteBuffer(bytes: [1]))
    }
  }

  private struct Broken: Error {}

  private struct Setup {
    let output = Output()
    let clock = SteadyClock.system()
    let queue: FrameQueue
    let figures = CaptureFigures(CaptureStatus(video: CaptureStatus.Video(device: "fake")))

    init() { queue = FrameQueue(clock: clock) }

    func worker(patience: Int64 = 20_000_000_000, _ make: @escaping EncoderWorker.Maker) -> EncoderWorker {
      EncoderWorker(
        queue: queue, sink: output, clock: clock, figures: figures, logger: Logger(label: "test"), patience: patience,
        make: make)
    }

    /// Puts frames in as quickly as they are taken.
    func push(_ times: ClosedRange<Int64>) async throws {
      for time in times {
        let frame = QueuedFrame(
          image: try VideoFrame(width: 16, height: 16), time: .at(time),
          rate: try #require(FrameRate(numerator: 30, denominator: 1)), rotation: .none, encoding: VideoEncoding())
        _ = queue.push(frame)
        while !queue.isIdle { try await Task.sleep(for: .milliseconds(1)) }
      }
    }

    /// Runs the worker on its own thread while frames are put in; then closes.
    func run(_ worker: EncoderWorker, _ feed: @escaping @Sendable () async throws -> Void) async throws {
      let outcome = FirstError()
      async let running: Void = DedicatedThread.run(named: "encoder") { outcome.keep { try worker.run() } }
      try await feed()
      queue.close()
      try await running
      try outcome.get()
    }
  }

  @Test func everythingIsCodedAndTheEncoderIsEmptiedAtTheEnd() async throws {
    let setup = Setup()
    try await setup.run(setup.worker { _, _ in FakeCoder() }) { try await setup.push(1...5) }
    #expect(setup.output.frames.withLock { $0.map(\.time) } == [1, 2, 3, 4, 5, 1000])
    #expect(setup.figures.status.video?.coded == 5 && setup.figures.status.video?.encoder == "libx264")
  }

  @Test func anEncoderThatFailsIsReplacedAndGoesOnWithAKeyFrame() async throws {
    let setup = Setup()
    let worker = setup.worker { _, _ in FakeCoder(on: [3: { throw Broken() }]) }
    try await setup.run(worker) { try await setup.push(1...6) }
    let frames = setup.output.frames.withLock { $0 }
    #expect(frames.map(\.time) == [1, 2, 4, 5, 6, 1000])
    #expect(frames.filter(\.isSync).map(\.time) == [1, 4])
    #expect(setup.figures.status.video?.encoderRestarts == 1)
  }

  @Test func anEncoderThatDoesNotComeBackIsLeftBehindAndNotHeardLater() async throws {
    let setup = Setup()
    let release = CountingSemaphore()
    let worker = setup.worker(patience: 500_000_000) { _, _ in FakeCoder(on: [3: { release.wait() }]) }
    try await setup.run(worker) {
      try await setup.push(1...2)
      // Nothing waits for the third frame.
      try await setup.push(3...6)
      release.post()
      try await Task.sleep(for: .milliseconds(50))
    }
    let frames = setup.output.frames.withLock { $0 }
    #expect(frames.map(\.time) == [1, 2, 4, 5, 6, 1000])
    #expect(frames.filter(\.isSync).map(\.time) == [1, 4])
  }

  @Test func anEncoderThatKeepsFailingIsPassedOver() async throws {
    let setup = Setup()
    let worker = setup.worker { _, avoided in
      avoided.contains(.h264VAAPI)
        ? FakeCoder() : FakeCoder(.h264VAAPI, on: [2: { throw Broken() }, 4: { throw Broken() }])
    }
    try await setup.run(worker) { try await setup.push(1...6) }
    #expect(setup.output.frames.withLock { $0.map(\.time) } == [1, 3, 5, 6, 1000])
    #expect(setup.figures.status.video?.encoder == "libx264")
  }

  @Test func anEncoderThatNeverWorksEndsTheCapture() async throws {
    let setup = Setup()
    let worker = setup.worker { _, _ in throw Broken() }
    await #expect(throws: EncoderWorker.EncoderLost.self) {
      try await setup.run(worker) {
        for time in 1...30 as ClosedRange<Int64> {
          let frame = QueuedFrame(
            image: try VideoFrame(width: 16, height: 16), time: .at(time),
            rate: try #require(FrameRate(numerator: 30, denominator: 1)), rotation: .none, encoding: VideoEncoding())
          _ = setup.queue.push(frame)
          try await Task.sleep(for: .milliseconds(10))
        }
      }
    }
  }

  @Test func aKeyFrameComesWhenItIsAskedFor() async throws {
    let setup = Setup()
    let worker = setup.worker { _, _ in FakeCoder() }
    try await setup.run(worker) {
      try await setup.push(1...3)
      worker.refresh()
      try await setup.push(4...6)
    }
    #expect(setup.output.frames.withLock { $0.filter(\.isSync).map(\.time) } == [1, 4])
  }

  @Test func framesThatFindNoRoomAreLeftOutAndCounted() async throws {
    let setup = Setup()
    let image = try VideoFrame(width: 16, height: 16)
    let rate = try #require(FrameRate(numerator: 30, denominator: 1))
    let taken = try (1...10 as ClosedRange<Int64>).map { time in
      setup.queue.push(
        QueuedFrame(
          image: try image.shared(), time: .at(time), rate: rate, rotation: .none, encoding: VideoEncoding()))
    }
    #expect(taken.filter(\.self).count == FrameQueue.limit && setup.queue.dropped == 7)
  }

  @Test func anAbandonedEncoderTakesNothingMoreAndHoldsNothingUp() async throws {
    let setup = Setup()
    let queue = setup.queue
    let taken = Mutex<[Int: Int]>([:])
    let take: @Sendable (Int, FrameQueue.Turn) async throws -> Void = { number, turn in
      try await DedicatedThread.run(named: "taker") {
        while queue.pop(turn) != nil { taken.withLock { $0[number, default: 0] += 1 } }
      }
    }
    let first = queue.takeOver()
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await take(1, first) }
      try await setup.push(1...20)
      // It waits for the next one, as an encoder does that came back at the very moment at which it was given up.
      try await Task.sleep(for: .milliseconds(20))
      let second = queue.takeOver()
      group.addTask { try await take(2, second) }
      try await setup.push(21...30)
      queue.close()
      try await group.waitForAll()
    }
    #expect(taken.withLock { $0 } == [1: 20, 2: 10])
  }
}
