import Base
@testable import FMP4
import NIOCore
@testable import Playlists
import Storage
@testable import Streams
import StreamSupport
import Support
import Testing

@Suite struct DASHManifestTests {
  /// One element a line, so that a golden file can be read.
  static func lines(_ root: XMLElement) -> String {
    String(buffer: root.document).replacing("><", with: ">\n<")
  }

  private func manifest(_ driver: EpochDriver, _ source: DASHManifest.Source = .server) -> XMLElement {
    DASHManifest(epoch: driver.epoch.view, source: source).root(publishTime: EpochDriver.wall + 9_000_000_000)
  }

  @Test func aLiveManifestIsTheGoldenOne() throws {
    var driver = EpochDriver()
    try driver.publish(seconds: 9)
    try Golden.check(Self.lines(manifest(driver)), "manifest-live.mpd")
  }

  @Test func anInterruptionIsANewPeriodAndTheEndIsStatic() throws {
    var driver = EpochDriver()
    try driver.publish(seconds: 5)
    try driver.interrupt()
    try driver.publish(seconds: 5, wall: EpochDriver.wall + 20_000_000_000)
    try driver.end()
    try Golden.check(Self.lines(manifest(driver)), "manifest-interrupted.mpd")
  }

  @Test func theFolderOfSegmentsHasNoServerThatPatchesOrWaits() throws {
    var driver = EpochDriver()
    try driver.publish(seconds: 9)
    let root = manifest(driver, .folder)
    #expect(root["type"] == "dynamic")
    #expect(root.all("PatchLocation", "ServiceDescription", "Resync").isEmpty)
    #expect(root.all("SegmentTemplate").allSatisfy { $0["availabilityTimeOffset"] == nil })
    // A server of the folder has no /time, but a Date.
    let clocks = root.all("UTCTiming")
    #expect(!clocks.isEmpty && clocks.allSatisfy { $0["value"] == "manifest.mpd" })
    #expect(clocks.allSatisfy { $0["schemeIdUri"] == "urn:mpeg:dash:utc:http-head:2014" })
  }

  @Test func wallClockAndMediaTimeAgreeInEachPeriod() throws {
    var driver = EpochDriver()
    try driver.publish(seconds: 5)
    try driver.interrupt()
    try driver.publish(seconds: 5, wall: EpochDriver.wall + 20_000_000_000)
    let root = manifest(driver)
    let periods = root.all("Period")
    #expect(periods.map { $0["start"] } == ["PT0S", "PT20S"])
    let second = try #require(periods.last)
    for (set, timescale) in zip(second.all("AdaptationSet"), [30_000, 48_000] as [Int64]) {
      let offset = set.all("SegmentTemplate").first?["presentationTimeOffset"].flatMap { Int64($0) }
      let first = set.all("S").first?["t"].flatMap { Int64($0) }
      let reference = try #require(set.all("ProducerReferenceTime").first)
      #expect(reference["presentationTime"].flatMap { Int64($0) } == offset)
      #expect(reference["wallClockTime"] == "2026-11-21T07:24:30.123Z")
      #expect(reference.all("UTCTiming").first == root.children.first(where: { $0.name == "UTCTiming" }))
      #expect(abs(try #require(first) - (try #require(offset))) * 1000 <= timescale * 25)
    }
  }

  /// Of groups of pictures that are longer than a segment may be.
  @Test func aPeriodWithASegmentWithoutAKeyFrameSaysNothingOfThem() throws {
    var settings = StreamSettings()
    settings.targetDuration = .seconds(2)
    var driver = EpochDriver(settings)
    try driver.publish(seconds: 7, group: 180)
    try driver.interrupt()
    try driver.publish(seconds: 5, wall: EpochDriver.wall + 20_000_000_000)
    #expect(driver.epoch.window.segments.contains { !$0.isIndependent && !$0.isOutage })
    let said = manifest(driver).all("Period").map { $0.all("AdaptationSet").map { $0["startWithSAP"] } }
    #expect(said == [[nil, "1"], ["1", "1"]])
  }

