import FMP4
import HTTP
import Logging
import NIOCore
import Publishing
@testable import Recording
import RecordingSupport
import ServerSupport
@testable import Streams
import StreamSupport
import Support
import Testing

/// What a time-shift buffer and a recording have of a stream whose tracks come, go and change while others go on.
@Suite struct ChangedTracksRewindTests {
  private static let further = TrackID(.audio, 2)

  private func tracks(_ language: String? = nil) throws -> [TrackDescription] {
    var tracks = [try SyntheticMedia.video(), try SyntheticMedia.audio()]
    if let language {
      var further = try SyntheticMedia.audio(Self.further)
      further.language = language
      tracks.append(further)
    }
    return tracks
  }

  /// Eighteen seconds: a further audio from 5 s on, another one in its place from 9 s on, and none from 13 s on. All of it is
  /// in the time-shift buffer.
  private func rewound(in folder: TemporaryFolder) async throws -> (archive: RewindArchive, window: LiveWindow) {
    let archive = RecordingArchive(folder: nil, rewind: { _ in MediaTime(milliseconds: 3_600_000) })
    let stream = try #require(StreamName("cam"))
    archive.begin(epoch: "epoch1", of: stream)
    let buffers = TimeShiftBuffers(
      folder: folder.path, keepFree: 0, archive: archive,
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    let buffer = buffers.make(stream, epoch: "epoch1")
    var settings = StreamSettings()
    settings.layout = .separate
    var driver = EpochDriver(settings)
    driver.epoch.startPublication()
    try driver.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: EpochDriver.wall)))
    try driver.receive(.tracks(try tracks()))
    var changes = [(5, try tracks("deu")), (9, try tracks("fra")), (13, try tracks())]
    var hasFurther = false
    for sample in SyntheticMedia.interleaved(seconds: 18, isSteady: true, furtherAudios: [Self.further]) {
      if let (second, next) = changes.first, sample.track == .video, sample.decodeTime >= Int64(second) * 30_000 {
        changes.removeFirst()
        hasFurther = next.count > 2
        try driver.receive(.tracks(next))
      }
      if sample.track != Self.further || hasFurther { try driver.receive(.sample(sample)) }
    }
    try driver.end()
    for event in driver.events { buffer.receive(event) }
    let window = driver.epoch.window
    let last = try #require(window.segments.last { $0.isComplete }?.sequenceNumber)
    let rewind = try #require(archive.epoch("epoch1"))
    for _ in 0..<1000 where rewind.find(last) == nil { try await Task.sleep(for: .milliseconds(10)) }
    try #require(last == 9 && rewind.find(last) != nil)
    return (rewind, window)
  }

  private func lines(_ archive: RewindArchive, _ rendition: Rendition, _ window: LiveWindow) -> [Substring] {
    String(buffer: archive.playlist(rendition, window).body).split(separator: "\n")
  }

  @Test func aTrackThatStaysKeepsItsInitSegmentAndItsNames() async throws {
    let folder = try TemporaryFolder()
    let (archive, window) = try await rewound(in: folder)
    for rendition in Rendition.allCases {
      let lines = lines(archive, rendition, window)
      #expect(lines.filter { $0.hasPrefix("#EXT-X-MAP") } == ["#EXT-X-MAP:URI=\"init-1.mp4\""], "\(rendition)")
      #expect(!lines.contains { $0.hasPrefix("#EXT-X-DISCONTINUITY") || $0 == "#EXT-X-GAP" }, "\(rendition)")
      #expect(archive.initSegment(1, rendition) == window.initBytes(1, rendition), "\(rendition)")
      // What the live playlist calls a segment, the rewind playlist does.
      let live = window.segments.map { "\(window.name(of: $0, in: rendition).text)" }
      #expect(lines.filter { $0.hasSuffix(".m4s") }.map(String.init) == live, "\(rendition)")
    }
  }

  @Test func aTrackThatComesChangesAndGoesHasItsOwnInitSegmentsAndGaps() async throws {
    let folder = try TemporaryFolder()
    let (archive, window) = try await rewound(in: folder)
    let rendition = Rendition.further(.audio, 2)
    let lines = lines(archive, rendition, window)
    #expect(
      lines.filter { $0.hasPrefix("#EXT-X-MAP") } == ["#EXT-X-MAP:URI=\"init-2.mp4\"", "#EXT-X-MAP:URI=\"init-3.mp4\""])
    #expect(lines.count { $0 == "#EXT-X-GAP" } == 3 + 2 && !lines.contains { $0.hasPrefix("#EXT-X-DISCONTINUITY") })
    for version in [2, 3] {
      #expect(archive.initSegment(version, rendition) == window.initBytes(version, rendition))
    }
    #expect(archive.initSegment(1, rendition) == nil && archive.initSegment(4, rendition) == nil)
  }

  /// The first audio goes and comes again, beside another one; then a file begins, as where a recording is asked for.
  @Test func aFileThatBeginsLaterCountsTheChangesOfTheDefaultTracksBeforeIt() async throws {
    let folder = try TemporaryFolder()
    let archive = RecordingArchive(folder: nil, rewind: { _ in MediaTime(milliseconds: 3_600_000) })
    let stream = try #require(StreamName("cam"))
    archive.begin(epoch: "epoch1", of: stream)
    let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    let buffer = TimeShiftBuffers(folder: folder.path, keepFree: 0, archive: archive, logger: logger)
      .make(stream, epoch: "epoch1")
    var settings = StreamSettings()
    settings.layout = .separate
    var driver = EpochDriver(settings)
    driver.epoch.startPublication()
    try driver.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: EpochDriver.wall)))
    let all = try tracks("deu")
    try driver.receive(.tracks(all))
    var changes = [(5, all.filter { $0.id != .audio }), (9, all)]
    var present = all
    for sample in SyntheticMedia.interleaved(seconds: 18, isSteady: true, furtherAudios: [Self.further]) {
      if let (second, next) = changes.first, sample.track == .video, sample.decodeTime >= Int64(second) * 30_000 {
        changes.removeFirst()
        present = next
        try driver.receive(.tracks(next))
      }
      if present.contains(where: { $0.id == sample.track }) { try driver.receive(.sample(sample)) }
    }
    try driver.end()
    let window = driver.epoch.window
    #expect(window.discontinuities == 2 && window.discontinuitySequence(of: .video) == 0)
    // It begins with the last but one segment.
    let first = try #require(window.segments.dropLast().last?.sequenceNumber)
    buffer.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: EpochDriver.wall)))
    buffer.receive(.initialization(try #require(window.currentInit)))
    var hasBegun = false
    for event in driver.events {
      if case .fragment(let fragment) = event, fragment.sequenceNumberOfSegment >= first { hasBegun = true }
      if hasBegun { buffer.receive(event) }
    }
    let rewind = try #require(archive.epoch("epoch1"))
    for _ in 0..<1000 where rewind.find(first) == nil { try await Task.sleep(for: .milliseconds(10)) }
    let own = lines(rewind, .interleaved, window)
    #expect(own.contains("#EXT-X-MEDIA-SEQUENCE:\(first)") && own.contains("#EXT-X-DISCONTINUITY-SEQUENCE:2"), "\(own)")
    #expect(!own.contains("#EXT-X-DISCONTINUITY"))
    for rendition in [Rendition.video, .further(.audio, 2)] {
      #expect(!lines(rewind, rendition, window).contains { $0.hasPrefix("#EXT-X-DISCONTINUITY") }, "\(rendition)")
    }
  }

  /// Versions differ in their number of tracks.
  @Test func eachSegmentHasTheBytesOfTheLiveOneByItsLiveName() async throws {
    let folder = try TemporaryFolder()
    let (archive, window) = try await rewound(in: folder)
    var compared = 0
    for segment in window.segments {
      for rendition in Rendition.allCases + [.further(.audio, 2)] {
        guard let layout = window.layout(rendition, of: segment) else { continue }
        var found = archive.find(segment.sequenceNumber)
        if case .time(let time, let version) = window.name(of: segment, in: rendition) {
          found = archive.find(time: time, initVersion: version, rendition)
        }
        let (source, index) = try #require(found, "\(rendition) of \(segment.sequenceNumber)")
        let bytes = try source.pieces(ofSegment: index, rendition)?.read()
        #expect(try bytes == segment.pieces(of: layout.trackID).read(), "\(rendition) of \(segment.sequenceNumber)")
        compared += 1
      }
    }
    #expect(compared == 9 * 3 + 4)
  }

  /// Where a recording's file goes on without a default track that viewers got anew, its segments have other bytes than theirs.
  @Test func `A file without the new first audio has no segment that is rewound to`() throws {
    let all = try tracks("deu")
    var settings = StreamSettings()
    settings.layout = .separate
    var driver = EpochDriver(settings)
    driver.epoch.startPublication()
    try driver.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: EpochDriver.wall)))
    try driver.receive(.tracks(all))
    for sample in SyntheticMedia.interleaved(seconds: 6, isSteady: true, furtherAudios: [Self.further]) {
      try driver.receive(.sample(sample))
    }
    var ends: [SegmentEnd] = []
    for case .segmentEnd(let view) in driver.events {
      if let end = SegmentEnd(view) { ends.append(end) }
    }
    let end = try #require(ends.last)
    var french = all
    french[1].language = "fra"
    let replaced = try #require(ChosenTracks(keeping: all, of: InitSegment(version: 2, tracks: french)))
    #expect(end.fragmentCount > 0 && replaced.end(end).fragmentCount == 0)
    // One that has come beside them changes nothing for those that were there.
    let added = try #require(ChosenTracks(keeping: try tracks(), of: InitSegment(version: 2, tracks: all)))
    #expect(added.end(end) == end)
  }

  /// Segments of ten seconds, the second of which begins without a key frame. The tracks change in the first one.
  @Test func aRecordingLosesNoFrameWhereTracksChangeInALongGroupOfPictures() async throws {
    let folder = try TemporaryFolder()
    let harness = try RecordingHarness(folder)
    try harness.startPublication(try tracks())
    var isChanged = false
    for sample in SyntheticMedia.interleaved(seconds: 40, group: 450, isSteady: true) {
      try harness.receive(.sample(sample))
      guard sample.track == .audio, sample.decodeTime >= 5 * 48_000 else { continue }
      if !isChanged { try harness.receive(.tracks(try tracks("deu"))) }
      isChanged = true
      var further = sample
      further.track = Self.further
      try harness.receive(.sample(further))
    }
    #expect(harness.window.segments.contains { !$0.isIndependent })
    try await harness.end()
    let counts = try folder.files.filter { $0.hasSuffix(".mp4") }.sorted().map { try harness.sampleCounts($0) }
    #expect(counts.map(\.count) == [2, 3])
    #expect(counts.map { $0[0] } == [450, 750], "\(counts)")
  }
}

extension LiveWindow {
  fileprivate func initBytes(_ version: Int, _ rendition: Rendition) -> ByteBuffer? {
    guard let initSegment = inits[version] else { return nil }
    return rendition.kind == nil
      ? initSegment.interleaved : rendition.track(in: initSegment.tracks).map(initSegment.single)
  }
}
