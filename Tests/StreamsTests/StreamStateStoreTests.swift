import Base
import FMP4
import Glibc
import Logging
import Publishing
@testable import Streams
import StreamSupport
import Support
import Testing

@Suite struct StreamStateStoreTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func stateStore(at wall: WallTime = EpochDriver.wall) -> StreamStateStore {
    StreamStateStore(
      folder: folder.path, clock: SteadyClock(ClockReading(wall: wall, monotonic: 0)) { 0 },
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
  }

  private let record = EpochRecord(
    epoch: "mws4qh7d", startedAt: 1, availabilityStart: 2, targetDuration: 2,
    partTarget: MediaTime(ticks: 6, timescale: 30), longestGroup: nil, promisesIndependence: true,
    nextSequenceNumber: 17, nextPeriod: 2, initVersion: 3, breaks: 1, mediaEnd: 34_567,
    knownEnd: 30_000, clockOffset: 7, listedFrom: 5)

  private func name(_ text: String) throws -> StreamName { try #require(StreamName(text)) }

  @Test func whatWasNotedIsThereForTheNextProcess() async throws {
    let first = stateStore()
    #expect(try first.begin { _ in StreamSettings() }.isEmpty)
    first.note(record, contract: "p", of: try name("cam"))
    first.note(record, contract: "p", of: try name("gone"))
    first.forget(try name("gone"))
    await first.close()
    let second = stateStore(at: EpochDriver.wall + 5_000_000_000)
    let found = try second.begin { _ in StreamSettings() }
    #expect(found == [try name("cam"): StreamStateEntry(record: record, contract: "p", writtenAt: EpochDriver.wall)])
    await second.close()
  }

  @Test func aStreamThatEndedDoesNotGoOnInTheNextProcess() async throws {
    let first = stateStore()
    _ = try first.begin { _ in StreamSettings() }
    let registry = StreamRegistry(
      settings: { _ in StreamSettings() }, clock: SteadyClock(ClockReading(wall: EpochDriver.wall, monotonic: 0)) { 0 },
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, stateStore: first
    ) { _, _, _, _ in [] }
    for (text, reason) in [("ended", EndReason.finished), ("lost", .connectionLost("reset"))] {
      let sink = try await registry.admit(
        PublishRequest(stream: try name(text), key: nil, protocolName: "RTMP", remoteAddress: "10.0.0.1:5") { _ in })
      _ = sink.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: EpochDriver.wall)))
      _ = sink.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
      for sample in SyntheticMedia.interleaved(seconds: 5) { #expect(sink.receive(.sample(sample)) == .accepted) }
      _ = sink.receive(.end(reason))
    }
    await first.close()
    let second = stateStore()
    #expect(try second.begin { _ in StreamSettings() }.keys.map(\.description) == ["lost"])
    await second.close()
  }

  /// The first playlist of its next publisher need not wait for a second key frame, also after a restart.
  @Test func theDistanceOfKeyFramesOutlivesTheStreamAndTheProcess() async throws {
    func registry(_ store: StreamStateStore) -> StreamRegistry {
      StreamRegistry(
        settings: { _ in StreamSettings() },
        clock: SteadyClock(ClockReading(wall: EpochDriver.wall, monotonic: 0)) { 0 },
        logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, stateStore: store
      ) { _, _, _, _ in [] }
    }
    func admit(_ registry: StreamRegistry) async throws -> any MediaSink {
      try await registry.admit(
        PublishRequest(stream: try name("cam"), key: nil, protocolName: "RTMP", remoteAddress: "10.0.0.1:5") { _ in })
    }
    let first = stateStore()
    _ = try first.begin { _ in StreamSettings() }
    let before = registry(first)
    let sink = try await admit(before)
    #expect(before.stream(try name("cam"))?.knownGroup == nil)
    _ = sink.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: EpochDriver.wall)))
    _ = sink.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
    for sample in SyntheticMedia.interleaved(seconds: 5) { #expect(sink.receive(.sample(sample)) == .accepted) }
    _ = sink.receive(.end(.finished))
    let measured = try #require(before.stream(try name("cam"))?.knownGroup)
    await first.close()

    let second = stateStore(at: EpochDriver.wall + 3_600_000_000_000)
    #expect(try second.begin { _ in StreamSettings() }.isEmpty)
    let after = registry(second)
    after.know(second.groups)
    _ = try await admit(after)
    #expect(after.stream(try name("cam"))?.knownGroup == measured)
    await second.close()
  }

  @Test func theNewestDistancesAreKept() async throws {
    let first = stateStore()
    _ = try first.begin { _ in StreamSettings() }
    var known = record
    for number in 0...KnownGOPDurations.limit {
      known.longestGroup = MediaTime(milliseconds: Int64(1000 + number))
      first.note(known, contract: "p", of: try name("cam\(number)"))
    }
    // One that changes often costs no other name its place.
    for length in 7...60 {
      known.longestGroup = MediaTime(milliseconds: Int64(length % 2 == 0 ? 7 : length))
      first.note(known, contract: "p", of: try name("cam500"))
    }
    await first.close()
    let second = stateStore()
    _ = try second.begin { _ in StreamSettings() }
    #expect(second.groups[try name("cam0")] == nil)
    #expect(second.groups[try name("cam1")] == MediaTime(milliseconds: 1001))
    #expect(second.groups[try name("cam1000")] == MediaTime(milliseconds: 2000))
    #expect(second.groups[try name("cam500")] == MediaTime(milliseconds: 7))
    await second.close()
  }

  @Test func ofEachStreamTheNewestCounts() async throws {
    let first = stateStore()
    _ = try first.begin { _ in StreamSettings() }
    var newest = record
    for number in 1...500 {
      newest.nextSequenceNumber = number
      first.note(newest, contract: "p", of: try name("cam"))
    }
    await first.close()
    let second = stateStore()
    #expect(try second.begin { _ in StreamSettings() }.values.map(\.record.nextSequenceNumber) == [500])
    await second.close()
  }

  @Test func whatIsTooOldIsForgotten() async throws {
    let first = stateStore()
    _ = try first.begin { _ in StreamSettings() }
    first.note(record, contract: "p", of: try name("cam"))
    await first.close()
    // The reconnect window and a segment.
    let late = stateStore(at: EpochDriver.wall + 34_000_000_000)
    #expect(try late.begin { _ in StreamSettings() }.isEmpty)
    await late.close()
    let later = stateStore()
    #expect(try later.begin { _ in StreamSettings() }.isEmpty)
    await later.close()
  }

  @Test func aStreamThatNothingEndsIsNeverTooOld() async throws {
    let first = stateStore()
    _ = try first.begin { _ in StreamSettings() }
    var held = record
    held.isHeld = true
    first.note(held, contract: "p", of: try name("held"))
    first.note(record, contract: "p", of: try name("open"))
    await first.close()
    let later = stateStore(at: EpochDriver.wall + 30 * 86_400_000_000_000)
    let found = try later.begin { _ in StreamSettings { $0.end = .never } }
    #expect(found.mapValues(\.record.isHeld) == [try name("held"): true])
    await later.close()
  }

  @Test func twoServersDoNotShareOne() async throws {
    let first = stateStore()
    _ = try first.begin { _ in StreamSettings() }
    let second = stateStore()
    #expect(throws: (any Error).self) { try second.begin { _ in StreamSettings() } }
    await first.close()
    #expect(try second.begin { _ in StreamSettings() }.isEmpty)
    await second.close()
  }

  @Test func aDamagedFileIsMadeAnew() async throws {
    let path = folder.path + "/" + StreamStateDatabase.fileName
    let file = try #require(fopen(path, "w"))
    for _ in 0..<1000 { fputs("no database at all, ", file) }
    fclose(file)
    let stateStore = stateStore()
    #expect(try stateStore.begin { _ in StreamSettings() }.isEmpty)
    stateStore.note(record, contract: "p", of: try name("cam"))
    await stateStore.close()
    let second = self.stateStore()
    #expect(try second.begin { _ in StreamSettings() }.count == 1)
    await second.close()
  }

  /// Version 4 had no init segments, version 5 did not know which names are held.
  @Test(arguments: [
    "ALTER TABLE stream DROP COLUMN isHeld; ALTER TABLE stream DROP COLUMN inits; PRAGMA user_version = 4;",
    "ALTER TABLE stream DROP COLUMN isHeld; PRAGMA user_version = 5;",
  ])
  func whatAnEarlierVersionKeptGoesOn(change: String) async throws {
    let first = stateStore()
    _ = try first.begin { _ in StreamSettings() }
    var known = record
    known.longestGroup = MediaTime(ticks: 60, timescale: 30)
    first.note(known, contract: "p", of: try name("cam"))
    await first.close()
    #expect(system("sqlite3 '\(folder.path)/\(StreamStateDatabase.fileName)' '\(change)'") == 0)
    for _ in 0..<2 {
      let next = stateStore()
      let found = try next.begin { _ in StreamSettings() }
      #expect(found == [try name("cam"): StreamStateEntry(record: known, contract: "p", writtenAt: EpochDriver.wall)])
      #expect(next.groups[try name("cam")] == known.longestGroup)
      // It is written as before.
      next.note(known, contract: "p", of: try name("cam"))
      await next.close()
    }
  }

  @Test func rowsThatNoServerWroteAreLeftOut() async throws {
    let first = stateStore()
    _ = try first.begin { _ in StreamSettings() }
    var strange = record
    strange.epoch = "../../etc"
    first.note(strange, contract: "p", of: try name("a"))
    strange = record
    strange.nextSequenceNumber = -1
    first.note(strange, contract: "p", of: try name("b"))
    strange = record
    strange.mediaEnd = .max
    first.note(strange, contract: "p", of: try name("c"))
    first.note(record, contract: "p", of: try name("d"))
    await first.close()
    let second = stateStore()
    #expect(try second.begin { _ in StreamSettings() }.keys.map(\.description) == ["d"])
    await second.close()
  }
}