  /// AAC's channel configurations 1 to 7, and 11 for 6.1. What is 8 in the older scheme are two channels.
  @Test(arguments: [(1, 1, 1), (2, 2, 2), (6, 6, 6), (11, 7, 11), (7, 8, 12), (13, 24, 13)] as [(UInt8, Int, Int)])
  func theChannelsAreToldByTheirConfiguration(_ configuration: UInt8, _ channels: Int, _ told: Int) throws {
    let record = [0x11, 0x80 | configuration << 3]
    let audio = TrackDescription(
      id: .audio, codec: Codec(try AAC.Configuration(record: ByteBuffer(bytes: record))), timescale: 48_000)
    #expect(audio.codec.audio?.channels == channels)
    var driver = EpochDriver()
    driver.epoch.startPublication()
    try driver.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: EpochDriver.wall)))
    try driver.receive(.tracks([try SyntheticMedia.video(), audio]))
    for sample in SyntheticMedia.interleaved(seconds: 5) { try driver.receive(.sample(sample)) }
    let found = try #require(manifest(driver).all("AudioChannelConfiguration").first)
    #expect(found["value"] == String(told))
    #expect(found["schemeIdUri"]?.contains("cicp") == (channels > 6))
  }

  // MARK: The segment in the making

  @Test func theSegmentInTheMakingIsListedWithTheLengthThatItWillHave() throws {
    var making = try Making()
    try making.complete(segments: 2)
    #expect(making.view.window.announced == nil)
    try making.fragments(1)
    let root = making.manifest
    #expect(root.entries("video") == [0, 60_000, 120_000].map { ["t": "\($0)", "d": "60000"] })
    // The 94th frame of audio of each segment begins before its last frame of video ends.
    #expect(root.entries("audio") == [0, 96_256, 192_512].map { ["t": "\($0)", "d": "96256"] })
    for template in root.all("SegmentTemplate") {
      #expect(template["availabilityTimeOffset"] == "1.8")
      #expect(template["availabilityTimeComplete"] == "false")
    }
    let latencies = root.all("Latency")
    #expect(latencies.count == 2)
    for latency in latencies {
      #expect(latency["target"] == "2800" && latency["min"] == "2200" && latency["max"] == "6000")
      #expect(latency["referenceId"] == root.all("ProducerReferenceTime").first?["id"])
    }
    #expect(root.all("Resync").map { $0["dT"] } == ["6000", "9600"])
  }

  @Test func whatWasListedOfItIsWhatItBecomes() throws {
    var making = try Making()
    try making.complete(segments: 7)
    var listed: [String: [String: String]] = [:]
    for _ in 0..<12 {
      try making.fragments(1)
      for kind in ["video", "audio"] {
        for (time, duration) in making.manifest.expandedEntries(kind) {
          let known = listed[kind, default: [:]][time]
          #expect(known == nil || known == duration, "\(kind) at \(time)")
          listed[kind, default: [:]][time] = duration
        }
      }
      if making.fragmentsInSegment == 10 { making.completeSegment() }
    }
    for segment in making.view.window.segments where segment.isComplete {
      for span in segment.spans {
        #expect(span.announced == LiveSegment.Listing(start: span.start, duration: span.duration))
      }
    }
  }

  @Test func aSegmentThatIsCutShortEndsItsPeriodAndIsListedAsLongAsItIs() throws {
    var making = try Making()
    try making.complete(segments: 2)
    try making.fragments(3)
    let before = making.manifest.expandedEntries("video")
    making.completeSegment()
    making.end()
    let root = making.manifest
    #expect(root.expandedEntries("video").map(\.0) == before.map(\.0))
    #expect(before.map(\.1) == ["60000", "60000", "60000"])
    #expect(root.expandedEntries("video").map(\.1) == ["60000", "60000", "18000"])
    #expect(root["type"] == "static")
    #expect(root["mediaPresentationDuration"] == "PT4.6S")
    #expect(root.all("ServiceDescription", "PatchLocation", "UTCTiming").filter { $0.name != "UTCTiming" }.isEmpty)
    #expect(root.all("SegmentTemplate").allSatisfy { $0["availabilityTimeOffset"] == nil })
  }

  @Test func whatFollowsAWrongAnnouncementIsAPeriodThatContinuesTheMedia() throws {
    var making = try Making()
    try making.complete(segments: 2)
    // A key frame comes after 1.6 s.
    try making.fragments(8)
    making.completeSegment()
    try making.complete(segments: 1)
    let periods = making.manifest.all("Period")
    #expect(periods.map { $0["id"] } == ["0", "1"])
    #expect(periods.map { $0["start"] } == ["PT0S", "PT5.6S"])
    #expect(
      periods[0].entries("video")
        == [(0, 60_000), (60_000, 60_000), (120_000, 48_000)].map {
          ["t": "\($0.0)", "d": "\($0.1)"]
        })
    #expect(periods[1].entries("video") == [["t": "168000", "d": "60000"]])
    #expect(periods[1].all("SegmentTemplate").map { $0["presentationTimeOffset"] } == ["168000", "268800"])
    #expect(periods[1].all("SupplementalProperty").map { $0["value"] } == ["0", "0"])
    #expect(making.view.window.segments.allSatisfy { !$0.followsDiscontinuity })
  }

  @Test func theSegmentBehindTheOneInTheMakingHasItsAddressAlready() throws {
    var making = try Making()
    try making.complete(segments: 1)
    try making.fragments(1)
    let window = making.view.window
    #expect(window.sequenceNumber(ofTime: 60_000, .video, initVersion: 1) == 2)
    #expect(window.sequenceNumber(ofTime: 120_000, .video, initVersion: 1) == 3)
    #expect(window.sequenceNumber(ofTime: 192_512, .audio, initVersion: 1) == 3)
    #expect(window.sequenceNumber(ofTime: 90_000, .video, initVersion: 1) == nil)
    #expect(window.sequenceNumber(ofTime: 60_000, .video, initVersion: 2) == nil)
  }

  @Test func aNumberThatComesAgainInAnotherTimescaleHasAnotherName() throws {
    var driver = EpochDriver()
    try driver.publish(seconds: 4)
    try driver.interrupt()
    // The video's second segment began at 60 000 of 30 000 ticks a second. Now the media are 4 s long: 60 000 of 15 000.
    driver.epoch.startPublication()
    let again = try SyntheticMedia.video(timescale: 15_000, frameDuration: 500)
    try driver.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: EpochDriver.wall + 9_000_000_000)))
    try driver.receive(.tracks([again]))
    for index in 0..<130 { try driver.receive(.sample(SyntheticMedia.frame(index, duration: 500))) }
    let window = driver.epoch.window
    let starts = window.segments.compactMap { segment in
      segment.span(of: .video).map { (segment.sequenceNumber, segment.initVersion, $0.start) }
    }
    let same = starts.filter { $0.2 == 60_000 }
    try #require(same.count == 2, "\(starts)")
    #expect(same.map(\.1) == [1, 2])
    for (number, version, time) in same {
      #expect(window.sequenceNumber(ofTime: time, .video, initVersion: version) == number)
    }
    let templates = manifest(driver).all("SegmentTemplate").compactMap { $0["media"] }.filter { $0.contains("video") }
    #expect(templates == ["epoch1/video/t1-$Time$.m4s", "epoch1/video/t2-$Time$.m4s"])
  }

  @Test func aSegmentOfUnknownLengthIsListedWhenItIsComplete() throws {
    var making = try Making(expectedDuration: nil)
    try making.complete(segments: 2)
    try making.fragments(4)
    let root = making.manifest
    #expect(root.expandedEntries("video").count == 2)
    #expect(root.all("SegmentTemplate").allSatisfy { $0["availabilityTimeOffset"] == nil })
    #expect(root.all("Resync").isEmpty)
    let targets = root.all("Latency").map { $0["target"] }
    #expect(targets == ["6000", "6000"], "players are told how late is too late all the same")
  }

  /// Shaka Player measures from a point that is 6 s behind its edge, so it would play at 0.96 times the speed for minutes. It
  /// follows one description alone, and later the first of several. dash.js follows that with the scope, ExoPlayer the last.
  @Test(arguments: [true, false])
  func onlyWhoKnowsTheScopeOfLowLatencyIsToldToPlaySlower(isInChunks: Bool) throws {
    var making = try Making(expectedDuration: isInChunks ? MediaTime(ticks: 60_000, timescale: 30_000) : nil)
    try making.complete(segments: 2)
    try making.fragments(1)
    let descriptions = making.manifest.all("ServiceDescription")
    #expect(descriptions.map { $0["id"] } == ["0", "1"])
    #expect(descriptions.map { $0.all("PlaybackRate").map { $0["min"] } } == [["1"], ["0.96"]])
    #expect(descriptions.map { $0.all("PlaybackRate").map { $0["max"] } } == [["1.04"], ["1.04"]])
    let scopes = descriptions.map { $0.all("Scope").map { $0["schemeIdUri"] } }
    #expect(scopes == [[], ["urn:dvb:dash:lowlatency:scope:2019"]])
    #expect(descriptions.last?.children.first?.name == "Scope", "the schema has it before the others")
    #expect(Set(descriptions.flatMap { $0.all("Latency").map { $0["target"] } }).count == 1)
  }

  /// Shaka Player looks for audio at the beginning of the timeline.
  @Test(arguments: [(1, "PT0S", "0"), (30, "PT0S", "0"), (31, "PT1.033S", "31000")])
  func `the first Period begins with audio before video`(_ lead: Int, _ start: String, _ offset: String) throws {
    var making = try Making(lead: lead)
    try making.complete(segments: 2)
    let root = making.manifest
    #expect(root.all("Period").map { $0["start"] } == [start])
    #expect(root.all("SegmentTemplate").first?["presentationTimeOffset"] == offset)
    #expect(root.entries("video").first?["t"] == "\(lead * 1000)" && root.entries("audio").first?["t"] == "0")
  }

  @Test func audioOfUnevenFramesIsListedWhenItIsComplete() throws {
    var making = try Making(audioDurations: [960, 480])
    try making.complete(segments: 2)
    try making.fragments(2)
    #expect(making.manifest.expandedEntries("video").count == 3)
    #expect(making.manifest.expandedEntries("audio").count == 2)
  }

  @Test func theFolderOfSegmentsListsNoneInTheMaking() throws {
    var making = try Making()
    try making.complete(segments: 2)
    try making.fragments(2)
    let root = DASHManifest(epoch: making.view, source: .folder).root(publishTime: 0)
    #expect(root.expandedEntries("video").count == 2)
    #expect(root.all("SegmentTemplate").allSatisfy { $0["availabilityTimeOffset"] == nil })
  }
}

