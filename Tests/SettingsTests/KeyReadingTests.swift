import Control
import FMP4
import Publishing
@testable import Settings
import Testing

@Suite struct KeyReadingTests {
  private func keys(_ text: String) throws -> [AccessKey] { try ConfigFile(text, name: "weir.yaml").keys.keys }

  @Test func theFileHasKeysWithNames() throws {
    let keys = try keys(
      """
      keys:
        - name: laptop
          key: first-long-key-of-the-laptop
          publish: [cam-*, desk]
          watch: cam-1
          expiresAt: 2030-01-31T00:00:00Z
        - name: console
          sha256: \(Secret("geheim").hex)
          scope: operate
      """)
    #expect(keys.map(\.grant.name) == ["laptop", "console"] && keys.allSatisfy { $0.madeAt == nil })
    #expect(keys[0].secret == Secret("first-long-key-of-the-laptop") && keys[1].secret == Secret("geheim"))
    #expect(keys[0].grant.streams[.publish]?.map(\.description) == ["cam-*", "desk"])
    #expect(keys[0].grant.streams[.watch]?.map(\.description) == ["cam-1"] && keys[0].grant.scope == nil)
    #expect(keys[0].grant.ends?.seconds == 1_896_048_000 && keys[1].grant.scope == .operate)
    #expect(try self.keys("keys:").isEmpty && self.keys("keys: []").isEmpty)
    let old = try self.keys("keys: [{name: a, key: 0123456789abcdef, watch: a, expiresAt: 2001-01-01T00:00:00Z}]")
    #expect(old.count == 1, "a key that has expired is no mistake")
  }

  @Test(arguments: [
    ("keys: {}", "weir.yaml:1:7: keys: a group of settings where a list is wanted"),
    ("keys: [a]", "weir.yaml:1:8: keys: one value where a key is wanted"),
    ("keys:\n  - nam: a", "weir.yaml:2:5: keys.nam: a key has no such member; did you mean name?"),
    ("keys:\n  - key: 0123456789abcdef", "weir.yaml:2:5: keys: a key has no name"),
    ("keys:\n  - {name: a, watch: b}", "weir.yaml:2:5: keys: a key has no text"),
    ("keys:\n  - {name: a, key: geheim, watch: b}", "weir.yaml:2:20: keys.key: it has fewer than 16 bytes"),
    ("keys:\n  - {name: a, sha256: geheim, watch: b}", "weir.yaml:2:23: keys.sha256: that is no SHA-256"),
    ("keys:\n  - {name: a, key: 0123456789abcdef}", "weir.yaml:2:5: keys: a key allows nothing"),
    ("keys:\n  - {name: a, key: 0123456789abcdef, scope: root}", "weir.yaml:2:45: keys.scope: root: that is no scope"),
    (
      "keys:\n  - {name: a, key: 0123456789abcdef, watch: b, expiresAt: soon}",
      "weir.yaml:2:59: keys.expiresAt: soon: that is no time; write 2030-01-31T00:00:00Z"
    ),
    (
      "keys:\n  - {name: a, key: 0123456789abcdef, watch: b}\n  - {name: a, key: fedcba9876543210, watch: b}",
      "weir.yaml:3:12: keys.name: two keys have the same name"
    ),
  ])
  func mistakesAreToldWithTheirPlaceAndWithoutTheKey(text: String, message: String) {
    do {
      _ = try keys(text)
      Issue.record("\(text) is read")
    } catch {
      #expect("\(error)".hasPrefix(message), "\(error)")
      #expect(!"\(error)".contains("geheim") && !"\(error)".contains("0123456789abcdef"))
    }
  }
}
