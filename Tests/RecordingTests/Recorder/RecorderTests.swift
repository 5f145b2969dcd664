import Base
@testable import FMP4
import Glibc
import NIOCore
import NIOPosix
@testable import Recording
import RecordingFiles
import RecordingSupport
import Support
import Testing

@Suite struct RecorderTests {
  @Test(arguments: TemporaryFolder.Place.allCases)
  func aStreamBecomesAMovieNamedByItsStart(_ place: TemporaryFolder.Place) async throws {
    let harness = try RecordingHarness(try TemporaryFolder(place))
    try harness.startPublication([try SyntheticMedia.video(), try SyntheticMedia.audio()])
    try harness.send(SyntheticMedia.interleaved(seconds: 2))
    try await harness.settle()
    #expect(harness.folder.files == ["cam/20261121T072410Z.part.mp4"])
    let growing = try #require(Box.parse(try harness.bytes("cam/20261121T072410Z.part.mp4")))
    let start = growing.prefix(place == .memory ? 7 : 6).map(\.type)
    let room = place == .memory ? ["free"] : []
    #expect(start == ["ftyp"] + room + ["moov", "free", "prft", "moof", "mdat"])
    guard case .running(let progress) = harness.recorder.state else {
      Issue.record("\(harness.recorder.state)")
      return
    }
    #expect(progress.file == "cam/20261121T072410Z.mp4")

    try await harness.end()
    #expect(harness.folder.files == ["cam/20261121T072410Z.mp4"])
    #expect(try harness.sampleCounts("cam/20261121T072410Z.mp4") == [60, 93])
    guard case .completed(let result) = harness.recorder.state else {
      Issue.record("\(harness.recorder.state)")
      return
    }
    #expect(abs(result.seconds - 2) < 0.01)
  }

  /// The bytes that the tables point at are the samples' own: each sample's is its number.
  @Test(arguments: TemporaryFolder.Place.allCases)
  func theTablesPointAtTheSamples(_ place: TemporaryFolder.Place) async throws {
    let harness = try RecordingHarness(try TemporaryFolder(place))
    try await harness.record()
    let bytes = try harness.bytes("cam/20261121T072410Z.mp4")
    let moov = try #require(Box.parse(bytes)?.first { $0.type == "moov" })
    for (track, size) in zip(moov.all("trak"), [100, 20]) {
      let table = try #require(track.first("mdia/minf/stbl"))
      let chunks = try #require(table.first("stco"))
      let runs = try #require(table.first("stsc"))
      var number = 0
      for chunk in 0..<chunks.number(4) {
        let run = (0..<runs.number(4)).last { runs.number(8 + 12 * $0) <= chunk + 1 } ?? 0
        var offset = chunks.number(8 + 4 * chunk)
        for _ in 0..<runs.number(12 + 12 * run) {
          #expect(bytes[offset..<offset + size].allSatisfy { $0 == UInt8(truncatingIfNeeded: number) })
          offset += size
          number += 1
        }
      }
      #expect(number == (size == 100 ? 60 : 93))
    }
  }

