internal import Basics
internal import FMP4
internal import Ingest

/// One of the server's own sources by its name, which is started, taken off the air and stopped while the server runs. Each
/// run is a `MediaSource` of its own: what a device or an encoder left behind ends with it.
final class LocalSource: Sendable {
  /// Makes what runs next.
  ///
  /// - Parameters:
  ///   - settings: of its devices when it last ran, where it has run and has any: what was switched stays switched.
  ///   - gate: what it publishes through.
  typealias Maker = @Sendable (_ settings: CaptureSettings?, _ gate: any PublishGate) -> any MediaSource

  /// What it does.
  enum Activity: Sendable {
    /// Captured and on air, or about to be.
    case live
    /// Captured, and offered to nobody.
    case preview
    /// Asked to stop; its devices are being closed.
    case stopping
    /// Its devices are closed. Why it ended; nil where that was asked for.
    case stopped(EndReason?)
  }

  let name: StreamName
  /// As the API calls it, and the stream's protocol.
  let kind: String
  private let recordingWish: PublishRequest.RecordingWish
  private let make: Maker
  private let output: SourceOutput
  private let state = RankedMutex(.source, State())
  /// Says that something is to be run.
  private let calls: AsyncStream<Void>
  private let caller: AsyncStream<Void>.Continuation

  private struct State {
    enum Phase {
      case due
      case running(any MediaSource)
      case stopping(any MediaSource, startsAgain: Bool)
      case stopped(EndReason?)
    }

    var phase = Phase.due
    var settings: CaptureSettings?
    /// The newest recording of it, also when that is over.
    var take: SourceRecording?
    /// The server is stopping: nothing begins any more.
    var isOver = false
  }

  /// - Parameters:
  ///   - recording: `.never` for what nobody may record.
  ///   - gate: where it is published when it is on air.
  init(
    name: StreamName, kind: String, recording: PublishRequest.RecordingWish = .asConfigured, gate: any PublishGate,
    make: @escaping Maker
  ) {
    self.name = name
    self.kind = kind
    recordingWish = recording
    self.make = make
    output = SourceOutput(gate: gate)
    (calls, caller) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    caller.yield()
  }

  // MARK: What it does

  var activity: Activity {
    state.withLock { state in
      switch state.phase {
      case .due, .running, .stopping(_, startsAgain: true): output.isOnAir ? .live : .preview
      case .stopping: .stopping
      case .stopped(let reason): .stopped(reason)
      }
    }
  }

  /// What it captures and encodes, in figures; nil where it does neither, or does not run.
  var status: CaptureStatus? { current?.status }

  /// Its newest key frame, on air or off.
  var keyFrame: SourceOutput.KeyFrame? { output.keyFrame }

  /// What is asked of its devices now; nil where it has none, or does not run.
  var settings: CaptureSettings? { current?.settings }

  /// Asks something of it while it runs; the reason where it does not do it.
  func change(_ change: CaptureChange) -> CaptureRefusal? {
    guard let current else { return .hasEnded }
    return current.change(change)
  }

  private var current: (any MediaSource)? {
    state.withLock { state in
      switch state.phase {
      case .running(let source), .stopping(let source, _): source
      case .due, .stopped: nil
      }
    }
  }

  // MARK: Starting and stopping

  /// Captures and publishes, unless it does so already. Returns why it cannot be published; then it stays what it was.
  func start() async -> PublishRefusal? {
    if let refusal = await output.begin() { return refusal }
    open()
    return nil
  }

  /// Captures and publishes nothing: where it is live its stream ends, and its devices stay open.
  func preview() {
    output.end()
    open()
  }

  /// Opens its devices, unless they are open; what is being stopped starts again afterwards.
  private func open() {
    state.withLock { state in
      switch state.phase {
      case .due, .running: break
      case .stopping(let source, _): state.phase = .stopping(source, startsAgain: true)
      case .stopped:
        state.phase = .due
        caller.yield()
      }
    }
  }

  /// Ends its stream as a publisher does that says so, and closes its devices, soon.
  func stop() {
    let source = state.withLock { state -> (any MediaSource)? in
      switch state.phase {
      case .due: state.phase = .stopped(nil)
      case .running(let source):
        state.phase = .stopping(source, startsAgain: false)
        return source
      case .stopping(let source, _): state.phase = .stopping(source, startsAgain: false)
      case .stopped: break
      }
      return nil
    }
    source?.stop(.finished)
  }

  /// The server stops: ends what runs, and begins nothing any more.
  func shutDown() {
    state.withLock { $0.isOver = true }
    current?.stop(.shutdown)
    caller.finish()
  }

  // MARK: Recording

  /// Its newest recording; nil before the first.
  var recorder: Recorder? { state.withLock { $0.take }?.recorder }

  /// Records what it captures from its next key frame on, on air and off, until that is ended or it stops. Where it does not
  /// run its devices are opened for that, and nobody is offered anything. `makeTake` is called if it can be.
  func record(_ makeTake: () -> SourceRecording) -> RecordingAnswer {
    state.withLock { state in
      if recordingWish == .never { return .refused(.neverRecorded) }
      if state.take?.isActive == true { return .refused(.alreadyRecording) }
      switch state.phase {
      case .stopping: return .refused(.isStopping)
      case .due, .running: break
      case .stopped:
        output.end()
        state.phase = .due
      }
      let take = makeTake()
      state.take = take
      output.record(take)
      if case .due = state.phase { caller.yield() }
      return .done
    }
  }

  /// Ends its recording as `end` does, which says whether there was one; its devices and its stream go on.
  func endRecording(_ end: (SourceRecording) -> Bool) -> RecordingAnswer {
    guard let take = state.withLock({ $0.take }) else { return .refused(.notRecording) }
    output.leave(take)
    return end(take) ? .done : .refused(.notRecording)
  }

  // MARK: Running

  /// Runs it as often as it is started, until `shutDown`.
  func run() async {
    for await _ in calls {
      while let source = begin() { end(await source.run(), source) }
    }
  }

  private func begin() -> (any MediaSource)? {
    state.withLock { state in
      guard !state.isOver, case .due = state.phase else { return nil }
      let source = make(state.settings, output)
      state.phase = .running(source)
      return source
    }
  }

  private func end(_ reason: EndReason, _ source: any MediaSource) {
    state.withLock { state in
      // With the lock held, so that no recording begins of what is over.
      output.finishRun(reason)
      state.settings = source.settings
      state.phase =
        switch state.phase {
        case .stopping(_, startsAgain: true): .due
        case .stopping: .stopped(nil)
        case .due, .running, .stopped: .stopped(reason)
        }
    }
  }
}
