@testable import Playlists
import Testing

@Suite struct ManifestPatchTests {
  private func manifest(
    _ published: Int, timeline: [Int], bandwidth: Int = 1000, periods: [Int] = [1], type: String = "dynamic"
  ) -> XMLElement {
    let last = periods.last
    let rest = periods.map { period in
      let entries = (period == last ? timeline : [0]).map { XMLElement("S", ["t": String($0), "d": "10"]) }
      let template = XMLElement(
        "SegmentTemplate", ["timescale": "10"], children: [XMLElement("SegmentTimeline", children: entries)])
      let representation = XMLElement(
        "Representation", ["id": "video", "bandwidth": String(bandwidth)], children: [template])
      return XMLElement(
        "Period", ["id": String(period)],
        children: [XMLElement("AdaptationSet", ["id": "1"], children: [representation])])
    }
    return XMLElement(
      "MPD", ["id": "e", "type": type, "publishTime": String(published)],
      children: [XMLElement("PatchLocation", ["ttl": "10"], text: "from=\(published)")] + rest + [
        XMLElement("UTCTiming", ["value": "at \(published)"])
      ])
  }

  private static let timeline =
    "/MPD/Period[@id='1']/AdaptationSet[@id='1']/Representation[@id='video']/SegmentTemplate/SegmentTimeline"

  private func operations(_ old: XMLElement, _ new: XMLElement) -> [String]? {
    ManifestPatch(from: old, to: new)?.operations.map {
      "\($0.name) \($0["sel"] ?? "")\($0["pos"].map { " " + $0 } ?? "")"
    }
  }

  @Test func aWindowThatMovesOnIsSegmentsThatGoAndComeEachByPosition() throws {
    let (old, new) = (manifest(1, timeline: [0, 10, 20]), manifest(2, timeline: [20, 30, 40]))
    #expect(
      operations(old, new) == [
        "replace /MPD/PatchLocation[1]", "remove \(Self.timeline)/S[1]", "remove \(Self.timeline)/S[1]",
        "add \(Self.timeline)/S[1] after", "replace /MPD/@publishTime",
      ])
    let patch = try #require(ManifestPatch(from: old, to: new))
    let reached = try patch.operations.reduce(old) { try $0.applying($1) }
    #expect(reached.all("S") == new.all("S") && reached.all("PatchLocation") == new.all("PatchLocation"))
    #expect(reached["publishTime"] == "2")
  }

  @Test func nothingNewIsATimeOfPublication() {
    #expect(operations(manifest(1, timeline: [0]), manifest(1, timeline: [0])) == ["replace /MPD/@publishTime"])
  }

  @Test func whateverElseChangesIsNoMatterOfAPatch() {
    let old = manifest(1, timeline: [0, 10])
    #expect(operations(old, manifest(2, timeline: [0, 10], bandwidth: 1001)) == nil)
    #expect(operations(old, manifest(2, timeline: [0], periods: [1, 2])) == nil)
    #expect(operations(old, manifest(2, timeline: [0, 10], type: "static")) == nil)
    #expect(operations(old, manifest(2, timeline: [20, 30])) == nil, "nothing is left of what there was")
    #expect(operations(old, manifest(2, timeline: [0, 11])) == nil, "an entry has changed")
    #expect(operations(manifest(1, timeline: []), manifest(2, timeline: [0])) == nil, "no position to add at")
  }

  @Test func whereAPatchCannotTellItTheNewSegmentsComeAndThePatchesEnd() throws {
    let old = manifest(1, timeline: [0, 10])
    let new = manifest(2, timeline: [10, 20], bandwidth: 1001)
    let patch = ManifestPatch(endingPatchesOf: old, to: new)
    let reached = try patch.operations.reduce(old) { try $0.applying($1) }
    #expect(reached.all("PatchLocation").isEmpty && reached["publishTime"] == "2")
    #expect(reached.all("S").map { $0["t"] } == ["0", "10", "20"])
    let unknown = ManifestPatch(endingPatchesOf: nil, to: new).operations.map { "\($0.name) \($0["sel"] ?? "")" }
    #expect(unknown == ["remove /MPD/PatchLocation[1]", "replace /MPD/@publishTime"])
  }
}
