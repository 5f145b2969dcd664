import FMP4
import Glibc
import NIOCore
@testable import Playlists
import Storage
@testable import Streams
import StreamSupport
import Support
import Testing

@Suite struct LowLatencyPlaylistTests {
  private func text(
    _ window: LiveWindow, _ rendition: Rendition = .interleaved, addressing: StreamSettings.PartAddressing = .url,
    isDelta: Bool = false
  ) -> String {
    let others: [Rendition] = rendition == .interleaved ? [] : [rendition == .video ? .audio : .video]
    let siblings = others.map { HLSMediaPlaylist.Sibling(rendition: $0, window: window) }
    return String(
      buffer: HLSMediaPlaylist(
        window: window, rendition: rendition,
        lowLatency: HLSMediaPlaylist.LowLatency(addressing: addressing, siblings: siblings, isDelta: isDelta)
      ).render())
  }

  private func lines(_ text: String, _ prefix: String) -> [Substring] {
    text.split(separator: "\n").filter { $0.hasPrefix(prefix) }
  }

  /// `seconds` of a stream on a known grid.
  private func driver(seconds: Int, layout: StreamSettings.HLSLayout = .interleaved) throws -> EpochDriver {
    var driver = EpochDriver(StreamSettings { $0.layout = layout })
    try driver.publish(seconds: seconds, isSteady: true)
    return driver
  }

  @Test func aPlaylistWithPartsIsTheGoldenOne() throws {
    try Golden.check(text(try driver(seconds: 9).epoch.window), "media-parts.m3u8")
  }

  @Test func aPlaylistWithPartsAsRangesIsTheGoldenOne() throws {
    let window = try driver(seconds: 9, layout: .separate).epoch.window
    try Golden.check(text(window, .video, addressing: .byterange), "media-ranges-video.m3u8")
    try Golden.check(text(window, .audio, addressing: .byterange), "media-ranges-audio.m3u8")
  }

  @Test func theSeparateMultivariantPlaylistAndTheKeyFramesAreTheGoldenOnes() throws {
    let view = try driver(seconds: 9, layout: .separate).epoch.view
    let multivariant = HLSMultivariantPlaylist(epoch: view, layout: .separate).render()
    try Golden.check(String(buffer: multivariant), "multivariant-separate.m3u8")
    try Golden.check(String(buffer: HLSIFramePlaylist(window: view.window).render()), "iframes.m3u8")
  }

