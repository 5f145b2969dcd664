package import FMP4
package import Logging
internal import Synchronization

/// The built-in publisher: a moving test picture with number and time burned in, a flash and a beep at each second,
/// coded by libx264 and libavcodec. To the server it is a publication like any other, except that it is never
/// recorded.
///
/// Everything is made on one thread of its own. At most one picture (and its sound) is in the making; a machine that
/// is too slow leaves pictures out, and nothing queues up.
package final class TestSource: MediaSource {
  package let name: StreamName
  private let settings: TestSourceSettings
  private let gate: any PublishGate
  private let clock: SteadyClock
  private let logger: Logger
  private let ending = Mutex<Ending?>(nil)
  private let droppedPictures = Atomic<Int64>(0)
  private let isKeyFrameWanted = Atomic(false)
  private let figures = CaptureFigures()

  /// How the source is to end.
  private enum Ending: Sendable {
    /// The sink hears why.
    case told(EndReason)
    /// The sink has closed already, and hears nothing more.
    case silent(EndReason)
  }

  package init(
    name: StreamName, settings: TestSourceSettings = TestSourceSettings(), gate: any PublishGate, clock: SteadyClock,
    logger: Logger
  ) {
    self.name = name
    self.settings = settings
    self.gate = gate
    self.clock = clock
    var logger = logger
    logger[metadataKey: "stream"] = "\(name)"
    self.logger = logger
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
  /// is reached. Returns once the thread has ended; to be called once.
  package func run() async {
    await withTaskCancellationHandler {
      await publish()
    } onCancel: {
      stop(.shutdown)
    }
  }

  private func publish() async {
    let sink: any MediaSink
    do throws(PublishRefusal) {
      sink = try await gate.admit(request)
    } catch {
      logger.error("the test source was refused: \(error.description)")
      return
    }
    do {
      try await DedicatedThread.run(named: "weir-test") { self.produce(into: sink) }
    } catch {
      fail("\(error)", sink)
    }
  }

  /// Ends the publication within one picture's time; `run` returns then.
  package func stop(_ reason: EndReason) {
    end(.told(reason))
  }

  private var request: PublishRequest {
    PublishRequest(
      stream: name, key: nil, protocolName: "test", remoteAddress: "this server", software: "weir test source",
      recording: .never, origin: .server,
      keyFrameInterval: MediaTime(
        ticks: Int64(settings.keyFrameInterval) * Int64(settings.frameRate.frameDuration),
        timescale: settings.frameRate.timescale),
      onKeyFrameWanted: { [weak self] in self?.isKeyFrameWanted.store(true, ordering: .relaxed) }
    ) { [weak self] reason in
      self?.end(.silent(reason))
    }
  }

  /// The first word counts.
  private func end(_ ending: Ending) {
    self.ending.withLock { if $0 == nil { $0 = ending } }
  }

  // MARK: On the source's own thread

  private func produce(into sink: any MediaSink) {
    // From the next whole millisecond on: then what playlists say of its time is all there is to it (`TestPatternFile`).
    let wallStart = (clock.monotonicNanoseconds() &+ clock.wallOffset &+ 999_999) / 1_000_000 &* 1_000_000
    let start = wallStart &- clock.wallOffset
    do {
      let media = try TestMedia(settings: settings, wallStart: wallStart)
      let (width, height) = (settings.width, settings.height)
      logger.notice("\(name): publishing a test pattern \(width)×\(height), \(settings.videoBitRate / 1000) kbit/s")
      var pacer = FramePacer(start: start, rate: settings.frameRate)
      try makePictures(media, &pacer, sink)
    } catch {
      fail("\(error)", sink)
    }
  }

  private func fail(_ reason: String, _ sink: any MediaSink) {
    logger.error("the test source failed: \(reason)")
    _ = sink.receive(.end(.failed(reason)))
  }

  private func makePictures(_ media: TestMedia, _ pacer: inout FramePacer, _ sink: any MediaSink) throws {
    let emit = { (event: MediaEvent) in self.give(event, to: sink) }
    var made: Int64 = 0
    while ending.withLock({ $0 }) == nil {
      if let limit = settings.pictureLimit, made >= limit {
        end(.told(.finished))
        break
      }
      if isKeyFrameWanted.exchange(false, ordering: .relaxed) { media.refresh() }
      switch step(&pacer, made) {
      case .wait(let nanoseconds):
        DedicatedThread.sleep(nanoseconds: nanoseconds)
        continue
      case .picture(let picture):
        let began = clock.monotonicNanoseconds()
        try media.advance(to: picture, emit)
        let took = clock.monotonicNanoseconds() &- began
        figures.update { $0.picture?.count(codedIn: took) }
      case .pictureAfterBreak(let picture):
        logger.warning("the test source stood still and goes on with picture \(picture)")
        media.breakTimeline(before: picture, emit)
        try media.advance(to: picture, emit)
      }
      made += 1
      tellDrops(pacer.dropped)
    }
    if case .told(let reason) = ending.withLock({ $0 }) {
      try media.finish(emit)
      if case .told = ending.withLock({ $0 }) { _ = sink.receive(.end(reason)) }
    }
  }

  private func step(_ pacer: inout FramePacer, _ made: Int64) -> FramePacer.Step {
    switch settings.pacing {
    case .realTime: pacer.step(now: clock.monotonicNanoseconds())
    case .unpaced: .picture(made)
    }
  }

  private func give(_ event: MediaEvent, to sink: any MediaSink) {
    if case .silent = ending.withLock({ $0 }) { return }
    if case .closed(let reason) = sink.receive(event) {
      logger.notice("the test source's publication was ended: \(reason)")
      ending.withLock { $0 = .silent(reason) }
    }
  }

  /// Tells of the 1st, 10th, 100th … drop: soon at first, seldom on a machine that is always too slow.
  private func tellDrops(_ dropped: Int64) {
    let before = droppedPictures.exchange(dropped, ordering: .relaxed)
    guard dropped != before else { return }
    figures.update { $0.picture?.leftOut = dropped }
    guard String(dropped).count > (before == 0 ? 0 : String(before).count) else { return }
    logger.warning(
      "the test source left out \(dropped) of its pictures so far: this machine is too busy; free a core for it")
  }
}
