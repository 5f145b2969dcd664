import Base
import FMP4
import NIOCore
import NIOPosix
import Publishing
@testable import Recording
@testable import RecordingFiles
import RecordingSupport
import Support
import Synchronization
import Testing

@Suite struct RetentionTests {
  private static let hour: Int64 = 3_600_000_000_000
  private static let now = RecordingHarness.start

  /// Recordings of 100 bytes and one hour, the first the oldest; each ended `hoursAgo`.
  private func entries(_ hoursAgo: [Int64], stream: String = "cam") throws -> [RecordingEntry] {
    try hoursAgo.map { hours in
      let start = Self.now - (hours + 1) * Self.hour
      let name = RecordingName(start: UTCText(start))
      return RecordingEntry(
        stream: try #require(StreamName(stream)), name: name, state: .completed, startedAt: start, seconds: 3600,
        bytes: 100)
    }
  }

  private func usage(_ bytes: [String: Int64], free: Int64? = nil, headroom: Int64 = 0) throws -> Retention.Usage {
    var byStream: [StreamName: Int64] = [:]
    for (name, size) in bytes { byStream[try #require(StreamName(name))] = size }
    return Retention.Usage(byStream: byStream, free: free, headroom: headroom)
  }

  @Test func withoutRulesEverythingStays() throws {
    let victims = Retention().victims(
      among: try entries([9000, 1]), usage: try usage(["cam": .max / 2], free: 0), now: Self.now)
    #expect(victims.isEmpty)
  }

  @Test func ageCountsFromTheEnd() throws {
    let all = try entries([49, 48, 47])
    let victims = Retention(maximumAge: 48 * Self.hour).victims(among: all, usage: try usage([:]), now: Self.now)
    #expect(victims == [.init(entry: all[0], reason: .age)])
  }

  @Test func theOldestGoUntilTheRestFits() throws {
    let all = try entries([9, 8, 7, 6])
    let rules = Retention(maximumBytes: 250)
    // 50 more bytes are protected or being written: they count, and stay.
    #expect(rules.victims(among: all, usage: try usage(["cam": 450]), now: Self.now).map(\.entry) == Array(all[..<2]))
    #expect(rules.victims(among: all, usage: try usage(["cam": 250]), now: Self.now).isEmpty)
    #expect(
      rules.victims(among: all, usage: try usage(["cam": 450]), now: Self.now).allSatisfy { $0.reason == .totalSize })
  }

  @Test func aStreamsOwnLimitSparesOtherStreams() throws {
    let (large, small) = (try entries([5, 4, 3], stream: "large"), try entries([9], stream: "small"))
    let victims = Retention(maximumBytesPerStream: 200).victims(
      among: small + large, usage: try usage(["large": 300, "small": 100]), now: Self.now)
    #expect(victims == [.init(entry: large[0], reason: .streamSize)])
  }

  @Test func aFullDiskTakesWhatIsDeletedFirst() throws {
    let (kept, deleted) = (try entries([9, 8, 7]), try entries([2]))
    let rules = Retention(keepFree: 1000)
    func victims(free: Int64, headroom: Int64 = 0) throws -> [RecordingEntry] {
      rules.victims(
        among: kept, deleted: deleted, usage: try usage([:], free: free, headroom: headroom), now: Self.now
      ).map(\.entry)
    }
    #expect(try victims(free: 1000) == [])
    #expect(try victims(free: 999) == deleted)
    #expect(try victims(free: 900) == deleted)
    #expect(try victims(free: 899) == deleted + kept[..<1])
    #expect(try victims(free: 1000, headroom: 250) == deleted + kept[..<2])
    #expect(try victims(free: 0) == deleted + kept)
  }

  @Test func theDiskMayBeOfUnknownSize() throws {
    #expect(try Retention(keepFree: 1000).victims(among: entries([1]), usage: usage([:]), now: Self.now).isEmpty)
  }

  // MARK: In a folder

  private let loop = NIOSingletons.posixEventLoopGroup.any()

  /// Three recordings, an hour apart.
  private func recorded(_ retention: RetentionSettings, keepFree: Int64 = 0) async throws -> RecordingHarness {
    let harness = try RecordingHarness(try TemporaryFolder(), keepFree: keepFree, retention: retention)
    await harness.library.finishLeftovers()
    for hour in 0..<3 {
      try harness.renew()
      try harness.startPublication([try SyntheticMedia.audio()], wall: RecordingHarness.start + Int64(hour) * Self.hour)
      try harness.send((0..<200).map { SyntheticMedia.audio($0) })
      try await harness.end()
    }
    #expect(harness.folder.files.count == 3)
    return harness
  }

  /// Three recordings, an hour apart, each larger than what is ignored.
  private func large(_ retention: RetentionSettings) async throws -> RecordingHarness {
    let harness = try RecordingHarness(try TemporaryFolder(), retention: retention)
    await harness.library.finishLeftovers()
    for hour in 0..<3 {
      try harness.renew()
      try harness.startPublication([try SyntheticMedia.video()], wall: RecordingHarness.start + Int64(hour) * Self.hour)
      try harness.send((0..<60).map { SyntheticMedia.frame($0, group: 30, size: 25_000) })
      try await harness.end()
    }
    return harness
  }

  @Test func nothingIsSaidOfALookThatComesBehindTheEnd() async throws {
    let folder = try TemporaryFolder()
    let lines = LoggedLines()
    let library = RecordingLibrary(folder: folder.path, keepFree: 0, threads: .singleton, logger: lines.logger)
    await library.finishLeftovers()
    await library.shutDown()
    try await library.retain(now: RecordingHarness.start)
    #expect(lines.all == [])
  }

  @Test func theOldestFilesGoAndProtectedOnesStay() async throws {
    let harness = try await recorded(RetentionSettings(maximumAge: 30 * 60_000_000_000))
    let all = try await harness.library.list(on: loop).get()
    _ = try await harness.library.catalogue.setProtection(true, all[2].key, on: loop).get()
    try await harness.library.retain(now: RecordingHarness.start + 2 * Self.hour + 60_000_000_000)
    #expect(harness.folder.files == ["cam/20261121T072410Z.mp4", "cam/20261121T092410Z.mp4"])
    #expect(try await harness.library.list(on: loop).get().map(\.key) == [all[0].key, all[2].key])
  }

  @Test func spaceIsMadeBeforeTheFloorIsReached() async throws {
    let free = Shared(.max / 2)
    let harness = try await recorded(RetentionSettings(whenFull: .evict, freeBytes: { free.value }))
    let files = harness.folder.files
    let one = Int64(try harness.bytes(files[0]).count)
    free.value = RetentionKeeper.leastHeadroom - 1
    try await harness.library.retain(now: RecordingHarness.start)
    #expect(harness.folder.files == Array(files[1...]))
    free.value = RetentionKeeper.leastHeadroom
    try await harness.library.retain(now: RecordingHarness.start)
    #expect(harness.folder.files == Array(files[1...]))
    free.value = RetentionKeeper.leastHeadroom - one - 1
    try await harness.library.retain(now: RecordingHarness.start)
    #expect(harness.folder.files == [])
  }

  /// The rate at which a disk fills is that of a second, however long ago the last look was.
  @Test func whatOthersWroteWithinTenSecondsIsNoRushOfOne() async throws {
    let free = Shared(1_500_000_000)
    let harness = try await recorded(RetentionSettings(whenFull: .evict, freeBytes: { free.value }))
    let files = harness.folder.files
    try await harness.library.retain(now: RecordingHarness.start)
    free.value = 500_000_000
    try await harness.library.retain(now: RecordingHarness.start + 10_000_000_000)
    #expect(harness.folder.files == files)
    free.value = 400_000_000
    try await harness.library.retain(now: RecordingHarness.start + 10_500_000_000)
    #expect(harness.folder.files == files, "300 MB are wanted")
    free.value = 200_000_000
    try await harness.library.retain(now: RecordingHarness.start + 11_500_000_000)
    #expect(harness.folder.files != files)
  }

  /// While removed files give nothing back, the others stay: it would go on until none is left.
  @Test func whatGivesNoRoomBackIsNotFollowedByTheRest() async throws {
    let free = Shared(.max / 2)
    let retention = RetentionSettings(whenFull: .evict, freeBytes: { free.value }, pause: { _ in })
    let harness = try await large(retention)
    let files = harness.folder.files
    let size = Int64(try harness.bytes(files[0]).count)
    #expect(files.count == 3 && size > RetentionKeeper.leastOwed)
    free.value = RetentionKeeper.leastHeadroom - 1000
    for second in Int64(0)..<10 {
      try await harness.library.retain(now: RecordingHarness.start + second * 1_000_000_000)
      #expect(harness.folder.files == Array(files[1...]), "at \(second) s")
    }
    // Still nothing: another one is tried after a minute.
    try await harness.library.retain(now: RecordingHarness.start + 61_000_000_000)
    #expect(harness.folder.files == Array(files[2...]))
  }

  /// While others are written, too: one more is tried, and then none for a minute.
  @Test func whatGivesNoRoomBackTwiceIsNotFollowedByTheRest() async throws {
    let free = Shared(.max / 2)
    let retention = RetentionSettings(whenFull: .evict, freeBytes: { free.value }, pause: { _ in })
    let harness = try await large(retention)
    let files = harness.folder.files
    let size = Int64(try harness.bytes(files[0]).count)
    free.value = RetentionKeeper.leastHeadroom - 1000
    for second in Int64(0)..<10 {
      try await harness.library.retain(now: RecordingHarness.start + second * 1_000_000_000)
      #expect(harness.folder.files == Array(files[min(2, Int(second) + 1)...]), "at \(second) s")
      free.value -= size
    }
  }

  /// Others write files and remove them, each much smaller than what was removed.
  @Test func aDiskWhoseRoomGoesUpAndDownHasNotGivenItBack() async throws {
    let disk = ShortDisk { $0 % 2 * -100_000 }
    let harness = try await large(disk.retention)
    let files = harness.folder.files
    disk.begin()
    for second in Int64(0)..<3 {
      try await harness.library.retain(now: RecordingHarness.start + second * 1_000_000_000)
      #expect(harness.folder.files == Array(files[1...]), "at \(second) s")
    }
  }

  /// A file that is closed late gives its room back while as much is written again.
  @Test func roomThatComesBackIsSeenWhileOthersWrite() async throws {
    let disk = ShortDisk { $0 * -60_000 + ($0 >= 30 ? 1_500_000 : 0) }
    let harness = try await large(disk.retention)
    let files = harness.folder.files
    disk.begin()
    try await harness.library.retain(now: RecordingHarness.start)
    #expect(harness.folder.files == Array(files[1...]) && disk.readings >= 30)
    try await harness.library.retain(now: RecordingHarness.start + 1_000_000_000)
    #expect(harness.folder.files == Array(files[2...]), "the disk is short again")
  }

  /// What was recorded or looked at lately is open in the archive; a removed file must not stay so.
  @Test(arguments: [nil, MediaTime(milliseconds: 3_600_000)])
  func whatIsRemovedIsNotKeptOpen(_ rewind: MediaTime?) async throws {
    let folder = try TemporaryFolder()
    let archive = RecordingArchive(folder: folder.path, rewind: { _ in rewind })
    let retention = RetentionSettings(maximumAge: 60_000_000_000)
    let harness = try RecordingHarness(folder, retention: retention, archive: archive)
    await harness.library.finishLeftovers()
    try await harness.record()
    #expect(try archive.open(harness.stream, "20261121T072410Z") != nil)
    #expect(folder.openFiles.count > 0)
    try await harness.library.retain(now: RecordingHarness.start + Self.hour)
    #expect(folder.files == [])
    for _ in 0..<500 where !folder.openFiles.isEmpty { try await Task.sleep(for: .milliseconds(10)) }
    #expect(folder.openFiles == [])
  }

  @Test func nothingGoesFromAFullDiskUnlessThatWasSaid() async throws {
    let harness = try await recorded(RetentionSettings(freeBytes: { 0 }), keepFree: 0)
    try await harness.library.retain(now: RecordingHarness.start)
    #expect(harness.folder.files.count == 3)
  }

  @Test func aDeletionIsForGoodAfterItsTime() async throws {
    let harness = try await recorded(RetentionSettings(undoTime: Self.hour))
    let key = try #require(try await harness.library.list(on: loop).get().last?.key)
    _ = try await harness.library.catalogue.delete(key, now: Self.now, on: loop).get()
    try await harness.library.retain(now: Self.now + Self.hour)
    var query = CatalogueQuery()
    query.selection = .deleted
    #expect(try await harness.library.catalogue.list(query, on: loop).get().total == 1)
    try await harness.library.retain(now: Self.now + Self.hour + 1)
    #expect(try await harness.library.catalogue.list(query, on: loop).get().total == 0)
    #expect(try await harness.library.catalogue.restore(key, on: loop).get() == .failure(.notFound))
  }

  // MARK: When it is due

  /// A server that is idle sleeps until then.
  @Test func theOldestRecordingSaysWhenALookIsDue() async throws {
    let age: Int64 = 30 * 60_000_000_000
    let harness = try await recorded(RetentionSettings(maximumAge: age))
    let oldest = try #require(try await harness.library.list(on: loop).get().last)
    let due = oldest.endedAt &+ age &+ 1
    try await harness.library.retain(now: Self.now)
    #expect(harness.library.timeToRetention(from: due &- 1000) == .nanoseconds(1000))
    #expect(harness.library.timeToRetention(from: due &+ 1) == .zero)
    // Just before it is due nothing is removed. Ages are looked at every 5 s.
    try await harness.library.retain(now: due &- 1)
    #expect(harness.folder.files.count == 3)
    try await harness.library.retain(now: due &+ 5_000_000_000)
    #expect(harness.folder.files.count == 2)
  }

  @Test func aDeletionSaysWhenALookIsDue() async throws {
    let harness = try await recorded(RetentionSettings(undoTime: Self.hour))
    try await harness.library.retain(now: Self.now)
    #expect(harness.library.timeToRetention(from: Self.now) == nil)
    let key = try #require(try await harness.library.list(on: loop).get().last?.key)
    _ = try await harness.library.catalogue.delete(key, now: Self.now, on: loop).get()
    try await harness.library.retain(now: Self.now &+ 1)
    #expect(harness.library.timeToRetention(from: Self.now) == .nanoseconds(Self.hour + 1))
    try await harness.library.retain(now: Self.now &+ Self.hour &+ 1)
    #expect(harness.library.timeToRetention(from: Self.now) == nil)
  }
}

/// A number that a test changes while others read it.
/// A disk that is short of room from `begin` on.
private final class ShortDisk: Sendable {
  private let count = Shared(-1)
  /// Bytes more than just too few, by the number of the reading, from 1.
  private let more: @Sendable (Int64) -> Int64

  init(_ more: @escaping @Sendable (Int64) -> Int64) { self.more = more }

  /// Readings since it is short.
  var readings: Int64 { count.value }

  func begin() { count.value = 0 }

  var retention: RetentionSettings {
    RetentionSettings(
      whenFull: .evict,
      freeBytes: { [self] in
        guard count.value >= 0 else { return .max / 2 }
        count.value += 1
        return RetentionKeeper.leastHeadroom - 1000 + more(count.value)
      }, pause: { _ in })
  }
}

private final class Shared: Sendable {
  private let number: Mutex<Int64>

  init(_ value: Int64) {
    number = Mutex(value)
  }

  var value: Int64 {
    get { number.withLock { $0 } }
    set { number.withLock { $0 = newValue } }
  }
}
