import FMP4
import HTTP
import NIOCore
@testable import Playlists
@testable import Streams
import StreamSupport
import Support
import Testing

@Suite struct DASHHistoryTests {
  private let now = EpochDriver.wall

  private func publishTime(_ response: PreencodedResponse) throws -> String {
    try #require(String(buffer: response.body).firstMatch(of: #/ publishTime="([^"]*)"/#)).1.description
  }

  @Test func theTimeOfPublicationMovesWithEachChangeAndNeverBack() throws {
    var making = try Making()
    var history = DASHHistory()
    try making.complete(segments: 2)
    var published: [String] = []
    var clock = now
    for step in 0..<40 {
      // The clock stands still for a while, and once it goes back.
      clock = clock &+ (step < 20 ? 0 : step == 25 ? -5_000_000_000 : 200_000_000)
      try making.fragments(1)
      if making.fragmentsInSegment == 10 { making.completeSegment() }
      published.append(try publishTime(history.manifest(of: making.view, at: clock)))
    }
    #expect(published == published.sorted())
    // A segment's first fragment changes what is listed; what follows of it changes nothing.
    #expect(Set(published).count == 4)
  }

  @Test func theSameManifestIsTheSameResponse() throws {
    var making = try Making()
    var history = DASHHistory()
    try making.complete(segments: 2)
    try making.fragments(1)
    let first = history.manifest(of: making.view, at: now)
    try making.fragments(1)
    #expect(history.manifest(of: making.view, at: now + 1_000_000_000) === first)
  }

  /// What a player of patches has: the manifest that it began with, and what its patches made of it.
  private func following(_ root: XMLElement, _ patch: XMLElement) throws -> XMLElement {
    #expect(patch["mpdId"] == root["id"] && patch["originalPublishTime"] == root["publishTime"])
    for operation in patch.children {
      let selector = operation["sel"] ?? ""
      #expect(
        selector == "/MPD/@publishTime" || selector == "/MPD/PatchLocation[1]"
          || selector.wholeMatch(of: #/\/MPD\/Period\[@id='\d+'\]\/.*\/SegmentTimeline\/S\[\d+\]/#) != nil,
        "\(selector) is no matter of patches")
    }
    let reached = try patch.children.reduce(root) { try $0.applying($1) }
    #expect(reached["publishTime"] == patch["publishTime"])
    return reached
  }

  @Test func aPatchLeadsToExactlyTheNewestManifestOrTakesItsOwnAddressAway() throws {
    var driver = EpochDriver(StreamSettings { $0.window = MediaTime(milliseconds: 16_000) })
    var history = DASHHistory()
    var editions: [(time: Int64, root: XMLElement)] = []
    var (exact, ended) = (0, 0)
    func check() throws {
      let latest = try XMLText.parse(
        String(buffer: history.manifest(of: driver.epoch.view, at: now).body))
      for edition in editions.suffix(DASHHistory.limit - 1) where edition.time > 0 {
        let response = history.patch(from: WallTime(milliseconds: edition.time), of: driver.epoch.view, at: now)
        let reached = try following(edition.root, try XMLText.parse(String(buffer: response.body)))
        if reached.all("PatchLocation").isEmpty {
          ended += 1
        } else {
          exact += 1
          #expect(reached.canonical == latest.withDirectClock(of: edition.root).canonical)
        }
      }
      let location = latest.all("PatchLocation").first?.text ?? "=0"
      editions.append((Int64(location.split(separator: "=").last ?? "") ?? 0, latest))
    }
    for part in 0..<6 {
      for seconds in [3, 5, 2] {
        try driver.publish(seconds: seconds, wall: EpochDriver.wall + Int64(part) * 30_000_000_000)
        try check()
        try driver.interrupt()
        try check()
      }
    }
    try driver.end()
    try check()
    #expect(Set(editions.map { $0.root.all("Period").map { $0["id"] } }).count > 5, "Periods came and went")
    #expect(editions.last?.root["type"] == "static")
    #expect(ended > 20)
  }

  @Test func aSteadyStreamIsPatchedForAsLongAsItLasts() throws {
    var making = try Making()
    var history = DASHHistory()
    var root: XMLElement?
    var (exact, ended) = (0, 0)
    for step in 0..<600 {
      try making.fragments(1)
      if making.fragmentsInSegment == 10 { making.completeSegment() }
      guard step % 9 == 0, making.view.window.listed.count > 3 else { continue }
      let clock = now + Int64(step) * 200_000_000
      let latest = try XMLText.parse(String(buffer: history.manifest(of: making.view, at: clock).body))
      defer { root = latest }
      guard let root, let from = root.all("PatchLocation").first?.text.split(separator: "=").last.flatMap({ Int64($0) })
      else { continue }
      let patch = history.patch(from: WallTime(milliseconds: from), of: making.view, at: clock)
      let reached = try following(root, try XMLText.parse(String(buffer: patch.body)))
      if reached.canonical == latest.withDirectClock(of: root).canonical { exact += 1 } else { ended += 1 }
    }
    #expect(exact > 40 && ended <= 2, "\(exact) exact, \(ended) not")
  }

  @Test func whateverTimeIsAskedForTheAnswerIsAPatch() throws {
    var making = try Making()
    var history = DASHHistory()
    try making.complete(segments: 1)
    var times: [Int64] = []
    for step in 0..<(DASHHistory.limit + 2) {
      try making.complete(segments: 1)
      let text = String(
        buffer: history.manifest(of: making.view, at: now + Int64(step) * 2_000_000_000).body)
      times.append(try #require(text.firstMatch(of: #/from=(\d+)/#).flatMap { Int64($0.1) }))
    }
    for time in [0, times[0], times[5], times[5] + 1, (times.last ?? 0) + 5, Int64(999_999_999_999_999)] {
      let answer = history.patch(from: WallTime(milliseconds: time), of: making.view, at: now)
      let patch = try XMLText.parse(String(buffer: answer.body))
      #expect(patch["originalPublishTime"] == DASHManifest.moment(WallTime(milliseconds: time)))
      #expect(try #require(patch["publishTime"]) > DASHManifest.moment(WallTime(milliseconds: time)))
      let ends = patch.children.first?["sel"] == "/MPD/PatchLocation[1]" && patch.children.first?.name == "remove"
      #expect(ends == (time != times[5]))
    }
  }

  @Test func aPatchOfTheNewestManifestChangesNothingAndIsStillOne() throws {
    var making = try Making()
    var history = DASHHistory()
    try making.complete(segments: 2)
    let latest = try XMLText.parse(String(buffer: history.manifest(of: making.view, at: now).body))
    let response = history.patch(from: now, of: making.view, at: now)
    let patch = try XMLText.parse(String(buffer: response.body))
    #expect(patch.children.count == 1)
    #expect(try latest.applying(patch.children[0]) == latest)
  }
}
