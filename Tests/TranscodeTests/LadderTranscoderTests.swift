import Base
import FMP4
import Glibc
@testable import Local
import Logging
import NIOCore
import Support
import Synchronization
import Testing
@testable import Transcode

@Suite struct LadderTranscoderTests {
  private final class Log: Sendable {
    let events = Mutex<[TranscodeEvent]>([])

    func until(_ isMet: ([TranscodeEvent]) -> Bool) async throws {
      for _ in 0..<500 {
        if events.withLock({ isMet($0) }) { return }
        try await Task.sleep(for: .milliseconds(20))
      }
      Issue.record("it did not come in 10 s: \(events.withLock { $0.count }) events")
    }
  }

  private let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

  private func transcoder(_ log: Log, _ launcher: WorkerLauncher) throws -> LadderTranscoder {
    try LadderTranscoder(
      aim: .video([
        RungSpecification(shortSide: 720, bitRate: 3_000_000), RungSpecification(shortSide: 90, bitRate: 100_000),
      ]),
      launcher: launcher, logger: logger
    ) { events in log.events.withLock { $0 += events } }
  }

  private func media(count: Int64) throws -> (track: TrackDescription, samples: [Sample]) {
    let settings = TestSourceSettings(width: 320, height: 180, keyFrameInterval: 5, videoBitRate: 300_000)
    let media = try TestMedia(settings: settings, wallStart: PatternClock.wallStart)
    var track: TrackDescription?
    var samples: [Sample] = []
    for frame in 0..<count {
      try media.advance(to: frame) { event in
        switch event {
        case .tracks(let tracks): track = tracks.first { $0.kind == .video }
        case .sample(let sample) where sample.track == .video: samples.append(sample)
        default: break
        }
      }
    }
    return (try #require(track), samples)
  }

  @Test func rungsBelowTheSourceAreMadeWithTheSourcesTimes() async throws {
    let log = Log()
    let transcoder = try transcoder(log, WorkerThread.launcher())
    let (track, samples) = try media(count: 10)
    transcoder.use(track)
    for sample in samples { #expect(transcoder.feed(sample)) }
    #expect(transcoder.status.rungs == ["90p"], "the source is below the other one")
    // Who ends before a worker was there has no rungs.
    try await log.until { $0.contains { if case .track = $0 { true } else { false } } }
    transcoder.finish()
    try await log.until { $0.contains { if case .ended = $0 { true } else { false } } }
    let events = log.events.withLock { $0 }
    let made = events.compactMap { event -> Sample? in
      if case .frame(1, let sample) = event { return sample }
      return nil
    }
    #expect(made.map(\.decodeTime) == samples.map(\.decodeTime))
    #expect(made.map(\.isSync) == samples.map(\.isSync))
    let tracks = events.compactMap { event -> TrackDescription? in
      if case .track(1, let track) = event { return track }
      return nil
    }
    #expect(tracks.map(\.codec.codedSize?.width) == [160])
    #expect(tracks.map(\.timescale) == [track.timescale])
    #expect(transcoder.status.droppedFrames == 0)
  }

  @Test func aWorkerThatTalksNonsenseIsReplacedAndWhatItHadIsLost() async throws {
    let log = Log()
    let starts = Mutex(0)
    let launcher = WorkerThread.launcher { socket in
      let isFirst = starts.withLock { starts in
        starts += 1
        return starts == 1
      }
      guard isFirst else { return TranscodeWorker(descriptor: socket).run() }
      var byte = [UInt8](repeating: 0, count: 4096)
      while recv(socket, &byte, byte.count, 0) > 0 {
        let nonsense: [UInt8] = [0xff, 0xff, 0xff, 0xff, 0x00]
        _ = send(socket, nonsense, nonsense.count, Int32(MSG_NOSIGNAL))
      }
    }
    let transcoder = try transcoder(log, launcher)
    let (track, samples) = try media(count: 20)
    transcoder.use(track)
    for sample in samples[..<5] { _ = transcoder.feed(sample) }
    try await log.until { $0.contains { if case .lost = $0 { true } else { false } } }
    #expect(transcoder.status.restarts == 1)
    for sample in samples[5...] { _ = transcoder.feed(sample) }
    try await log.until { events in
      events.contains { event in
        if case .frame(1, let sample) = event { return sample.isSync }
        return false
      }
    }
    #expect(transcoder.status.worker == .running)
    transcoder.finish()
    try await log.until { $0.contains { if case .ended = $0 { true } else { false } } }
  }

  @Test func aWorkerThatHadNothingToDoForLongIsNotTakenForStuck() async throws {
    let log = Log()
    let transcoder = try transcoder(log, WorkerThread.launcher())
    let (track, samples) = try media(count: 10)
    transcoder.use(track)
    for sample in samples[..<5] { _ = transcoder.feed(sample) }
    transcoder.drain()
    try await log.until { events in
      events.contains { if case .frame(1, let sample) = $0 { sample.decodeTime > 0 } else { false } }
    }
    try await Task.sleep(for: .nanoseconds(TranscodeLimits.silence + 500_000_000))
    transcoder.use(track)
    try await Task.sleep(for: .milliseconds(500))
    for sample in samples[5...] { _ = transcoder.feed(sample) }
    transcoder.finish()
    try await log.until { $0.contains { if case .ended = $0 { true } else { false } } }
    #expect(transcoder.status.restarts == 0)
  }

  @Test func aBacklogThatIsTooLongIsGivenUpUpToTheNextKeyFrame() throws {
    let (track, samples) = try media(count: 1)
    let plan = try #require(
      TranscodePlan(source: track, ladder: [RungSpecification(shortSide: 90, bitRate: 100_000)]))
    var backlog = TranscodeBacklog()
    backlog.configure(plan)
    func frame(_ index: Int) -> TranscodeRequest.SourceFrame {
      TranscodeRequest.SourceFrame(
        presentationTime: Int64(index) * 1000, decodeTime: Int64(index) * 1000, isSync: index % 60 == 0, lateness: 0,
        payload: samples[0].payload)
    }
    for index in 0...91 { backlog.append(frame(index), now: 0) }
    #expect(backlog.discarded == 92, "more than three seconds wait")
    for index in 92...121 { backlog.append(frame(index), now: 0) }
    var left: [Int64] = []
    var nothingBefore: MediaTime?
    while let entry = backlog.next() {
      switch entry {
      case .configure: break
      case .drain(let time): nothingBefore = time
      case .frame(let frame): left.append(frame.presentationTime / 1000)
      }
    }
    #expect(left == [120, 121])
    #expect(nothingBefore == MediaTime(ticks: 119_001, timescale: track.timescale))
  }
}
