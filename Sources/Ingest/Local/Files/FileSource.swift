package import Base
package import FMP4
internal import LibAV
package import Logging
package import Publishing

/// A file of this machine as a publisher: demuxed but not decoded, and paced by the steady clock. At its end it begins
/// again without a gap in its times.
package final class FileSource: MediaSource {
  package let name: StreamName
  private let path: String
  private let clock: SteadyClock
  private let publication: LocalPublication

  /// Most video and audio frames that may be dropped before the first video frame.
  private static let mostBeforeFirst = 300

  package init(name: StreamName, path: String, gate: any PublishGate, clock: SteadyClock, logger: Logger) {
    self.name = name
    self.path = path
    self.clock = clock
    publication = LocalPublication(name: name, kind: .file, gate: gate, logger: logger)
  }

  @discardableResult
  package func run() async -> EndReason {
    await publication.run {
      try CaptureLibrary.require()
      let outcome = FirstError()
      try await DedicatedThread.run(named: "weir-file") { outcome.keep { try self.play() } }
      try outcome.get()
    }
  }

  package func stop(_ reason: EndReason) { publication.stop(reason) }

  // MARK: On the source's own thread

  private func play() throws {
    var file = try MediaFile(path)
    let words = file.tracks.map(\.description.summary).joined(separator: ", ")
    publication.logger.notice("publishing \(path) in a loop: \(words)")
    let start = clock.monotonic()
    var loop = FileLoop()
    var left = 0
    publication.give(.clock(WallClockAnchor(mediaTime: .zero, wallTime: clock.reading.wallTime(at: start))))
    publication.give(.tracks(file.tracks.map(\.description)))
    while !publication.isEnding {
      let reached = loop.end
      try pass(file, &loop, &left, start)
      loop.beginPass()
      guard publication.isEnding || loop.end != reached else { throw FileError.empty(path) }
      try checkVideo(file, loop)
      if publication.isEnding { return }
      // Opened again, so that each pass begins in the same state.
      let before = file.tracks.map(\.description)
      file = try MediaFile(path)
      let now = file.tracks.map(\.description)
      guard now.map(\.timescale) == before.map(\.timescale) else { throw FileError.changed(path) }
      if now != before { publication.give(.tracks(now)) }
    }
  }

  private func pass(_ file: MediaFile, _ loop: inout FileLoop, _ left: inout Int, _ start: MonotonicTime) throws {
    var waiting: [MediaFile.Unit] = []
    while !publication.isEnding {
      let unit = file.next()
      note(file, &left)
      if left >= Self.mostBeforeFirst { try checkVideo(file, loop) }
      guard let unit else { break }
      // The earliest time of any track is the file's beginning, so the first units are read before any is placed.
      if !loop.hasOrigin {
        waiting.append(unit)
        guard waiting.count >= FileLoop.longestLook || file.hasSeenAllTracks else { continue }
        loop.setOrigin(waiting)
        for unit in waiting { place(unit, &loop, start) }
        waiting = []
        continue
      }
      place(unit, &loop, start)
    }
    guard !waiting.isEmpty else { return }
    loop.setOrigin(waiting)
    for unit in waiting { place(unit, &loop, start) }
  }

  /// The video leads: audio would wait for it for ever.
  private func checkVideo(_ file: MediaFile, _ loop: FileLoop) throws(FileError) {
    guard !publication.isEnding, !loop.hasVideo, file.tracks[0].description.kind == .video else { return }
    throw .noUsableFrame(path)
  }

  /// Counts dropped frames and logs the 1st, 10th, 100th …: a damaged place returns with each pass.
  private func note(_ file: MediaFile, _ left: inout Int) {
    for kind in file.takeBroken() {
      publication.lost(kind)
      left += 1
      guard left == 1 || String(left).count > String(left - 1).count else { continue }
      let rest = file.rest.map { ", and the rest of the file with it (\($0))" } ?? ""
      publication.logger.warning("\(path) is damaged: \(left) of its video and audio frames were left out\(rest)")
    }
  }

  private func place(_ unit: MediaFile.Unit, _ loop: inout FileLoop, _ start: MonotonicTime) {
    guard let sample = loop.place(unit) else { return }
    let due = start &+ MediaTime(ticks: sample.decodeTime, timescale: unit.timescale).nanoseconds
    while !publication.isEnding {
      let wait = due &- clock.monotonic()
      if wait <= 0 { break }
      DedicatedThread.sleep(nanoseconds: wait)
    }
    if !publication.isEnding { publication.give(.sample(sample)) }
  }
}
