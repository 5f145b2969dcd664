import Base
import FMP4
import HTTP
import NIOCore
@testable import Playlists
@testable import Streams
import StreamSupport
import Support
import Testing

@Suite struct DASHClockTests {
  private let now = EpochDriver.wall

  private func clocks(_ root: XMLElement) -> [[String?]] {
    root.children.filter { $0.name == "UTCTiming" }.map { [$0["schemeIdUri"], $0["value"]] }
  }

  private func root(_ response: PreencodedResponse) throws -> XMLElement {
    try XMLText.parse(String(buffer: response.body))
  }

  @Test func theServerIsAskedFirstAndTheManifestTellsTheTimeLast() throws {
    var making = try Making()
    try making.complete(segments: 2)
    var history = DASHHistory()
    let root = try root(history.manifest(of: making.view, at: now))
    #expect(
      clocks(root) == [
        ["urn:mpeg:dash:utc:http-iso:2014", "/time"], ["urn:mpeg:dash:utc:direct:2014", root["publishTime"]],
      ])
    #expect(root.children.last?["schemeIdUri"] == "urn:mpeg:dash:utc:direct:2014")
    #expect(root.all("ProducerReferenceTime").flatMap { $0.all("UTCTiming") }.allSatisfy { $0["value"] == "/time" })
  }

  @Test func aPublicAddressIsTheOnlyClock() throws {
    var making = try Making()
    making.publicURL = try PublicURL(parsing: "https://live.example.com")
    try making.complete(segments: 2)
    let root = making.manifest
    #expect(clocks(root) == [["urn:mpeg:dash:utc:http-iso:2014", "https://live.example.com/time"]])
    #expect(root.all("UTCTiming").allSatisfy { $0["value"] == "https://live.example.com/time" })
  }

  @Test func theTimeOfAManifestMakesItNoOtherManifest() throws {
    var making = try Making()
    try making.complete(segments: 2)
    try making.fragments(1)
    var history = DASHHistory()
    let first = history.manifest(of: making.view, at: now)
    try making.fragments(1)
    #expect(history.manifest(of: making.view, at: now + 200_000_000) === first)
  }

  @Test func patchesLeaveClocksAlone() throws {
    var making = try Making()
    var history = DASHHistory()
    var times: [Int64] = []
    for step in 0..<4 {
      try making.complete(segments: 1)
      let wall = now + Int64(step) * 2_000_000_000
      _ = history.manifest(of: making.view, at: wall)
      times.append(wall.milliseconds)
    }
    for time in times.dropLast() {
      let patch = history.patch(from: WallTime(milliseconds: time), of: making.view, at: now)
      #expect(!String(buffer: patch.body).contains("UTCTiming"))
    }
  }

  @Test func aManifestOfFilesOrOfTheEndTellsNoTimeOfItsOwn() throws {
    var driver = EpochDriver()
    try driver.publish(seconds: 5)
    for source in [DASHManifest.Source.recording, .folder] {
      let root = DASHManifest(epoch: driver.epoch.view, source: source).root(publishTime: 0)
      #expect(clocks(root).count == 1 && !String(buffer: root.document).contains("utc:direct"))
    }
    try driver.end()
    #expect(clocks(DASHManifest(epoch: driver.epoch.view, source: .server).root(publishTime: 0)).isEmpty)
  }
}
