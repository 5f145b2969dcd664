package import Base
package import FMP4
internal import Glibc
package import Logging
internal import NIOCore
internal import Synchronization

/// Makes the rungs of a stream's video, or its additional audio encoding, in a worker process. It starts, feeds and
/// watches the worker, and restarts it. `feed` never blocks: when the queue is full, frames are dropped. The rest runs
/// on its own thread.
package final class LadderTranscoder: Sendable {
  private let aim: TranscodeAim
  private let launcher: WorkerLauncher
  private let logger: Logger
  private let clock = SteadyClock.system()
  private let deliver: @Sendable ([TranscodeEvent]) -> Void
  let shared: Mutex<Shared>
  private let wake: WakePipe

  struct Shared: Sendable {
    var backlog = TranscodeBacklog()
    /// Track of the samples that are appended. Nil if it is not transcoded.
    var source: TrackDescription?
    var isFinishing = false
    /// Nothing is to come for a while: no worker is kept.
    var isResting = false
    /// Bytes on their way to the worker's socket.
    var sending = 0
    var status = TranscodeStatus()
    var changes = LogThrottle()
  }

  /// - Parameters:
  ///   - logger: names the stream.
  ///   - deliver: takes the output, on the transcoder's thread. It must not block.
  package init(
    aim: TranscodeAim, launcher: WorkerLauncher, logger: Logger,
    deliver: @escaping @Sendable ([TranscodeEvent]) -> Void
  ) throws {
    self.aim = aim
    self.launcher = launcher
    self.logger = logger
    self.deliver = deliver
    shared = Mutex(Shared())
    wake = try WakePipe()
    try DedicatedThread.start(named: "weir-ladder") { [self] in
      var session = TranscodeSession(host: self)
      session.run()
    }
  }

  /// Sets the track of the samples that follow. Nil if there is none.
  package func use(_ track: TrackDescription?) {
    shared.withLock { shared in
      let plan = track.flatMap { TranscodePlan(source: $0, aim: aim) }
      shared.source = plan?.source
      shared.isResting = false
      shared.status.rungs = plan.map { plan in plan.numbers.map { aim.names[$0] } } ?? []
      shared.backlog.drain()
      guard let plan else { return }
      shared.backlog.configure(plan)
      tell(plan, &shared)
    }
    wake.signal()
  }

  /// Takes the next access unit or audio frame. False if it is not transcoded. With it, `most` bytes may wait for the worker: beyond
  /// that everything up to the next key frame is dropped.
  package func feed(_ sample: Sample, most: Int = .max) -> Bool {
    let isWanted = shared.withLock { shared in
      guard shared.source?.id == sample.track, !shared.isFinishing else { return false }
      let before = shared.backlog.discarded
      shared.backlog.append(
        TranscodeRequest.SourceFrame(
          presentationTime: sample.decodeTime &+ Int64(sample.compositionOffset), decodeTime: sample.decodeTime,
          isSync: sample.isSync, lateness: 0, payload: sample.payload), now: clock.monotonic(),
        most: max(0, most - shared.sending))
      note(dropped: shared.backlog.discarded - before, &shared.status)
      return true
    }
    if isWanted { wake.signal() }
    return isWanted
  }

  /// Handles a break of the timeline: outputs everything fed so far. The next sample must be a key frame.
  package func drain() {
    shared.withLock { $0.backlog.drain() }
    wake.signal()
  }

  /// Handles a pause of any length: outputs everything fed so far, and ends the worker. The next `use` starts another one.
  package func rest() {
    shared.withLock { shared in
      shared.backlog.drain()
      shared.isResting = true
    }
    wake.signal()
  }

  /// Ends the input. `.ended` follows soon, after the last frame.
  package func finish() {
    shared.withLock { shared in
      shared.backlog.drain()
      shared.isFinishing = true
    }
    wake.signal()
  }

  package var status: TranscodeStatus { shared.withLock { $0.status } }

  /// Bytes that wait for the worker.
  package var waitingBytes: Int { shared.withLock { $0.backlog.bytes + $0.sending } }

  // MARK: For the session

  func startWorker() throws(WorkerFailure) -> RunningWorker { try launcher.start() }

  /// Waits until the worker can be read or written, or `wake` is signalled; at most `milliseconds`.
  func wait(for worker: Int32?, writing: Bool, milliseconds: Int32) {
    wake.wait(for: worker, writing: writing, milliseconds: milliseconds)
  }

  func give(_ events: [TranscodeEvent]) {
    if !events.isEmpty { deliver(events) }
  }

  func warn(_ text: String) { logger.warning("\(text)") }

  /// Logs the 1st, 10th, 100th … dropped frame: soon at first, and rarely on a machine that is always too slow.
  func note(dropped count: Int, _ status: inout TranscodeStatus) {
    guard count > 0 else { return }
    let before = status.droppedFrames
    status.droppedFrames += count
    guard String(status.droppedFrames).count > (before == 0 ? 0 : String(before).count) else { return }
    let (what, advice) =
      if case .audio = aim { ("audio frames", "free a core") } else { ("frames", "remove a rung or free a core") }
    warn("transcoding left out \(status.droppedFrames) \(what) so far: this machine is too busy; \(advice) for it")
  }

  /// Logs a change of the plan, at a limited rate: a publisher may change its video with each key frame.
  private func tell(_ plan: TranscodePlan, _ shared: inout Shared) {
    guard let untold = shared.changes.tells(now: clock.monotonic()) else { return }
    logger.notice("transcoding to \(plan.description)\(untold)")
  }
}

/// Lets a thread wait for a socket and for signals from other threads.
final class WakePipe: Sendable {
  private let reading: Int32
  private let writing: Int32

  init() throws {
    var ends: [Int32] = [-1, -1]
    guard pipe2(&ends, O_CLOEXEC | O_NONBLOCK) == 0 else { throw WorkerFailure("make a pipe", errno) }
    (reading, writing) = (ends[0], ends[1])
  }

  deinit {
    close(reading)
    close(writing)
  }

  /// Never blocks: if the pipe is full, the thread wakes anyway.
  func signal() {
    var byte: UInt8 = 1
    _ = write(writing, &byte, 1)
  }

  func wait(for socket: Int32?, writing isWriting: Bool, milliseconds: Int32) {
    var interest = [pollfd(fd: reading, events: Int16(POLLIN), revents: 0)]
    if let socket {
      interest.append(pollfd(fd: socket, events: Int16(POLLIN | (isWriting ? POLLOUT : 0)), revents: 0))
    }
    guard poll(&interest, nfds_t(interest.count), milliseconds) > 0, interest[0].revents != 0 else { return }
    var bytes = [UInt8](repeating: 0, count: 512)
    while read(reading, &bytes, bytes.count) == bytes.count {}
  }
}