  @Test func aDeltaLeavesOutWhatIsOlderThanTheSkipBoundaryAndNothingElse() throws {
    let window = try driver(seconds: 40).epoch.window
    let full = text(window)
    let delta = text(window, isDelta: true)
    #expect(delta.contains("#EXT-X-VERSION:9\n"))
    let skipped = try #require(
      lines(delta, "#EXT-X-SKIP:SKIPPED-SEGMENTS=").first.flatMap { Int($0.split(separator: "=")[1]) })
    // What is kept lies within 12 seconds of the end, or reaches into them.
    let growing = window.segments.last { !$0.isComplete }?.duration.seconds ?? 0
    let kept = lines(delta, "#EXTINF:").count
    #expect(Double(kept) * 2 + growing >= 12 && Double(kept - 1) * 2 + growing < 12)
    #expect(kept + skipped == lines(full, "#EXTINF:").count)
    let fullTail = full.split(separator: "\n").suffix(40)
    #expect(delta.split(separator: "\n").suffix(40).elementsEqual(fullTail))
  }

  @Test func aShortPlaylistHasNothingToSkip() throws {
    let window = try driver(seconds: 9).epoch.window
    #expect(text(window, isDelta: true) == text(window))
  }

  /// A player that has some parts of the last segment fetches the others. Shaka would play the whole segment after them.
  @Test func theEndLeavesThePartsAndTakesThePromises() throws {
    var driver = try driver(seconds: 9)
    let before = lines(text(driver.epoch.window), "#EXT-X-PART:")
    try driver.end()
    let text = text(driver.epoch.window, isDelta: true)
    let parts = lines(text, "#EXT-X-PART:")
    let kept = try #require(parts.first.flatMap(before.firstIndex(of:)))
    #expect(parts.starts(with: before[kept...]) && parts.count > 20)
    #expect(lines(text, "#EXT-X-SERVER-CONTROL:") == ["#EXT-X-SERVER-CONTROL:PART-HOLD-BACK=0.600000,HOLD-BACK=6"])
    for tag in ["PRELOAD-HINT", "SKIP", "RENDITION-REPORT"] { #expect(!text.contains("#EXT-X-\(tag)")) }
    #expect(text.hasSuffix("#EXT-X-ENDLIST\n"))
  }

  /// In both layouts, byte for byte.
  @Test(arguments: Rendition.allCases)
  func thePartsOfASegmentTogetherAreTheSegment(_ rendition: Rendition) throws {
    let window = try driver(seconds: 9, layout: .separate).epoch.window
    for segment in window.listed {
      let layout = try #require(window.layout(rendition, of: segment))
      let whole = bytes(segment.pieces(of: layout.trackID))
      let parts = segment.parts(of: layout.trackID, isAudio: false)
      // The first one of all is short.
      #expect(parts.count == (segment.sequenceNumber == 1 ? 11 : 10))
      var joined: [UInt8] = []
      for part in parts {
        let pieces = try #require(segment.pieces(ofPart: part.index, of: layout.trackID))
        #expect(bytes(pieces) == Array(whole[part.bytes]))
        joined += bytes(pieces)
      }
      #expect(joined == whole)
      #expect(segment.byteCount(of: layout.trackID) == whole.count)
      for count in 0...parts.count {
        #expect(
          Array(whole.suffix(bytes(segment.pieces(of: layout.trackID, fromFragment: count)).count))
            == bytes(segment.pieces(of: layout.trackID, fromFragment: count)))
      }
      let length = parts.reduce(0.0) { $0 + $1.duration.seconds }
      let span = layout.trackID.flatMap(segment.span).map { Double($0.duration) / Double($0.timescale) }
      #expect(abs(length - (span ?? segment.duration.seconds)) < 1e-6)
    }
  }

  @Test func theHintIsThePartThatComesNext() throws {
    var driver = EpochDriver()
    try driver.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
    var hinted: PartPosition?
    var seen = 0
    for sample in SyntheticMedia.interleaved(seconds: 20, isSteady: true) {
      let before = driver.epoch.window.edge(of: .interleaved)
      try driver.receive(.sample(sample))
      let edge = driver.epoch.window.edge(of: .interleaved)
      guard edge != before else { continue }
      // From the fourth segment on no hint is wrong.
      if let hinted, let newest = driver.epoch.window.segments.last, newest.sequenceNumber >= 4, edge.part > 0 {
        #expect(hinted == PartPosition(segment: edge.segment, part: edge.part - 1))
        seen += 1
      }
      hinted = driver.epoch.window.nextPart(of: .interleaved)
    }
    #expect(seen > 60)
  }

  // MARK: Directives

  private func verdict(_ items: [String: String], _ window: LiveWindow) throws -> HLSDirectives.Verdict {
    try HLSDirectives { items[$0] }.verdict(window, .interleaved)
  }

  @Test func positionsAreJudgedByThePlaylist() throws {
    // Four complete segments, and parts 0 to 3 of the fifth.
    let window = try driver(seconds: 9).epoch.window
    #expect(window.edge(of: .interleaved) == PartPosition(segment: 5, part: 5))
    let cases: [(msn: String, part: String?, HLSDirectives.Verdict)] = [
      ("1", nil, .now), ("4", nil, .now), ("4", "9", .now), ("5", nil, .wait), ("5", "4", .now), ("5", "5", .wait),
      ("5", "20", .wait),
      ("5", "21", .tooFar), ("4", "10", .now), ("4", "400", .now), ("6", nil, .wait), ("6", "0", .wait),
      ("6", "15", .wait), ("6", "16", .tooFar), ("7", nil, .tooFar), ("999999999999999", nil, .tooFar),
      ("0", nil, .now),
    ]
    for (msn, part, expected) in cases {
      var items = ["_HLS_msn": msn]
      items["_HLS_part"] = part
      #expect(try verdict(items, window) == expected, "_HLS_msn=\(msn) _HLS_part=\(part ?? "none")")
    }
  }

  @Test func aPartBeyondACompleteSegmentIsTheFirstOfTheNext() throws {
    var driver = try driver(seconds: 8)
    try driver.receive(.sample(SyntheticMedia.frame(240, isSteady: true)))
    let window = driver.epoch.window
    #expect(window.edge(of: .interleaved) == PartPosition(segment: 5, part: 0))
    #expect(try verdict(["_HLS_msn": "4", "_HLS_part": "10"], window) == .wait)
    #expect(try verdict(["_HLS_msn": "4", "_HLS_part": "9"], window) == .now)
  }

  @Test(arguments: ["", "-1", "x", "1.5", "+1", "9999999999999999", " 1", "0x1"])
  func aPositionThatIsNoNumberIsRefused(_ text: String) throws {
    #expect(throws: HLSDirectives.Malformed.self) { try HLSDirectives { $0 == "_HLS_msn" ? text : nil } }
    #expect(throws: HLSDirectives.Malformed.self) {
      try HLSDirectives { ["_HLS_msn": "1", "_HLS_part": text][$0] }
    }
  }

  @Test func aPartWithoutASegmentIsRefused() throws {
    #expect(throws: HLSDirectives.Malformed(detail: "_HLS_part needs _HLS_msn.")) {
      try HLSDirectives { $0 == "_HLS_part" ? "1" : nil }
    }
  }

  @Test func afterTheEndDirectivesMeanNothing() throws {
    var driver = try driver(seconds: 9)
    try driver.end()
    #expect(try verdict(["_HLS_msn": "4000"], driver.epoch.window) == .now)
  }

  @Test func namesOfPartsAreParsedStrictly() {
    #expect(MediaName.parse("12.0.m4s") == .part(PartPosition(segment: 12, part: 0)))
    #expect(MediaName.parse("12.31.m4s") == .part(PartPosition(segment: 12, part: 31)))
    for name in ["12.00.m4s", "0.1.m4s", "12..m4s", ".1.m4s", "12.-1.m4s", "12.1.2.m4s", "12.1.mp4", "012.1.m4s"] {
      #expect(MediaName.parse(name) == nil, "\(name)")
    }
  }

  private func bytes(_ pieces: [BodyPiece]) -> [UInt8] {
    pieces.flatMap { piece -> [UInt8] in
      switch piece {
      case .bytes(let buffer): return Array(buffer.readableBytesView)
      case .file(let range):
        var bytes = [UInt8](repeating: 0, count: range.length)
        let count = pread(range.file.descriptor, &bytes, range.length, off_t(range.offset))
        return count == range.length ? bytes : []
      }
    }
  }
}
