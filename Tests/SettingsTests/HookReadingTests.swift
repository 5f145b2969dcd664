@testable import Control
@testable import Settings
import Support
import Testing

/// Hooks as the configuration file has them.
@Suite struct HookReadingTests {
  private static func event(_ stream: String?) -> Event {
    Event(id: 1, kind: .recordingStored, stream: stream, who: "a{b}", at: 5, data: "{}", subject: "cam/x.mp4")
  }

  private func load(_ text: String) throws -> [HookSettings] {
    try ConfigFile(text, name: "weir.yaml").hooks.hooks
  }

  @Test func theFileHasHooks() throws {
    let hooks = try load(
      """
      hooks:
        - on: [recording.*, disk.low]
          streams: [cam-*, stage]
          url: https://example.com/hook?token=geheim
          secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw
        - {name: archive, on: recording.stored, run: [/usr/local/bin/archive, "{path}"]}
      """)
    #expect(hooks.map(\.target) == ["https://example.com/hook", "/usr/local/bin/archive"])
    #expect(hooks.last?.name == "archive")
    let filter = try #require(hooks.first?.filter)
    #expect(filter.takes(Self.event("cam-1")) && filter.takes(Self.event("stage")))
    #expect(!filter.takes(Self.event("cam")) && !filter.takes(Self.event(nil)))
    #expect(try load("hooks:").isEmpty && load("hooks: []").isEmpty)
  }

  @Test(arguments: [
    ("hooks: {}", "weir.yaml:1:8: hooks: a group of settings where a list is wanted"),
    ("hooks:\n  - run: [/bin/true]", "weir.yaml:2:5: hooks: a hook says nothing of its events"),
    (
      "hooks:\n  - on: recording.store\n    run: [/bin/true]",
      "weir.yaml:2:9: hooks.on: recording.store: there is no such event; did you mean recording.stored?"
    ),
    ("hooks:\n  - on: '*'", "weir.yaml:2:5: hooks: a hook does nothing"),
    ("hooks:\n  - on: '*'\n    urls: x", "weir.yaml:3:5: hooks.urls: a hook has no such member; did you mean url?"),
    ("hooks:\n  - on: '*'\n    url: ftp://x", "weir.yaml:3:10: hooks.url: that is no address of http or https"),
    ("hooks:\n  - on: '*'\n    url: http://u:p@x/", "weir.yaml:3:10: hooks.url: that is no address of http or https"),
    (
      "hooks:\n  - on: '*'\n    url: http://x\n    secret: geheim",
      "weir.yaml:4:13: hooks.secret: that is no secret of Standard Webhooks"
    ),
    ("hooks:\n  - on: '*'\n    run: archive", "weir.yaml:3:10: hooks.run: the program has no absolute path"),
    (
      "hooks:\n  - on: '*'\n    streams: 'a b'\n    run: /bin/true",
      "weir.yaml:3:14: hooks.streams: a b: that is neither"
    ),
    ("hooks:\n  - &a {on: '*', run: /bin/true}", "weir.yaml:2:5"),
    (
      "hooks:\n  - {on: '*', run: /bin/true}\n  - {on: '*', run: /bin/true}",
      "weir.yaml:3:5: hooks.name: two hooks are the same"
    ),
  ])
  func aMistakeIsShownWithItsPlace(text: String, message: String) {
    let error = #expect(throws: ConfigurationError.self) { try load(text) }
    #expect(error?.description.hasPrefix(message) == true, "\(error?.description ?? "")")
    #expect(error?.description.contains("geheim") == false)
  }
}