/// A window that is filled fragment by fragment, 200 ms each, with groups of 2 s whose length is known beforehand. Audio begins at 0,
/// video after `lead` frames of 1/30 s.
struct Making {
  private var window = LiveWindow(length: MediaTime(milliseconds: 60_000))
  private let expectedDuration: MediaTime?
  private let audioDurations: [UInt32]
  private var frame = 0
  private var audio: Int64 = 0
  private var audioSamples = 0
  private(set) var fragmentsInSegment = 0
  var publicURL: PublicURL?

  init(
    expectedDuration: MediaTime? = MediaTime(ticks: 60_000, timescale: 30_000), audioDurations: [UInt32] = [1024],
    lead: Int = 0
  ) throws {
    frame = lead
    self.expectedDuration = expectedDuration
    self.audioDurations = audioDurations
    window.setTargetDuration(2)
    window.setPartTarget(MediaTime(milliseconds: 200))
    window.add(InitSegment(version: 1, tracks: [try SyntheticMedia.video(), try SyntheticMedia.audio()]))
  }

  var view: EpochView {
    EpochView(
      id: "epoch1", window: window, availabilityStart: EpochDriver.wall, publicURL: publicURL)
  }

  var manifest: XMLElement { DASHManifest(epoch: view, source: .server).root(publishTime: 1_795_245_850_123) }

