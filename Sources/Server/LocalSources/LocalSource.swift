internal import Base
package import FMP4
package import Local
package import Publishing
internal import Recording

/// A local source by its name. It can be started, taken off air and stopped while the server runs. Each run is a new
/// `MediaSource`, so the state of devices and encoders ends with the run.
package final class LocalSource: Sendable {
  /// Makes the source for the next run.
  /// |
  /// - Parameters:
  ///   - settings: the device settings at the end of the last run, so that changes persist. Nil before the first run and
  ///     without devices.
  ///   - gate: what it publishes through.
  package typealias Maker = @Sendable (_ settings: CaptureSettings?, _ gate: any PublishGate) -> any MediaSource

  /// The state of a source.
  package enum Activity: Sendable {
    /// Captured and on air, or about to be.
    case live
    /// Captured but not published.
    case preview
    /// Stopping: its devices are being closed.
    case stopping
    /// Its devices are closed. The reason; nil if the stop was requested.
    case stopped(EndReason?)
  }

  package let name: StreamName
  /// Its name in the API, also used as the protocol of the stream.
  package let kind: String
  private let requestedRecording: PublishRequest.RecordingMode
  private let make: Maker
  private let output: SourceOutput
  private let state = RankedMutex(.source, State())
  /// Yields when a run is due.
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
    /// Its newest recording, also after that has ended.
    var recording: SourceRecording?
    /// The server is stopping: nothing begins any more.
    var isOver = false
  }

  /// - Parameters:
  ///   - recording: `.never` for a source that must not be recorded.
  ///   - gate: where it is published while it is on air.
  package init(
    name: StreamName, kind: String, recording: PublishRequest.RecordingMode = .asConfigured, gate: any PublishGate,
    make: @escaping Maker
  ) {
    self.name = name
    self.kind = kind
    requestedRecording = recording
    self.make = make
    output = SourceOutput(gate: gate)
    (calls, caller) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    caller.yield()
  }

  // MARK: State

  package var activity: Activity {
    state.withLock { state in
      switch state.phase {
      case .due, .running, .stopping(_, startsAgain: true): output.isOnAir ? .live : .preview
      case .stopping: .stopping
      case .stopped(let reason): .stopped(reason)
      }
    }
  }

  /// Figures of capturing and encoding; nil without those, or if it does not run.
  package var status: CaptureStatus? { current?.status }

  /// State of its reception; nil if it receives nothing from a network, or does not run.
  package var reception: ReceptionStatus? { current?.reception }

  /// Its newest key frame, on air or off.
  package var keyFrame: SourceOutput.KeyFrame? { output.keyFrame }

  /// The tracks of its run; empty before they are known, and if it does not run.
  package var tracks: [TrackDescription] { current == nil ? [] : output.tracks }

  /// The present settings of its devices; nil without devices, or if it does not run.
  package var settings: CaptureSettings? { current?.settings }

  /// Changes the devices while it runs. Returns the reason if that is refused.
  package func change(_ change: CaptureChange) -> CaptureRefusal? {
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

  /// Captures and publishes, unless it does so already. If it cannot be published, returns the reason and changes nothing.
  package func start() async -> PublishRefusal? {
    if let refusal = await output.begin() { return refusal }
    open()
    return nil
  }

  /// Captures without publishing. If it is live, its stream ends and its devices stay open.
  package func preview() {
    output.end()
    open()
  }

  /// Opens its devices unless they are open. A source that is being stopped starts again afterwards.
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

  /// Ends its stream as finished and closes its devices, soon.
  package func stop() {
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

  /// The server is stopping: ends the run, and begins nothing any more.
  func shutDown() {
    state.withLock { $0.isOver = true }
    current?.stop(.shutdown)
    caller.finish()
  }

  // MARK: Recording

  /// Its newest recording; nil before the first.
  package var recording: SourceRecording? { state.withLock { $0.recording } }

  /// Records from its next key frame on, on air and off, until the recording is ended or the source stops. If the source does not
  /// run, its devices are opened without publishing. `makeRecording` is called if recording is possible.
  func record(_ makeRecording: () -> SourceRecording) -> RecordingAnswer {
    state.withLock { state in
      if requestedRecording == .never { return .refused(.neverRecorded) }
      if state.recording?.isActive == true { return .refused(.alreadyRecording) }
      switch state.phase {
      case .stopping: return .refused(.isStopping)
      case .due, .running: break
      case .stopped:
        output.end()
        state.phase = .due
      }
      let recording = makeRecording()
      state.recording = recording
      output.record(recording)
      if case .due = state.phase { caller.yield() }
      return .done
    }
  }

  /// Ends its recording by calling `end`, which returns whether there was one. The devices and the stream go on.
  func endRecording(_ end: (SourceRecording) -> Bool) -> RecordingAnswer {
    guard let recording = state.withLock({ $0.recording }) else { return .refused(.notRecording) }
    output.leave(recording)
    return end(recording) ? .done : .refused(.notRecording)
  }

  // MARK: Watching

  /// Its film, which `make` makes if none runs; nil if the source does not run.
  func watch(_ make: () -> SourceFilm) -> SourceFilm? { output.watch(make) }

  // MARK: Running

  /// Runs the source each time it is started, until `shutDown`.
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
      // With the lock held, so that no recording begins for a run that has ended.
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
