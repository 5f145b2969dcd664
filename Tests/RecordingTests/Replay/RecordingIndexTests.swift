import FMP4
import HTTP
import NIOCore
@testable import Recording
@testable import RecordingFiles
import RecordingSupport
import ServerSupport
import Streams
import Support
import Testing

@Suite struct RecordingIndexTests {
  /// Records that many seconds, and gives the index as the recorder made it and the recording opened from its file.
  private func record(
    seconds: Int, in folder: TemporaryFolder, interruptAt: Int? = nil
  ) async throws -> (written: RecordingIndex, opened: ReplaySource) {
    let archive = RecordingArchive(folder: folder.path)
    let harness = try RecordingHarness(folder, archive: archive)
    try harness.startPublication([try SyntheticMedia.video(), try SyntheticMedia.audio()])
    try harness.send(SyntheticMedia.interleaved(seconds: seconds, offset: 1000, isSteady: true))
    if interruptAt != nil {
      try harness.interrupt()
      try harness.startPublication(
        [try SyntheticMedia.video(), try SyntheticMedia.audio()], wall: RecordingHarness.start + 60_000_000_000)
      try harness.send(SyntheticMedia.interleaved(seconds: seconds, offset: 1000, isSteady: true))
    }
    try await harness.settle()
    let growing = try #require(try archive.open(harness.stream, "20261121T072410Z"))
    #expect(!growing.isOver)
    try await harness.end()
    #expect(growing.isOver)
    let fresh = RecordingArchive(folder: folder.path)
    let opened = try #require(try fresh.open(harness.stream, "20261121T072410Z"))
    return (growing.withIndex { copy $0 }, opened)
  }

  @Test(arguments: TemporaryFolder.Place.allCases)
  func aFinishedFileKeepsTheIndexOfItsRecorder(_ place: TemporaryFolder.Place) async throws {
    let (written, opened) = try await record(seconds: 9, in: try TemporaryFolder(place), interruptAt: 9)
    let read = opened.withIndex { copy $0 }
    #expect(written.segments.count >= 8)
    #expect(read.segments == written.segments)
    #expect(read.spans == written.spans)
    #expect(read.anchors.map(\.segment) == written.anchors.map(\.segment))
    #expect(read.versions.map(\.tracks) == written.versions.map(\.tracks))
    #expect(written.targetDuration != nil && read.targetDuration == written.targetDuration)
    #expect(written.segments.filter { $0.flags.contains(.followsDiscontinuity) }.count == 1)
  }

  @Test func whatIsNotWrittenYetIsKnownByItsTimeAndByTheClock() async throws {
    let (written, _) = try await record(seconds: 9, in: try TemporaryFolder())
    let length = written.end - written.origin
    let last = try #require(written.segments.last)
    let edge = last.wallStart &+ written.duration(of: last).nanoseconds
    let second = MediaTime(milliseconds: 1000)
    let moments: [(ReplaySource.Moment, Double)] = [
      (.media(length + second), 1), (.media(length), 0), (.media(second), 1 - length.seconds),
      (.wall(edge &+ 1_500_000_000), 1.5), (.wall(edge), 0), (.wall(edge &+ -500_000_000), -0.5),
    ]
    for (moment, seconds) in moments {
      #expect(abs(written.missing(until: moment).seconds - seconds) < 0.001, "\(moment)")
    }
    #expect(RecordingIndex().missing(until: .media(second)) == .zero, "of nothing there is no clip")
  }

  @Test func theFragmentsAloneTellTheSameIndex() async throws {
    let (written, opened) = try await record(seconds: 9, in: try TemporaryFolder())
    let last = try #require(written.segments.last)
    let walked = try opened.reader.index(length: last.offset + UInt64(last.length))
    #expect(walked.segments == written.segments)
    #expect(walked.spans == written.spans)
  }

  /// A playlist's promise stays what it was while the recording was written (RFC 8216bis §6.2.1).
  @Test func theTargetDurationOutlivesTheRecording() async throws {
    let (written, opened) = try await record(seconds: 5, in: try TemporaryFolder())
    var promised = written
    promised.targetDuration = 6
    let tracks = written.versions[0].tracks
    let read = try #require(RecordingIndex(stored: promised.stored, length: 1 << 40) { _ in tracks })
    #expect(read.targetDuration == 6 && promised.stored.readableBytes == promised.storedSize)
    let source = ReplaySource(stream: opened.stream, name: "x", file: opened.reader.file, index: read)
    for document in [ReplayDocument.media(.interleaved), .keyFrames] {
      let text = String(buffer: try #require(source.document(document, target: nil)).body)
      #expect(text.contains("#EXT-X-TARGETDURATION:6\n"), "\(document)")
    }
    // Files of earlier versions do not tell.
    var old = promised.stored
    old.moveReaderIndex(forwardBy: 16)
    let slice = old.readSlice(length: old.readableBytes - 4)
    var covered = try #require(slice)
    var sum: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in covered.readableBytesView { sum = (sum ^ UInt64(byte)) &* 0x100_0000_01b3 }
    var stored = ByteBuffer(string: "weir-ix1")
    stored.writeInteger(sum)
    stored.writeBuffer(&covered)
    #expect(RecordingIndex.size(ofStored: stored) == stored.readableBytes)
    let known = try #require(RecordingIndex(stored: stored, length: 1 << 40) { _ in tracks })
    #expect(known.segments == written.segments && known.targetDuration == nil)
  }

  @Test func anIndexThatWasDamagedIsNotBelieved() async throws {
    let (written, _) = try await record(seconds: 5, in: try TemporaryFolder())
    let stored = written.stored
    let tracks = written.versions[0].tracks
    let length = UInt64(1) << 40
    #expect(RecordingIndex(stored: stored, length: length) { _ in tracks }?.segments == written.segments)
    for at in stride(from: 0, to: stored.readableBytes, by: 7) {
      var damaged = stored
      damaged.setInteger(stored.getInteger(at: at, as: UInt8.self).map { $0 ^ 0x40 } ?? 0, at: at)
      #expect(RecordingIndex(stored: damaged, length: length) { _ in tracks } == nil, "byte \(at)")
      #expect(
        RecordingIndex(stored: stored.getSlice(at: 0, length: at) ?? stored, length: length) { _ in tracks } == nil)
    }
    #expect(RecordingIndex(stored: stored, length: 1000) { _ in tracks } == nil)
  }

  @Test func aSegmentOnDiskHasTheBytesThatItHadInMemory() async throws {
    let folder = try TemporaryFolder()
    let archive = RecordingArchive(folder: folder.path, rewind: { _ in MediaTime(milliseconds: 3_600_000) })
    let harness = try RecordingHarness(folder, archive: archive)
    try harness.startPublication([try SyntheticMedia.video(), try SyntheticMedia.audio()])
    try harness.send(SyntheticMedia.interleaved(seconds: 9, offset: 1000))
    try await harness.settle()
    let window = harness.window
    let epoch = try #require(archive.epoch("e"))
    var compared = 0
    for segment in window.segments where segment.isComplete {
      guard let (source, index) = epoch.find(segment.sequenceNumber) else { continue }
      for rendition in Rendition.allCases {
        let layout = try #require(window.layout(rendition, of: segment))
        let found = try #require(try source.pieces(ofSegment: index, rendition))
        #expect(try found.read() == segment.pieces(of: layout.trackID).read())
        compared += 1
      }
    }
    #expect(compared >= 9)
  }
}