  mutating func complete(segments: Int) throws {
    for _ in 0..<segments {
      try fragments(10)
      completeSegment()
    }
  }

  mutating func completeSegment() {
    window.completeNewest()
    fragmentsInSegment = 0
  }

  mutating func end() { window.end() }

  mutating func fragments(_ count: Int) throws {
    for _ in 0..<count { try fragment() }
  }

  private mutating func fragment() throws {
    let start = Int64(frame) * 1000
    let video = TrackRun(
      track: .video, timescale: 30_000, baseDecodeTime: start,
      samples: (0..<6).map { RunSample(size: 10, duration: 1000, compositionOffset: 0, isSync: $0 == 0) },
      byteCount: 60,
      duration: 6000)
    frame += 6
    var samples: [RunSample] = []
    let audioStart = audio
    while audio < Int64(frame) * 1600 {
      let duration = audioDurations[audioSamples % audioDurations.count]
      samples.append(RunSample(size: 5, duration: duration, compositionOffset: 0, isSync: true))
      audio += Int64(duration)
      audioSamples += 1
    }
    let audio = TrackRun(
      track: .audio, timescale: 48_000, baseDecodeTime: audioStart, samples: samples, byteCount: samples.count * 5,
      duration: audio - audioStart)
    var fragment = Fragment(
      sequenceNumber: UInt32(frame), startsSegment: fragmentsInSegment == 0, isIndependent: fragmentsInSegment == 0,
      leader: .video, runs: [video, audio], payloads: [ByteBuffer(repeating: 0, count: 60 + samples.count * 5)],
      start: MediaTime(ticks: start, timescale: 30_000), duration: MediaTime(milliseconds: 200),
      end: MediaTime(ticks: start + 6000, timescale: 30_000))
    fragment.expectedSegmentDuration = expectedDuration
    if fragment.startsSegment {
      window.open(
        fragment, initVersion: 1, followsDiscontinuity: false,
        wallStart: EpochDriver.wall + fragment.start.nanoseconds,
        memory: try SegmentMemory(in: SegmentStore(name: "test")))
    }
    _ = try window.withNewest { segment throws(StorageError) in
      let offset = try segment.memory.append(fragment.payloads)
      segment.add(fragment, at: offset, headLength: 0, singleHeads: [ByteBuffer(), ByteBuffer()])
    }
    fragmentsInSegment += 1
  }
}

extension XMLElement {
  /// All elements of these names, at any depth, in their order.
  func all(_ names: String...) -> [XMLElement] { descendants.filter { names.contains($0.name) } }

  private var descendants: [XMLElement] { [self] + children.flatMap(\.descendants) }

  /// The attributes of the `S` elements of a representation.
  func entries(_ id: String) -> [[String: String]] {
    let representation = all("Representation").filter { $0["id"] == id }
    return representation.flatMap { $0.all("S") }.map { element in
      Dictionary(uniqueKeysWithValues: element.attributes.map { ($0.name, $0.value) })
    }
  }

  /// Time and duration of each segment of a representation.
  func expandedEntries(_ id: String) -> [(String, String)] {
    entries(id).flatMap { entry -> [(String, String)] in
      guard let start = entry["t"].flatMap({ Int($0) }), let duration = entry["d"].flatMap({ Int($0) }) else {
        return []
      }
      let count = (entry["r"].flatMap { Int($0) } ?? 0) + 1
      return (0..<count).map { (String(start + $0 * duration), String(duration)) }
    }
  }
}
