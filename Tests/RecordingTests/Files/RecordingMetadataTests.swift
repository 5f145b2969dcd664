import Base
import FMP4
import Glibc
import Logging
import NIOCore
import NIOPosix
import Publishing
@testable import Recording
@testable import RecordingFiles
import RecordingFormat
import RecordingSupport
import Support
import Synchronization
import Testing

/// What a recording's file tells when nothing else knows: when it began, what is missing, why it ended, that it was
/// salvaged.
@Suite struct RecordingMetadataTests {
  private static let metadata = RecordingMetadata(
    startedAt: RecordingHarness.start + 123_456_789,
    gaps: [
      RecordingGap(at: 12.5, seconds: 3.25, reason: "the disk was too slow"),
      RecordingGap(at: 20, seconds: 60, reason: "nothing came from the publisher"),
      RecordingGap(at: 31, seconds: 0.5, reason: "the disk was too slow"),
    ], failure: "cannot write cam/….part.mp4: Input/output error", isSalvaged: true)

  // MARK: As bytes

  @Test func whatIsStoredIsRead() {
    #expect(RecordingMetadata(stored: Self.metadata.stored) == Self.metadata)
    let plain = RecordingMetadata(startedAt: -5)
    #expect(plain.stored.readableBytes == 36)
    #expect(RecordingMetadata(stored: plain.stored) == plain)
  }

  @Test(arguments: [nil, "Evening"], [nil, "1:CC1,SERVICE1"])
  func `A name and captions are kept, each alone and both`(_ title: String?, _ captions: String?) {
    let metadata = RecordingMetadata(startedAt: 7, title: title, captions: captions)
    #expect(RecordingMetadata(stored: metadata.stored) == metadata)
    let length = metadata.stored.readableBytes
    let texts = [title, captions].compactMap { $0 }.reduce(0) { $0 + 2 + $1.utf8.count }
    #expect(length == 36 + texts + (captions != nil ? 4 : title != nil ? 2 : 0))
  }

  @Test func noMetadataIsReadFromDamagedBytes() {
    let stored = Self.metadata.stored
    for at in 0..<stored.readableBytes where !(8..<12).contains(at) {
      var damaged = stored
      damaged.setInteger(stored.getInteger(at: at, as: UInt8.self).map { $0 ^ 0x21 } ?? 0, at: at)
      #expect(RecordingMetadata(stored: damaged) == nil, "byte \(at)")
      #expect(RecordingMetadata(stored: stored.getSlice(at: 0, length: at) ?? stored) == nil)
    }
  }

  /// Numbers that a checksum covers may yet be too large.
  @Test func largerNumbersThanTheLimitsAreRefused() {
    for (offset, limit) in [(10, 257), (12, 4097)] {
      var rest = RecordingMetadata(startedAt: 0).stored.getSlice(at: 20, length: 16) ?? ByteBuffer()
      if offset == 10 {
        rest.setInteger(UInt16(limit), at: rest.readerIndex + offset)
      } else {
        rest.setInteger(UInt32(limit), at: rest.readerIndex + offset)
      }
      // Enough bytes for as many texts of no letters, or gaps.
      rest.writeRepeatingByte(0, count: limit * 18)
      var bytes = RecordingMetadata(startedAt: 0).stored.getSlice(at: 0, length: 12) ?? ByteBuffer()
      bytes.writeInteger(UInt32(rest.readableBytes))
      bytes.writeInteger(Checksum.of(rest))
      bytes.writeImmutableBuffer(rest)
      #expect(RecordingMetadata(stored: bytes) == nil)
    }
  }

  @Test func moreGapsThanTheLimitAreToldAsOne() throws {
    let gaps = (0..<5000).map { RecordingGap(at: Double($0), seconds: 2, reason: "reason \($0)") }
    for count in [RecordingMetadata.maximumGaps, RecordingMetadata.maximumGaps + 1, 5000] {
      let metadata = RecordingMetadata(startedAt: 0, gaps: Array(gaps[..<count]))
      let stored = metadata.stored
      #expect(stored.readableBytes <= RecordingMetadata.maximumBytes)
      let read = try #require(RecordingMetadata(stored: stored))
      #expect(read.gaps.count == RecordingMetadata.maximumGaps)
      #expect(read.gaps.reduce(0) { $0 + $1.seconds } == Double(count) * 2)
    }
  }

