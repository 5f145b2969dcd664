import FMP4
import NIOCore
import Support
import Testing

@testable import Server

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
      clock += step < 20 ? 0 : step == 25 ? -5_000_000_000 : 200_000_000
      try making.fragments(1)
      if making.fragmentsInSegment == 10 { making.completeSegment() }
      published.append(try publishTime(history.manifest(of: making.view, wallNanoseconds: clock)))
    }
    #expect(published == published.sorted())
    // A segment's first fragment and its completion change what is listed; what is between changes nothing.
    #expect(Set(published).count == 2 * 4)
  }

  @Test func theSameManifestIsTheSameResponse() throws {
    var making = try Making()
    var history = DASHHistory()
    try making.complete(segments: 2)
    try making.fragments(1)
    let first = history.manifest(of: making.view, wallNanoseconds: now)
    try making.fragments(1)
    #expect(history.manifest(of: making.view, wallNanoseconds: now + 1_000_000_000) === first)
  }

  @Test func aPatchLeadsToExactlyTheNewestManifest() throws {
    var driver = EpochDriver(StreamSettings(window: MediaTime(milliseconds: 16_000)))
    var history = DASHHistory()
    var editions: [(time: Int64, root: XMLElement)] = []
    func check() throws {
      let text = String(buffer: history.manifest(of: driver.epoch.view, wallNanoseconds: now).body)
      let latest = try XMLText.parse(text)
      let time = try #require(latest["publishTime"])
      for edition in editions.suffix(DASHHistory.limit - 1) {
        guard case .found(let response) = history.patch(from: edition.time, of: driver.epoch.view, wallNanoseconds: now)
        else {
          Issue.record("no patch from \(edition.time)")
          continue
        }
        let patch = try XMLText.parse(String(buffer: response.body))
        #expect(patch["publishTime"] == time)
        #expect(patch["mpdId"] == latest["id"])
        #expect(patch["originalPublishTime"] == edition.root["publishTime"])
        #expect(try patch.children.reduce(edition.root) { try $0.applying($1) }.canonical == latest.canonical)
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
  }

  @Test func sixteenManifestsCanBePatchedAndThoseBeforeAreForgotten() throws {
    var making = try Making()
    var history = DASHHistory()
    try making.complete(segments: 1)
    var times: [Int64] = []
    for step in 0..<(DASHHistory.limit + 2) {
      try making.complete(segments: 1)
      let text = String(
        buffer: history.manifest(of: making.view, wallNanoseconds: now + Int64(step) * 2_000_000_000).body)
      times.append(try #require(text.firstMatch(of: #/from=(\d+)/#).flatMap { Int64($0.1) }))
    }
    for (index, time) in times.enumerated() {
      switch history.patch(from: time, of: making.view, wallNanoseconds: now) {
      case .found: #expect(index >= 2)
      case .forgotten: #expect(index < 2)
      case .unknown: Issue.record("\(time) was published")
      }
    }
    guard case .unknown = history.patch(from: try #require(times.last) + 1, of: making.view, wallNanoseconds: now),
      case .unknown = history.patch(from: times[5] + 1, of: making.view, wallNanoseconds: now)
    else {
      Issue.record("no manifest was published then")
      return
    }
  }

  @Test func aPatchOfTheNewestManifestChangesNothingAndIsStillOne() throws {
    var making = try Making()
    var history = DASHHistory()
    try making.complete(segments: 2)
    let latest = try XMLText.parse(String(buffer: history.manifest(of: making.view, wallNanoseconds: now).body))
    guard case .found(let response) = history.patch(from: now / 1_000_000, of: making.view, wallNanoseconds: now) else {
      Issue.record("no patch")
      return
    }
    let patch = try XMLText.parse(String(buffer: response.body))
    #expect(patch.children.count == 1)
    #expect(try latest.applying(patch.children[0]) == latest)
  }
}
