package import Base
package import FMP4
internal import LibAV
package import Logging
package import Publishing
internal import Synchronization

/// The built-in publisher: a moving test pattern with frame number and time, and a flash and a beep at each second. It
/// is encoded by libx264 and libavcodec. For the server it is like any other publication, but it is never recorded.
///
/// Everything runs on one thread. At most one frame (with its audio) is in progress. A slow machine drops frames, and
/// nothing queues up.
package final class TestSource: MediaSource {
  package let name: StreamName
  private let settings: TestSourceSettings
  private let clock: SteadyClock
  private let publication: LocalPublication
  private let droppedFrames = Atomic<Int64>(0)
  private let keyFrame: KeyFrameRequest
  private let figures = CaptureFigures()

  package init(
    name: StreamName, settings: TestSourceSettings = TestSourceSettings(), gate: any PublishGate, clock: SteadyClock,
    logger: Logger
  ) {
    self.name = name
    self.settings = settings
    self.clock = clock
    let keyFrame = KeyFrameRequest()
    self.keyFrame = keyFrame
    publication = LocalPublication(
      name: name, kind: .test, gate: gate, logger: logger, keyFrameInterval: settings.keyFrameTime
    ) { keyFrame.ask() }
    var video = CaptureStatus.Video(device: "test pattern")
    video.mode = "\(settings.width)×\(settings.height)"
    video.state = .running
    video.encoder = VideoEncoderName.x264.rawValue
    figures.update { $0.video = video }
  }

  /// Frames dropped so far because the machine was too slow.
  package var dropped: Int64 { droppedFrames.load(ordering: .relaxed) }

  package var status: CaptureStatus? { figures.status }

  /// Publishes until `stop` is called, the task is cancelled, the server ends the publication, or the frame limit is
  /// reached. Returns the reason once the thread has ended. Call it once.
  @discardableResult
  package func run() async -> EndReason {
    await publication.run {
      try CaptureLibrary.require()
      let outcome = FirstError()
      try await DedicatedThread.run(named: "weir-test") { outcome.keep { try self.produce() } }
      try outcome.get()
    }
  }

  /// Ends the publication within one frame's time; then `run` returns.
  package func stop(_ reason: EndReason) { publication.stop(reason) }

  /// Supports only requests for key frames; it has no devices.
  package func change(_ change: CaptureChange) -> CaptureRefusal? {
    guard case .keyFrame = change else { return .isNoCapture }
    guard !publication.isEnding else { return .hasEnded }
    keyFrame.ask()
    return nil
  }

  // MARK: On the source's own thread

  private func produce() throws {
    // Starts at a whole millisecond, so that the times in playlists are exact (`TestPatternFile`).
    let wallStart = WallTime(nanoseconds: (clock.wallTime.nanoseconds &+ 999_999) / 1_000_000 &* 1_000_000)
    let media = try TestMedia(settings: settings, wallStart: wallStart)
    let (width, height) = (settings.width, settings.height)
    publication.logger.notice(
      "publishing a test pattern \(width)×\(height), \(settings.videoBitRate / 1000) kbit/s")
    var pacer = FramePacer(start: clock.reading.monotonicTime(at: wallStart), rate: settings.frameRate)
    try makeFrames(media, &pacer)
    try media.finish(publication.give)
  }

  private func makeFrames(_ media: TestMedia, _ pacer: inout FramePacer) throws {
    var made: Int64 = 0
    while !publication.isEnding, settings.frameLimit.map({ made < $0 }) ?? true {
      switch step(&pacer, made) {
      case .wait(let nanoseconds):
        DedicatedThread.sleep(nanoseconds: nanoseconds)
        continue
      case .frame(let frame):
        let began = clock.monotonic()
        if keyFrame.take(now: began) { media.refresh() }
        try media.advance(to: frame, publication.give)
        let took = clock.monotonic() &- began
        figures.update { $0.video?.count(codedIn: took) }
      case .frameAfterBreak(let frame):
        publication.logger.warning("the test pattern was interrupted and continues with frame \(frame)")
        media.breakTimeline(before: frame, publication.give)
        try media.advance(to: frame, publication.give)
      }
      made += 1
      tellDrops(pacer.dropped)
    }
  }

  private func step(_ pacer: inout FramePacer, _ made: Int64) -> FramePacer.Step {
    switch settings.pacing {
    case .realTime: pacer.step(now: clock.monotonic())
    case .unpaced: .frame(made)
    }
  }

  /// Logs the 1st, 10th, 100th … dropped frame: soon at first, and rarely on a machine that is always too slow.
  private func tellDrops(_ dropped: Int64) {
    let before = droppedFrames.exchange(dropped, ordering: .relaxed)
    guard dropped != before else { return }
    figures.update { $0.video?.leftOut = dropped }
    guard String(dropped).count > (before == 0 ? 0 : String(before).count) else { return }
    publication.logger.warning(
      "the test pattern dropped \(dropped) of its frames so far: this machine is too busy; free a core for it")
  }
}