  @Test func longTextsAreCutOff() throws {
    let long = String(repeating: "x", count: 600)
    let metadata = RecordingMetadata(startedAt: 0, gaps: [RecordingGap(at: 0, seconds: 1, reason: long)], failure: long)
    let read = try #require(RecordingMetadata(stored: metadata.stored))
    #expect(read.failure == String(long.prefix(512)) && read.gaps[0].reason == String(long.prefix(512)))
  }

  @Test func aGapIsReadFromItsNote() {
    let gap = RecordingGap(at: 1.5, seconds: 2.25, reason: "the disk was too slow")
    #expect(RecordingGap(note: gap.note) == gap)
    #expect(RecordingGap(note: ByteBuffer(string: "gap2")) == nil)
    for length in 0..<20 { #expect(RecordingGap(note: gap.note.getSlice(at: 0, length: length) ?? gap.note) == nil) }
  }

  // MARK: In files

  private func metadata(_ folder: TemporaryFolder, _ name: String = "20261121T072410Z.mp4") throws -> RecordingMetadata?
  {
    try RecordingFolder.open("\(folder.path)/cam").metadata(of: name)
  }

  private func recordAnOutage(_ harness: RecordingHarness) async throws {
    let tracks = [try SyntheticMedia.video(), try SyntheticMedia.audio()]
    try harness.startPublication(tracks, wall: RecordingHarness.start + 345_000_000)
    try harness.send(SyntheticMedia.interleaved(seconds: 2))
    try harness.interrupt()
    try harness.startPublication(tracks, wall: RecordingHarness.start + 20_000_000_000)
    try harness.send(SyntheticMedia.interleaved(seconds: 2))
  }

  @Test(arguments: TemporaryFolder.Place.allCases)
  func aFinishedRecordingTellsItsStartAndItsGaps(_ place: TemporaryFolder.Place) async throws {
    let harness = try RecordingHarness(try TemporaryFolder(place))
    try await recordAnOutage(harness)
    try await harness.end()
    let stored = try #require(harness.events.all.last)
    #expect(stored.kind == .stored && stored.facts.gaps.count == 1)
    let metadata = try #require(try metadata(harness.folder))
    #expect(metadata == RecordingMetadata(stored.facts))
    #expect(metadata.startedAt == RecordingHarness.start + 345_000_000)
  }

  @Test(arguments: TemporaryFolder.Place.allCases)
  func aSalvagedRecordingTellsThemToo(_ place: TemporaryFolder.Place) async throws {
    let folder = try TemporaryFolder(place)
    let killed = try RecordingHarness(folder)
    try await recordAnOutage(killed)
    try await killed.settle()
    let left = try killed.bytes("cam/20261121T072410Z.part.mp4")
    killed.recorder.cancel()
    try await killed.settle()
    let file = open("\(folder.path)/cam/20261121T072410Z.part.mp4", O_WRONLY | O_CREAT, 0o644)
    #expect(write(file, left, left.count) == left.count)
    close(file)

    let harness = try RecordingHarness(folder)
    try await harness.finishLeftovers()
    let metadata = try #require(try metadata(folder))
    #expect(metadata.isSalvaged && metadata.failure == nil)
    let gap = try #require(metadata.gaps.first)
    #expect(metadata.gaps.count == 1 && gap.reason.contains("publisher"))
    #expect(abs(gap.at - 2) < 0.05 && abs(gap.seconds - 17.655) < 0.05)
    // To the 2^-32 of a second that a prft tells.
    #expect(abs(metadata.startedAt &- (RecordingHarness.start + 345_000_000)) <= 1)
    let told = try #require(harness.events.all.last)
    #expect(told.kind == .salvaged)
    #expect(told.facts.gaps == metadata.gaps && told.facts.startedAt == metadata.startedAt)
  }

  /// Replay need not look at every fragment of it.
  @Test(arguments: [0, 100])
  func aSalvagedRecordingKeepsTheIndexOfWhatIsWhole(tornBytes: Int) async throws {
    let folder = try TemporaryFolder()
    let killed = try RecordingHarness(folder)
    try killed.startPublication([try SyntheticMedia.video(), try SyntheticMedia.audio()])
    try killed.send(SyntheticMedia.interleaved(seconds: 9, offset: 1000, isSteady: true))
    try await killed.settle()
    let left = try killed.bytes("cam/20261121T072410Z.part.mp4").dropLast(tornBytes)
    killed.recorder.cancel()
    try await killed.settle()
    let descriptor = open("\(folder.path)/cam/20261121T072410Z.part.mp4", O_WRONLY | O_CREAT, 0o644)
    #expect(write(descriptor, Array(left), left.count) == left.count)
    close(descriptor)
    try await RecordingHarness(folder).finishLeftovers()

    let file = try LockedFile("\(folder.path)/cam/20261121T072410Z.mp4", .read)
    let outline = try #require(try file.reader.outline(size: file.size))
    let place = try #require(outline.annex)
    var bytes = try file.reader.read(at: place.lowerBound, count: Int(place.upperBound - place.lowerBound))
    bytes.moveReaderIndex(forwardBy: try #require(RecordingMetadata.size(bytes)))
    let media = file.reader(from: outline.content.lowerBound)
    let length = outline.content.upperBound - outline.content.lowerBound
    let stored = try #require(
      RecordingIndex(stored: bytes, length: length) { try? media.tracks(at: $0, end: length) })
    let walked = try media.index(length: length)
    #expect(stored.segments == walked.segments && stored.spans == walked.spans)
    #expect(stored.segments.count >= 4)
  }

  @Test func aMovieThatOnlyLackedItsNameSaysThatItWasSalvaged() async throws {
    let folder = try TemporaryFolder()
    try await RecordingHarness(folder).record()
    #expect(try metadata(folder)?.isSalvaged == false)
    let path = "\(folder.path)/cam/20261121T072410Z"
    #expect(rename("\(path).mp4", "\(path).part.mp4") == 0)
    try await RecordingHarness(folder).finishLeftovers()
    #expect(try metadata(folder)?.isSalvaged == true)
  }

  /// Records, and fills the disk meanwhile; gives out why the recording failed.
  private func recordUntilTheDiskIsFull(
    _ folder: TemporaryFolder, policy: RecordingPolicy = RecordingPolicy()
  ) async throws -> (harness: RecordingHarness, reason: String) {
    let disk = FillingDisk()
    let harness = try RecordingHarness(folder, keepFree: disk.keepFree, policy: policy, calls: disk.calls)
    try harness.startPublication([try SyntheticMedia.video()])
    try harness.send((0..<60).map { SyntheticMedia.frame($0, group: 30) })
    try await harness.settle()
    disk.fill()
    try harness.send((60..<120).map { SyntheticMedia.frame($0, group: 30) })
    try await harness.settle()
    var failure: String?
    if case .failed(_, let reason) = harness.recorder.state { failure = reason }
    return (harness, try #require(failure, "\(harness.recorder.state)"))
  }

  @Test func aRecordingThatHadToStopTellsWhy() async throws {
    let folder = try TemporaryFolder(.memory)
    let (harness, reason) = try await recordUntilTheDiskIsFull(folder, policy: .withoutRoomInFront)
    // Here it takes a copy to finish it, which would take of what is to stay free: it waits for room.
    #expect(folder.files.contains("cam/20261121T072410Z.part.mp4"))
    try await RecordingHarness(folder).finishLeftovers()
    #expect(try metadata(folder)?.failure == reason && reason.contains("--keep-free"))
    try await harness.end()
  }

  /// Where room was kept in front, a full disk does not keep it from becoming a movie.
  @Test func aRecordingThatHadToStopIsFinishedInItsRoom() async throws {
    let folder = try TemporaryFolder(.memory)
    let (harness, reason) = try await recordUntilTheDiskIsFull(folder)
    for _ in 0..<500 where !folder.files.contains("cam/20261121T072410Z.mp4") {
      try await Task.sleep(for: .milliseconds(10))
    }
    #expect(try metadata(folder)?.failure == reason && reason.contains("--keep-free"))
    try await harness.end()
  }

  /// The disk took a note of the reason and nothing after that: the movie is made by a later start.
  @Test func whatIsSalvagedStillTellsWhyItHadToStop() async throws {
    let folder = try TemporaryFolder()
    let killed = try RecordingHarness(folder)
    try await recordAnOutage(killed)
    try await killed.settle()
    var left = try killed.bytes("cam/20261121T072410Z.part.mp4")
    killed.recorder.cancel()
    try await killed.settle()
    let reason = "cannot write cam/20261121T072410Z.part.mp4: Input/output error"
    left += Array(
      try #require(RecordingMetadataBox.box(RecordingMetadata.failureNote(reason), crc: Checksum.of)).readableBytesView)
    let file = open("\(folder.path)/cam/20261121T072410Z.part.mp4", O_WRONLY | O_CREAT, 0o644)
    #expect(write(file, left, left.count) == left.count)
    close(file)

    let harness = try RecordingHarness(folder)
    try await harness.finishLeftovers()
    let metadata = try #require(try metadata(folder))
    #expect(metadata.isSalvaged && metadata.failure == reason)
    #expect(metadata.gaps.count == 1, "and what it lacks")
    let told = try #require(harness.events.all.last)
    #expect(told.kind == .salvaged && told.facts.failure == reason)
    let audio = try #require(try harness.sampleCounts("cam/20261121T072410Z.mp4").last)
    #expect(audio > 150, "nothing of the media is lost for it")
  }

  @Test func aRecordingThatHadToStopHasTheReasonBesideItsFragments() async throws {
    let folder = try TemporaryFolder(.memory)
    let (harness, reason) = try await recordUntilTheDiskIsFull(folder)
    let name = try #require(try RecordingFolder.open("\(folder.path)/cam").names().first { $0.hasSuffix(".mp4") })
    let bytes = try harness.bytes("cam/\(name)")
    #expect(String(decoding: bytes.suffix(1024), as: UTF8.self).contains("end1\(reason)"))
    try await harness.end()
  }

  @Test func aCopyThatIsWaitedForIsTold() async throws {
    let folder = try TemporaryFolder(.memory)
    let harness = try RecordingHarness(folder)
    try harness.startPublication([try SyntheticMedia.video()])
    try harness.send((0..<60).map { SyntheticMedia.frame($0, group: 30) })
    try await harness.settle()
    let left = try harness.bytes("cam/20261121T072410Z.part.mp4")
    harness.recorder.cancel()
    try await harness.settle()
    let file = open("\(folder.path)/cam/20261121T072410Z.part.mp4", O_WRONLY | O_CREAT, 0o644)
    #expect(write(file, left, left.count) == left.count)
    close(file)

    let copier = NIOThreadPool(numberOfThreads: 1)
    copier.start()
    let thaw = try blockThread(of: copier)
    let finisher = RecordingFinisher(
      give: { _ in }, copier: copier, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    let stream = try #require(StreamName("cam"))
    let name = try #require(RecordingName(unfinished: "20261121T072410Z.part.mp4"))
    let key = RecordingKey(stream: stream, name: name)
    let place = try RecordingFolder.open("\(folder.path)/cam")
    finisher.finishLater(UnfinishedRecording(folder: place, name: name, stream: stream))
    #expect(finisher.progress(of: key) == 0)
    thaw()
    for _ in 0..<500 where finisher.isBusy { try await Task.sleep(for: .milliseconds(10)) }
    #expect(finisher.progress(of: key) == nil)
    #expect(place.contains("20261121T072410Z.mp4"))
    try await copier.shutdownGracefully()
  }

  @Test func whatTheDiskDoesNotLetBeFinishedIsTriedAgain() async throws {
    let folder = try TemporaryFolder()
    let harness = try RecordingHarness(folder)
    try harness.startPublication([try SyntheticMedia.video()])
    try harness.send((0..<60).map { SyntheticMedia.frame($0, group: 30) })
    try await harness.settle()
    let bytes = try harness.bytes("cam/20261121T072410Z.part.mp4")
    harness.recorder.cancel()
    try await harness.settle()
    let file = open("\(folder.path)/cam/20261121T072410Z.part.mp4", O_WRONLY | O_CREAT, 0o644)
    #expect(write(file, bytes, bytes.count) == bytes.count)
    close(file)
    // What has its name already stands in its way.
    try #require(mkdir("\(folder.path)/cam/20261121T072410Z.mp4", 0o755) == 0)

    let copier = NIOThreadPool(numberOfThreads: 1)
    copier.start()
    let now = Mutex(MonotonicTime.zero)
    let events = Mutex<[RecordingEvent.Kind]>([])
    let finisher = RecordingFinisher(
      give: { output in if case .event(let event) = output { events.withLock { $0.append(event.kind) } } },
      clock: SteadyClock(ClockReading(wall: 0, monotonic: 0)) { now.withLock { $0 } }, copier: copier,
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    let place = try RecordingFolder.open("\(folder.path)/cam")
    func tend(at seconds: Int64) async throws {
      now.withLock { $0 = .at(seconds * 1_000_000_000) }
      finisher.tend()
      for _ in 0..<500 where finisher.isBusy { try await Task.sleep(for: .milliseconds(10)) }
    }

    let left = UnfinishedRecording(
      folder: place, name: try #require(RecordingName(unfinished: "20261121T072410Z.part.mp4")),
      stream: try #require(StreamName("cam")))
    finisher.finishSoon([left]) {}
    for _ in 0..<500 where finisher.isBusy { try await Task.sleep(for: .milliseconds(10)) }
    try await tend(at: 11)
    #expect(place.contains("20261121T072410Z.part.mp4") && events.withLock { $0 }.isEmpty)
    try #require(rmdir("\(folder.path)/cam/20261121T072410Z.mp4") == 0)
    try await tend(at: 29)
    #expect(events.withLock { $0 }.isEmpty, "the pause has doubled")
    try await tend(at: 32)
    #expect(events.withLock { $0 } == [.salvaged])
    #expect(place.contains("20261121T072410Z.mp4") && !place.contains("20261121T072410Z.part.mp4"))
    try await tend(at: 1000)
    #expect(events.withLock { $0 } == [.salvaged])
    try await copier.shutdownGracefully()
  }

  @Test func ofOtherFilesNothingIsRead() async throws {
    let folder = try TemporaryFolder()
    let harness = try RecordingHarness(folder)
    try await harness.record()
    try harness.renew()
    try harness.startPublication([try SyntheticMedia.audio()], wall: RecordingHarness.start + 60_000_000_000)
    try harness.send((0..<100).map { SyntheticMedia.audio($0) })
    try await harness.settle()
    #expect(try metadata(folder, "20261121T072510Z.part.mp4") == nil, "it is being written")
    try await harness.end()
    let whole = try harness.bytes("cam/20261121T072410Z.mp4")
    for length in [0, 7, 8, 100, 1000] {
      let path = "\(folder.path)/cam/cut-\(length).mp4"
      let file = open(path, O_WRONLY | O_CREAT, 0o644)
      #expect(write(file, whole, length) == length)
      close(file)
      #expect(try metadata(folder, "cut-\(length).mp4") == nil)
    }
    #expect(try metadata(folder, "nothing.mp4") == nil)
  }
}
