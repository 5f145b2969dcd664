package import Base
package import FMP4
package import Logging
package import Publishing

/// A still picture as a publisher: an endless loop of coded media, paced by the steady clock. Nothing is encoded while
/// it runs.
package final class StillSource: MediaSource {
  package let name: StreamName
  private let picture: StillPicture
  private let clock: SteadyClock
  private let publication: LocalPublication

  package init(
    name: StreamName, picture: StillPicture, gate: any PublishGate, clock: SteadyClock, logger: Logger
  ) {
    self.name = name
    self.picture = picture
    self.clock = clock
    publication = LocalPublication(
      name: name, kind: .file, gate: gate, logger: logger, keyFrameInterval: StillPicture.keyFrameInterval)
  }

  /// Publishes until `stop` is called, the task is cancelled, or the server ends the publication. Returns the reason
  /// once the thread has ended. Call it once.
  @discardableResult
  package func run() async -> EndReason {
    await publication.run {
      try await DedicatedThread.run(named: "weir-still") { self.play() }
    }
  }

  /// Ends the publication within one frame's time; then `run` returns.
  package func stop(_ reason: EndReason) { publication.stop(reason) }

  // MARK: On the source's own thread

  private func play() {
    let words = picture.tracks.map(\.summary).joined(separator: ", ")
    publication.logger.notice("publishing a still picture: \(words)")
    let start = clock.monotonic()
    var loop = StillLoop(picture, start: start)
    publication.give(.clock(WallClockAnchor(mediaTime: .zero, wallTime: clock.reading.wallTime(at: start))))
    publication.give(.tracks(picture.tracks))
    while !publication.isEnding {
      switch loop.step(now: clock.monotonic()) {
      case .wait(let nanoseconds): DedicatedThread.sleep(nanoseconds: nanoseconds)
      case .samples(let samples): give(samples)
      case .samplesAfterBreak(let samples):
        publication.logger.warning("the still picture was interrupted and continues")
        publication.give(.discontinuity)
        give(samples)
      }
    }
  }

  private func give(_ samples: [Sample]) {
    for sample in samples where !publication.isEnding { publication.give(.sample(sample)) }
  }
}
