internal import Base
internal import FMP4
internal import LibAV
internal import Logging
internal import NIOCore
internal import Synchronization

/// Encodes a camera's frames on a thread, and watches that thread. An encoder that fails or stalls is abandoned. A new
/// one continues with a key frame, and the stream goes on.
final class EncoderWorker: Sendable {
  typealias Maker = @Sendable (QueuedFrame, Set<VideoEncoderName>) throws -> any FrameEncoding

  private let queue: FrameQueue
  private let sink: any EncodedFrameSink
  private let clock: SteadyClock
  private let logger: Logger
  private let figures: CaptureFigures
  private let make: Maker
  /// Nanoseconds on one frame after which an encoder is abandoned.
  private let patience: Int64
  private let keyFrame = KeyFrameRequest()

  /// Slow settings at large sizes take a second per frame.
  static let usualPatience: Int64 = 5_000_000_000
  private static let glance: Int64 = 200_000_000

  init(
    queue: FrameQueue, sink: any EncodedFrameSink, clock: SteadyClock, figures: CaptureFigures, logger: Logger,
    patience: Int64 = EncoderWorker.usualPatience, make: Maker? = nil
  ) {
    self.queue = queue
    self.sink = sink
    self.clock = clock
    self.figures = figures
    self.logger = logger
    self.patience = patience
    self.make =
      make ?? { first, avoided in
        try TimedVideoEncoder(first: first, except: avoided) { name, error in
          // With `auto`, missing hardware is normal. A requested encoder that fails is logged.
          if first.encoding.encoder == name || !name.isHardware {
            logger.warning("\(name.rawValue) does not work here, another encoder is taken: \(error)")
          }
        }
      }
  }

  /// Requests a key frame among the next frames.
  func refresh() { keyFrame.ask() }

  /// Encodes until the queue is closed, then outputs everything still in the encoder.
  func run() throws {
    var history = EncoderHistory()
    while true {
      let worker = Worker(self, avoided: history.avoided)
      try DedicatedThread.start(named: "weir-encoder") { worker.run() }
      guard let trouble = watch(worker) else { return }
      switch history.decide(on: trouble, of: worker.encoder, at: clock.monotonic()) {
      case .giveUp(let reason): throw EncoderLost(description: reason)
      case .rebuild:
        figures.update { $0.video?.encoderRestarts = history.rebuilt }
        logger.warning("\(trouble) and is restarted")
      }
    }
  }

  /// Waits for the worker's end. Nil if it has encoded everything.
  private func watch(_ worker: Worker) -> EncoderHistory.Trouble? {
    while true {
      worker.ended.wait(nanoseconds: Self.glance)
      switch worker.outcome {
      case .done: return nil
      case .failed(let reason): return .failed(reason)
      case .working:
        guard let busy = queue.busyFor, busy > patience else { continue }
        // It may have returned since the check.
        guard worker.abandon() else { continue }
        return .stalled(nanoseconds: busy)
      }
    }
  }

  struct EncoderLost: Error, CustomStringConvertible {
    let description: String
  }

  /// One thread. It uses one encoder after the other as sizes change.
  private final class Worker: Sendable {
    enum FirstError: Sendable {
      case working
      case done
      case failed(String)
    }

    private struct State {
      var outcome = FirstError.working
      var isAbandoned = false
      var encoder: VideoEncoderName?
    }

    let ended = CountingSemaphore()
    private let owner: EncoderWorker
    private let avoided: Set<VideoEncoderName>
    private let turn: FrameQueue.Turn
    private let state = Mutex(State())

    init(_ owner: EncoderWorker, avoided: Set<VideoEncoderName>) {
      self.owner = owner
      self.avoided = avoided
      turn = owner.queue.takeOver()
    }

    var outcome: FirstError { state.withLock { $0.outcome } }
    var encoder: VideoEncoderName? { state.withLock { $0.encoder } }

    /// Abandons the worker: its further output is ignored. False if it has ended meanwhile.
    func abandon() -> Bool {
      state.withLock { state in
        guard case .working = state.outcome else { return false }
        state.isAbandoned = true
        return true
      }
    }

    func run() {
      let outcome: FirstError
      do {
        try code()
        outcome = .done
      } catch {
        outcome = .failed("\(error)")
      }
      state.withLock { $0.outcome = outcome }
      ended.post()
    }

    private var isAbandoned: Bool { state.withLock { $0.isAbandoned } }

    private func code() throws {
      let sink = GuardedSink(sink: owner.sink) { self.isAbandoned }
      var coder: (any FrameEncoding)?
      while let item = owner.queue.pop(turn) {
        switch item {
        case .flush:
          try coder?.finish(sink)
          coder = nil
        case .frame(let frame):
          if let current = coder, !current.fits(frame) {
            try current.finish(sink)
            coder = nil
          }
          let current = try coder ?? begin(frame)
          coder = current
          let began = owner.clock.monotonic()
          try current.encode(frame, forcingKeyFrame: owner.keyFrame.take(now: began), sink)
          let took = owner.clock.monotonic() &- began
          owner.figures.update { $0.video?.count(codedIn: took) }
        }
        if isAbandoned { return }
      }
      if isAbandoned { return }
      try coder?.finish(sink)
    }

    private func begin(_ first: QueuedFrame) throws -> any FrameEncoding {
      let coder = try owner.make(first, avoided)
      state.withLock { $0.encoder = coder.encoder }
      owner.figures.update { $0.video?.encoder = coder.encoder.rawValue }
      return coder
    }
  }

  /// Drops everything once its encoder was abandoned.
  private struct GuardedSink: EncodedFrameSink {
    let sink: any EncodedFrameSink
    let isShut: @Sendable () -> Bool

    func describe(video codec: Codec, rotation: Rotation) {
      if !isShut() { sink.describe(video: codec, rotation: rotation) }
    }

    func video(
      presentation: MonotonicTime, decode: MonotonicTime, isSync: Bool, isDisposable: Bool, payload: ByteBuffer
    ) {
      guard !isShut() else { return }
      sink.video(
        presentation: presentation, decode: decode, isSync: isSync, isDisposable: isDisposable, payload: payload)
    }
  }
}