  @Test func theHeadIsInsertedWhereTheFileSystemCan() async throws {
    let folder = try TemporaryFolder(.disk)
    try #require(
      try await folder.canInsert(), "the file system of /var/tmp cannot insert room, so nothing is shown here")
    let root = try RecordingFolder.open(folder.path)
    let file = try RecordingFile.create(
      in: root, name: RecordingName(start: UTCText(RecordingHarness.start)))
    var tables = MovieTables(tracks: [try SyntheticMedia.audio()])
    let run = TrackRun(
      track: .audio, timescale: 48_000, baseDecodeTime: 0,
      samples: [RunSample(size: 5, duration: 1024, compositionOffset: 0, isSync: true)], byteCount: 5, duration: 1024)
    try file.append(ByteBuffer(string: "hello"))
    tables.append([run], mediaOffset: 0)
    let metadata = MovieMetadata(title: "", date: "", tool: "", creation: 0)
    let builder = try #require(MovieBuilder(tables, metadata: metadata))
    #expect(try file.finish(builder, effort: .inPlace) == .inserted)
    #expect(folder.files == ["20261121T072410Z.mp4"])
  }

  @Test func recordingsOfTheSameSecondGetANumber() async throws {
    let folder = try TemporaryFolder()
    for _ in 0..<3 { try await RecordingHarness(folder).record() }
    #expect(
      folder.files == ["cam/20261121T072410Z-2.mp4", "cam/20261121T072410Z-3.mp4", "cam/20261121T072410Z.mp4"])
  }

  @Test func aReconnectContinuesTheFile() async throws {
    let harness = try RecordingHarness(try TemporaryFolder())
    let tracks = [try SyntheticMedia.video(), try SyntheticMedia.audio()]
    try harness.startPublication(tracks)
    try harness.send(SyntheticMedia.interleaved(seconds: 1))
    try harness.interrupt()
    try harness.startPublication(tracks, wall: RecordingHarness.start + 20_000_000_000)
    try harness.send(SyntheticMedia.interleaved(seconds: 1))
    try await harness.end()
    #expect(try harness.sampleCounts("cam/20261121T072410Z.mp4") == [60, 92])
    guard case .completed(let progress) = harness.recorder.state else {
      Issue.record("\(harness.recorder.state)")
      return
    }
    #expect(abs(progress.seconds - 2) < 0.05, "the outage leaves no hole")
  }

  @Test func changedParametersContinueTheFileAndAnotherCodecBeginsOne() async throws {
    let harness = try RecordingHarness(try TemporaryFolder())
    let video = try SyntheticMedia.video()
    var wide = video
    wide.codec = Codec(
      try H264.Configuration(
        record: ByteBuffer(
          bytes: SyntheticMedia.hex(
            "0164001effe1001e6764001eacd940a02ff97016a0202028000003000800000301e078b16cb001000668ebe3cb22c0fdf8f800"))))
    var other = video
    other.codec = Codec(
      try AV1.Configuration(record: ByteBuffer(bytes: SyntheticMedia.hex("81010c000a0e0000000cc4ff6736be4404040410"))))
    try harness.startPublication([video])
    for (index, track) in [video, wide, other].enumerated() {
      if index > 0 { try harness.receive(.tracks([track])) }
      try harness.send((0..<30).map { SyntheticMedia.frame($0, group: 30, start: Int64(index) * 30_000) })
    }
    try await harness.end()
    #expect(harness.folder.files == ["cam/20261121T072410Z.mp4", "cam/20261121T072412Z.mp4"])
    #expect(try harness.sampleCounts("cam/20261121T072410Z.mp4") == [60])
    #expect(try harness.sampleCounts("cam/20261121T072412Z.mp4") == [30])
    let movie = try #require(Box.parse(try harness.bytes("cam/20261121T072410Z.mp4")))
    #expect(movie[1].first("trak/mdia/minf/stbl/stsd")?.number(4) == 2)
  }

  @Test func belowTheFreeSpaceToKeepNothingIsRecordedAndTheReasonIsTold() async throws {
    let harness = try RecordingHarness(try TemporaryFolder(), keepFree: .max)
    try await harness.record()
    guard case .failed(nil, let reason) = harness.recorder.state else {
      Issue.record("\(harness.recorder.state)")
      return
    }
    #expect(reason.contains("--keep-free"))
    #expect(harness.folder.files.isEmpty)
  }

  @Test func aLinkInPlaceOfTheStreamsFolderIsNotFollowed() async throws {
    let folder = try TemporaryFolder()
    let outside = try TemporaryFolder()
    #expect(symlink(outside.path, "\(folder.path)/cam") == 0)
    let harness = try RecordingHarness(folder)
    try await harness.record()
    guard case .failed(nil, let reason) = harness.recorder.state else {
      Issue.record("\(harness.recorder.state)")
      return
    }
    #expect(reason.contains("/cam"))
    #expect(outside.files.isEmpty)
  }

  @Test func aCancelledRecordingIsGone() async throws {
    let harness = try RecordingHarness(try TemporaryFolder())
    try harness.startPublication([try SyntheticMedia.video(), try SyntheticMedia.audio()])
    try harness.send(SyntheticMedia.interleaved(seconds: 1))
    try await harness.settle()
    harness.recorder.cancel()
    try await harness.end()
    #expect(harness.recorder.state == .cancelled)
    #expect(harness.folder.files.isEmpty)
  }

  @Test func aStreamWithoutMediaLeavesNoFile() async throws {
    let harness = try RecordingHarness(try TemporaryFolder())
    try harness.startPublication([try SyntheticMedia.video()])
    try await harness.end()
    #expect(harness.recorder.state == .idle)
    #expect(harness.folder.files.isEmpty)
  }

  @Test func whatADiskThatDoesNotAnswerCannotTakeIsLeftOutByWholeGroupsAndTold() async throws {
    let harness = try RecordingHarness(try TemporaryFolder())
    try harness.startPublication([try SyntheticMedia.video()])
    try harness.send((0..<60).map { SyntheticMedia.frame($0, group: 30) })
    try await harness.settle()
    let thaw = try harness.freezeDisk()
    // Fragments of six frames: the eighth does not fit below 64 MiB.
    for index in 60..<120 { try harness.receive(.sample(SyntheticMedia.frame(index, group: 30, size: 1_400_000))) }
    #expect(!harness.recorder.isIdle)
    thaw()
    try await harness.settle()
    // In the middle of a group nothing begins.
    for index in 120..<210 { try harness.receive(.sample(SyntheticMedia.frame(index, group: 60))) }
    try await harness.end()
    guard case .completed(let progress) = harness.recorder.state else {
      Issue.record("\(harness.recorder.state)")
      return
    }
    // Of the 210 frames the last of the large ones are missing, up to the key frame that came after the thaw.
    let count = try #require(try harness.sampleCounts("cam/20261121T072410Z.mp4").first)
    #expect(count >= 60 + 42 + 30 && count < 210)
    #expect(abs(progress.seconds - 7) < 0.01, "time goes on")
    let stored = try #require(harness.events.all.last)
    #expect(harness.events.steps == [.started, .stopped(.streamEnded), .stored])
    let gap = try #require(stored.facts.gaps.first)
    #expect(stored.facts.gaps.count == 1)
    #expect(gap.reason.contains("slow"))
    #expect(abs(gap.seconds - Double(210 - count) / 30) < 0.01)
    #expect(gap.at > 2 && gap.at < 4)
  }

  enum End: CaseIterable, Sendable {
    case stopped, streamEnded
  }

  /// No fragment comes behind it that would tell.
  @Test(arguments: End.allCases)
  func whatIsLeftOutAtTheVeryEndIsToldToo(_ end: End) async throws {
    let harness = try RecordingHarness(try TemporaryFolder())
    try harness.startPublication([try SyntheticMedia.video()])
    try harness.send((0..<60).map { SyntheticMedia.frame($0, group: 30) })
    try await harness.settle()
    let thaw = try harness.freezeDisk()
    for index in 60..<150 { try harness.receive(.sample(SyntheticMedia.frame(index, group: 30, size: 1_400_000))) }
    // Drift of the publisher's clock, told meanwhile: what time it was then is known by the clock of then.
    try harness.receive(
      .clock(
        WallClockAnchor(
          mediaTime: MediaTime(milliseconds: 5000), wallTime: RecordingHarness.start + 5_000_000_000)))
    if end == .stopped { harness.recorder.stop() }
    let thawing = Task {
      try await Task.sleep(for: .milliseconds(200))
      thaw()
    }
    try await harness.end()
    try await thawing.value
    let count = try #require(try harness.sampleCounts("cam/20261121T072410Z.mp4").first)
    #expect((60..<110).contains(count))
    #expect(harness.events.steps == [.started, .stopped(end == .stopped ? .asked : .streamEnded), .stored])
    let stored = try #require(harness.events.all.last)
    let gap = try #require(stored.facts.gaps.first)
    #expect(stored.facts.gaps.count == 1)
    #expect(gap.reason.contains("slow"))
    #expect(abs(gap.at - Double(count) / 30) < 0.01, "behind the last frame")
    // Nothing waits for the fragment in the making when it is stopped.
    #expect(abs(gap.seconds - Double(150 - count) / 30) < (end == .stopped ? 0.21 : 0.01))
    guard case .completed(let progress) = harness.recorder.state else {
      Issue.record("\(harness.recorder.state)")
      return
    }
    #expect(progress.gaps == [gap], "the API tells it of the stream's recording")
    #expect(abs((harness.library.overview.counters.lost[.disk] ?? 0) - gap.seconds) < 0.01)
    #expect(harness.library.overview.queuedBytes == 0)
  }

  /// What a broken disk did not take up to the end of the stream is in no file, but counts.
  @Test func whatComesBehindAFailureIsCountedWhenNothingIsRecordedAnyMore() async throws {
    let harness = try RecordingHarness(try TemporaryFolder())
    try harness.startPublication([try SyntheticMedia.video()])
    try harness.send((0..<60).map { SyntheticMedia.frame($0, group: 30) })
    try await harness.settle()
    try harness.removeFile("cam/20261121T072410Z.part.mp4")
    harness.recorder.tick()
    try await Task.sleep(for: .milliseconds(1100))
    try harness.send((60..<90).map { SyntheticMedia.frame($0, group: 30) })
    try await harness.settle()
    try harness.send((90..<120).map { SyntheticMedia.frame($0, group: 30) })
    try await harness.end()
    guard case .failed = harness.recorder.state else {
      Issue.record("\(harness.recorder.state)")
      return
    }
    #expect(harness.folder.files.isEmpty)
    let lost = try #require(harness.library.overview.counters.lost[.disk])
    #expect((1...4.01).contains(lost))
  }

  /// What comes first after the hole is a key frame in the midst of a segment.
  /// Audio is silent for more than 2³¹ of its ticks: no sample of a movie can last so long. Video has a frame a minute.
  @Test func aTrackThatIsSilentForHalfADayMakesAnotherFile() async throws {
    let harness = try RecordingHarness(try TemporaryFolder())
    try harness.startPublication([try SyntheticMedia.video(), try SyntheticMedia.audio()])
    for minute in 0..<803 {
      try harness.receive(.sample(SyntheticMedia.frame(minute, group: 1, duration: 60 * 30_000)))
      if minute % 100 == 99 { try await harness.settle() }
      // As 800 minutes have passed, audio is back.
      guard minute % 800 == 0 else { continue }
      for index in 0..<10 {
        try harness.receive(.sample(SyntheticMedia.audio(index, start: Int64(minute) * 60 * 48_000)))
      }
    }
    try await harness.end()
    let files = harness.folder.files
    // 2³¹ ticks are 745.65 minutes, less a minute.
    #expect(try files.map { try harness.sampleCounts($0) } == [[745, 10], [58, 10]], "\(files)")
    #expect(harness.events.steps == [.hole, .streamEnded].flatMap { [.started, .stopped($0), .stored] })
  }

  @Test func aLongHoleMakesAnotherFile() async throws {
    let harness = try RecordingHarness(try TemporaryFolder())
    try harness.startPublication([try SyntheticMedia.video()])
    func send(_ frames: Range<Int>, size: Int = 100) throws {
      for index in frames { try harness.receive(.sample(SyntheticMedia.frame(index, group: 30, size: size))) }
    }
    try send(0..<60)
    try await harness.settle()
    let thaw = try harness.freezeDisk()
    try send(60..<110, size: 1_400_000)
    try send(110..<490)
    thaw()
    try await harness.settle()
    try send(490..<600)
    try await harness.end()
    #expect(harness.folder.files == ["cam/20261121T072410Z.mp4", "cam/20261121T072427Z.mp4"])
    #expect(try harness.sampleCounts("cam/20261121T072427Z.mp4") == [90])
    #expect(harness.events.steps == [.hole, .streamEnded].flatMap { [.started, .stopped($0), .stored] })
    let gap = try #require(harness.events.all.last?.facts.gaps.first)
    #expect(gap.at == 0 && gap.seconds > 12 && gap.reason.contains("slow"))
  }

  @Test func anOutageIsTold() async throws {
    let harness = try RecordingHarness(try TemporaryFolder())
    let tracks = [try SyntheticMedia.video()]
    try harness.startPublication(tracks)
    try harness.send((0..<60).map { SyntheticMedia.frame($0, group: 30) })
    try harness.interrupt()
    try harness.startPublication(tracks, wall: RecordingHarness.start + 20_000_000_000)
    try harness.send((0..<60).map { SyntheticMedia.frame($0, group: 30) })
    try await harness.end()
    let stored = try #require(harness.events.all.last)
    #expect(stored.kind == .stored)
    let gap = try #require(stored.facts.gaps.first)
    #expect(abs(gap.at - 2) < 0.01 && abs(gap.seconds - 18) < 0.01)
    #expect(gap.reason.contains("publisher"))
    #expect(stored.facts.codecs.count == 1 && stored.facts.codecs[0].hasPrefix("avc1."))
    #expect(stored.facts.startedAt == RecordingHarness.start)
  }

  /// Why there is a gap, if so many frames came meanwhile and were of no use.
  @Test(arguments: [(0, "nothing came"), (3, "3 frames of video and 0 of audio came and could not be used")])
  func thatNothingCameIsToldOnlyWhereItIsTrue(_ lost: Int, _ reason: String) async throws {
    let harness = try RecordingHarness(try TemporaryFolder())
    let tracks = [try SyntheticMedia.video()]
    try harness.startPublication(tracks)
    // What was lost before belongs to no gap.
    harness.lose(.video)
    try harness.send((0..<60).map { SyntheticMedia.frame($0, group: 30) })
    try harness.interrupt()
    try harness.startPublication(tracks, wall: RecordingHarness.start + 20_000_000_000)
    for _ in 0..<lost { harness.lose(.video) }
    try harness.send((0..<60).map { SyntheticMedia.frame($0, group: 30) })
    try await harness.end()
    let gap = try #require(harness.events.all.last?.facts.gaps.first)
    #expect(gap.reason.contains(reason), "\(gap.reason)")
    #expect(gap.reason.contains("nothing came") == (lost == 0))
  }

  @Test(arguments: [RecordingSplit.length(2_000_000_000), .clock(2_000_000_000)])
  func aSplitLosesNoFrame(_ split: RecordingSplit) async throws {
    let harness = try RecordingHarness(try TemporaryFolder(), policy: RecordingPolicy(split: split))
    try harness.startPublication([try SyntheticMedia.video(), try SyntheticMedia.audio()])
    try harness.send(SyntheticMedia.interleaved(seconds: 7))
    try await harness.end()
    #expect(
      harness.folder.files == [10, 12, 14, 16].map { "cam/20261121T0724\($0)Z.mp4" })
    let counts = try harness.folder.files.map { try harness.sampleCounts($0) }
    #expect(counts.map { $0[0] } == [60, 60, 60, 30])
    #expect(counts.reduce(0) { $0 + $1[1] } == 7 * 48_000 / 1024)
    let kinds = harness.events.steps
    let stops: [RecordingStop] = [.split, .split, .split, .streamEnded]
    #expect(kinds == stops.flatMap { [.started, .stopped($0), .stored] })
  }

  @Test func aRecordingEndsAtItsLongestOrLargest() async throws {
    for policy in [RecordingPolicy(maximumDuration: 3_000_000_000), RecordingPolicy(maximumBytes: 30_000)] {
      let harness = try RecordingHarness(try TemporaryFolder(), policy: policy)
      try harness.startPublication([try SyntheticMedia.video()])
      try harness.send((0..<210).map { SyntheticMedia.frame($0) })
      try await harness.settle()
      guard case .completed(let progress) = harness.recorder.state else {
        Issue.record("\(harness.recorder.state)")
        return
      }
      #expect(progress.seconds > 1 && progress.seconds <= (policy.maximumDuration == nil ? 6.5 : 3.001))
      #expect(!harness.recorder.isActive)
      try await harness.end()
      #expect(harness.folder.files == ["cam/20261121T072410Z.mp4"])
      #expect(try harness.bytes("cam/20261121T072410Z.mp4").count <= 30_000)
      let stop = policy.maximumDuration == nil ? RecordingStop.largest : .longest
      #expect(harness.events.steps == [.started, .stopped(stop), .stored])
    }
  }

  @Test func aFileThatIsRemovedWhileItIsWrittenIsTold() async throws {
    var policy = RecordingPolicy()
    policy.syncInterval = 0
    let harness = try RecordingHarness(try TemporaryFolder(), policy: policy)
    try harness.startPublication([try SyntheticMedia.video()])
    try harness.send((0..<60).map { SyntheticMedia.frame($0, group: 30) })
    try await harness.settle()
    try harness.removeFile("cam/20261121T072410Z.part.mp4")
    #expect(rmdir("\(harness.folder.path)/cam") == 0)
    try harness.send((60..<90).map { SyntheticMedia.frame($0, group: 30) })
    try await harness.settle()
    guard case .failed(_, let reason) = harness.recorder.state else {
      Issue.record("\(harness.recorder.state)")
      return
    }
    #expect(reason.contains("removed"))
    // Two seconds later the recording goes on in a folder that is made anew.
    try await Task.sleep(for: .milliseconds(2100))
    try harness.send((90..<150).map { SyntheticMedia.frame($0, group: 30) })
    try await harness.end()
    #expect(harness.folder.files == ["cam/20261121T072413Z.mp4"])
    #expect(harness.events.all.last?.facts.gaps.first?.at == 0)
  }
}
