package import FMP4
package import Logging
internal import Synchronization

/// The built-in publisher: a moving test picture with number and time burned in, a flash and a beep at each second,
/// coded by libx264 and libavcodec. To the server it is a publication like any other, except that it is never
/// recorded.
///
/// Everything is made on one thread of its own. At most one picture (and its audio) is in the making; a machine that
/// is too slow leaves pictures out, and nothing queues up.
package final class TestSource: MediaSource {
  package let name: StreamName
  private let settings: TestSourceSettings
  private let clock: SteadyClock
  private let publication: LocalPublication
  private let droppedPictures = Atomic<Int64>(0)
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
    var picture = CaptureStatus.Picture(device: "test pattern")
    picture.mode = "\(settings.width)×\(settings.height)"
    picture.state = .running
    picture.encoder = VideoEncoderName.x264.rawValue
    figures.update { $0.picture = picture }
  }

  /// Pictures left out so far, because the machine was too slow.
  package var dropped: Int64 { droppedPictures.load(ordering: .relaxed) }

  package var status: CaptureStatus? { figures.status }

  /// Publishes until `stop` is called, the task is cancelled, the server ends the publication, or the picture limit
  /// is reached. Returns why it ended, once the thread has; to be called once.
  @discardableResult
  package func run() async -> EndReason {
    await publication.run {
      let outcome = FirstError()
      try await DedicatedThread.run(named: "weir-test") { outcome.keep { try self.produce() } }
      try outcome.get()
    }
  }

  /// Ends the publication within one picture's time; `run` returns then.
  package func stop(_ reason: EndReason) { publication.stop(reason) }

  /// A key frame can be asked of it; it has no devices.
  package func change(_ change: CaptureChange) -> CaptureRefusal? {
    guard case .keyFrame = change else { return .isNoCapture }
    guard !publication.isEnding else { return .hasEnded }
    keyFrame.ask()
    return nil
  }

  // MARK: On the source's own thread

  private func produce() throws {
    // From the next whole millisecond on: then what playlists say of its time is all there is to it (`TestPatternFile`).
    let wallStart = (clock.monotonicNanoseconds() &+ clock.wallOffset &+ 999_999) / 1_000_000 &* 1_000_000
    let start = wallStart &- clock.wallOffset
    let media = try TestMedia(settings: settings, wallStart: wallStart)
    let (width, height) = (settings.width, settings.height)
    publication.logger.notice(
      "publishing a test pattern \(width)×\(height), \(settings.videoBitRate / 1000) kbit/s")
    var pacer = FramePacer(start: start, rate: settings.frameRate)
    try makePictures(media, &pacer)
    try media.finish(publication.give)
  }

  private func makePictures(_ media: TestMedia, _ pacer: inout FramePacer) throws {
    var made: Int64 = 0
    while !publication.isEnding, settings.pictureLimit.map({ made < $0 }) ?? true {
      switch step(&pacer, made) {
      case .wait(let nanoseconds):
        DedicatedThread.sleep(nanoseconds: nanoseconds)
        continue
      case .picture(let picture):
        let began = clock.monotonicNanoseconds()
        if keyFrame.take(now: began) { media.refresh() }
        try media.advance(to: picture, publication.give)
        let took = clock.monotonicNanoseconds() &- began
        figures.update { $0.picture?.count(codedIn: took) }
      case .pictureAfterBreak(let picture):
        publication.logger.warning("the test pattern stood still and goes on with picture \(picture)")
        media.breakTimeline(before: picture, publication.give)
        try media.advance(to: picture, publication.give)
      }
      made += 1
      tellDrops(pacer.dropped)
    }
  }

  private func step(_ pacer: inout FramePacer, _ made: Int64) -> FramePacer.Step {
    switch settings.pacing {
    case .realTime: pacer.step(now: clock.monotonicNanoseconds())
    case .unpaced: .picture(made)
    }
  }

  /// Tells of the 1st, 10th, 100th … drop: soon at first, seldom on a machine that is always too slow.
  private func tellDrops(_ dropped: Int64) {
    let before = droppedPictures.exchange(dropped, ordering: .relaxed)
    guard dropped != before else { return }
    figures.update { $0.picture?.leftOut = dropped }
    guard String(dropped).count > (before == 0 ? 0 : String(before).count) else { return }
    publication.logger.warning(
      "the test pattern left out \(dropped) of its pictures so far: this machine is too busy; free a core for it")
  }
}
