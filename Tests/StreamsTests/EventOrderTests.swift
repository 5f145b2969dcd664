import Base
@testable import Control
import FMP4
import Logging
import Publishing
@testable import Streams
import Support
import Testing

/// Effects of streams come after their events.
@Suite struct EventOrderTests {
  private let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

  private func kinds(_ log: EventLog) -> [EventKind] { log.page(after: 0, limit: 999).events.map(\.kind) }

  @Test func aPhaseIsSeenAfterItsEventIsWritten() async throws {
    let folder = try TemporaryFolder()
    let log = EventLog(clock: .system(), logger: logger)
    try log.begin(folder: folder.path)
    var settings = StreamSettings()
    settings.reconnectWindow = MediaTime(milliseconds: 0)
    let registry = StreamRegistry(
      settings: { [settings] _ in settings }, clock: .system(), logger: logger, events: log
    ) { _, _, _, _ in [] }
    let name = try #require(StreamName("cam"))
    var wanted: [EventKind] = []
    for round in 0..<20 {
      let sink = try await registry.admit(
        PublishRequest(stream: name, key: nil, protocolName: "RTMP", remoteAddress: "10.0.0.1:5") { _ in })
      #expect(kinds(log).last == .streamStarted, "the event is written before media may come")
      _ = sink.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
      for sample in SyntheticMedia.interleaved(seconds: 3) { #expect(sink.receive(.sample(sample)) == .accepted) }
      let stream = try #require(registry.stream(name))
      let isLost = round % 2 == 1
      _ = sink.receive(.end(isLost ? .connectionLost("reset") : .finished))
      wanted += isLost ? [.streamStarted, .streamInterrupted, .streamEnded] : [.streamStarted, .streamEnded]
      for _ in 0..<2000 where stream.status.phase != .ended {
        if stream.status.phase == .reconnecting {
          #expect(kinds(log).contains(.streamInterrupted))
          registry.tend()
        }
        try await Task.sleep(for: .microseconds(500))
      }
      #expect(stream.status.phase == .ended && kinds(log).last == .streamEnded)
    }
    #expect(kinds(log).filter(\.isOfLife) == wanted)
    await log.close()
  }

  @Test func aRestartTellsWhatBecameOfStreams() async throws {
    let folder = try TemporaryFolder()
    let first = EventLog(clock: .system(), logger: logger)
    try first.begin(folder: folder.path)
    first.tell(.streamStarted, of: "cam", epoch: "e1")
    first.tell(.streamStarted, of: "gone", epoch: "e2")
    first.tell(.streamStarted, of: "over", epoch: "e3")
    first.tell(.streamEnded, of: "over", epoch: "e3")
    await first.close()
    let second = EventLog(clock: .system(), logger: logger)
    try second.begin(folder: folder.path)
    let registry = StreamRegistry(
      settings: { _ in StreamSettings() }, clock: .system(), logger: logger, events: second
    ) { _, _, _, _ in [] }
    func entry(_ epoch: String) -> StreamStateEntry {
      StreamStateEntry(
        record: EpochRecord(
          epoch: epoch, startedAt: 1, availabilityStart: 2, targetDuration: 2, partTarget: nil, longestGroup: nil,
          promisesIndependence: true, nextSequenceNumber: 17, nextPeriod: 2, initVersion: 3, breaks: 1,
          mediaEnd: 34_567,
          knownEnd: 30_000, clockOffset: 7, listedFrom: 5),
        contract: StreamSettings().contract, writtenAt: SteadyClock.system().wallTime)
    }
    registry.resume([try #require(StreamName("cam")): entry("e1"), try #require(StreamName("over")): entry("e3")])
    await second.ticket.written()
    let told = second.page(after: 0, limit: 99).events.suffix(2)
    #expect(told.map(\.kind) == [.streamInterrupted, .streamEnded] && told.map(\.stream) == ["cam", "gone"])
    #expect(registry.all.map(\.name.description) == ["cam"], "a stream whose end was told does not go on")
    await second.close()
  }
}
