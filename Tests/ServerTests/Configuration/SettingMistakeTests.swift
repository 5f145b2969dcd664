import Testing

@testable import Basics
@testable import Server

@Suite struct SettingMistakeTests {
  private func complaint(_ variable: String, _ value: String = "x") -> String? {
    do throws(ConfigurationError) {
      _ = try ServerConfiguration(loading: SettingSources(environment: [variable: value, "PATH": "/bin"]))
      return nil
    } catch {
      #expect(error.exitCode == 2)
      return error.description
    }
  }

  @Test(arguments: [
    ("WEIR_PUBLISH_KEYS", "WEIR_PUBLISH_KEY"), ("WEIR_PUBLSIH_KEY", "WEIR_PUBLISH_KEY"), ("WEIR_HTPP", "WEIR_HTTP"),
    ("WEIR_RECORDS", "WEIR_RECORD"), ("WEIR_ADMINTOKEN", "WEIR_ADMIN_TOKEN"), ("WEIR_publish_key", nil),
    ("WEIR_X", nil),
    ("WEIR_", nil), ("WEIR_SERVICE_HOSTS", nil), ("WEIR_PORT_X_TCP", nil),
  ])
  func aVariableThatIsNoSettingIsRefusedWithTheOneThatIsMeant(variable: String, meant: String?) throws {
    let said = try #require(complaint(variable))
    #expect(said.hasPrefix("\(variable): weir has no such setting; "))
    if let meant { #expect(said.hasSuffix("; write \(meant), or unset it")) }
  }

  @Test(arguments: [
    ("WEIR_SERVICE_HOST", "10.0.0.1"), ("WEIR_SERVICE_PORT", "80"), ("WEIR_SERVICE_PORT_HTTP", "80"),
    ("WEIR_PORT", "tcp://10.0.0.1:80"), ("WEIR_PORT_80_TCP", "tcp://10.0.0.1:80"), ("WEIR_PORT_80_TCP_PORT", "80"),
    ("WEIR_PORT_1935_TCP_ADDR", "10.0.0.1"), ("WEIR_HTTP_SERVICE_HOST", "10.0.0.1"),
    ("WEIR_HTTP_PORT_8080_TCP_PROTO", "tcp"), ("WEIR_HTTP_PORT", "tcp://10.0.0.1:8080"), ("WEIRD", "x"),
    ("weir_x", "x"),
  ])
  func whatAnOrchestratorSetsIsNoMistake(variable: String, value: String) {
    #expect(complaint(variable, value) == nil)
  }

  @Test func aPortThatAPersonMeansIsRefused() {
    #expect(complaint("WEIR_PORT", "8080") != nil)
    #expect(complaint("WEIR_RTMP_PORT", "1935") != nil)
  }

  @Test func variablesThatLoseToFlagsAreNamedAndEqualOnesAreNot() {
    let sources = SettingSources(
      flags: [
        "http": [":1"], "publish-key": ["a"], "source": ["a=test", "b=test"], "record": ["x"], "window": ["20s"],
      ],
      environment: [
        "WEIR_HTTP": ":1", "WEIR_PUBLISH_KEY": "b", "WEIR_SOURCE": "a=test,b=test", "WEIR_NO_RECORD": "1",
        "WEIR_WINDOW": "", "WEIR_RTMP": ":2",
      ])
    #expect(
      sources.overruled == [
        .init(variable: "WEIR_PUBLISH_KEY", flag: "--publish-key"), .init(variable: "WEIR_NO_RECORD", flag: "--record"),
      ])
    #expect(!sources.overruled.map(\.description).joined().contains("\"b\""))
    let off = SettingSources(flags: ["no-record": ["1"]], environment: ["WEIR_RECORD": "r", "WEIR_NO_RECORD": "0"])
    #expect(off.overruled.map(\.variable) == ["WEIR_RECORD", "WEIR_NO_RECORD"])
  }

  @Test func aCommandsOwnDefaultLosesToFlagsAndVariables() throws {
    func mode(_ flags: [SettingName: [String]], _ environment: [String: String]) throws -> RecordingPolicy.Start {
      let sources = SettingSources(flags: flags, environment: environment, defaults: ["record-mode": "manual"])
      return try ServerConfiguration(loading: sources).streams.standard.recording.start
    }
    #expect(try mode([:], [:]) == .manual)
    #expect(try mode([:], ["WEIR_RECORD_MODE": "auto"]) == .automatic)
    #expect(try mode(["record-mode": ["auto"]], ["WEIR_RECORD_MODE": "manual"]) == .automatic)
  }

  @Test(arguments: [
    (["servee"], "weir servee: there is no such command; did you mean weir serve?"),
    (["start", "--http", ":1"], "weir start: there is no such command; there are "),
    (["record", "lst"], "weir record lst: there is no such command; did you mean weir record list?"),
    (["help", "recrod"], "weir recrod: there is no such command; did you mean weir record?"),
    (["help", "record", "verfiy"], "weir record verfiy: there is no such command; did you mean weir record verify?"),
    (["transcode-worke"], "weir transcode-worke: there is no such command; there are serve, capture, "),
    (["\u{1b}[2J"], "weir \\u{1B}[2J: there is no such command; there are "),
  ])
  func aMistypedCommandIsNamedWithTheOneThatIsMeant(arguments: [String], expected: String) {
    let error = #expect(throws: ConfigurationError.self) { try CommandNames.check(arguments) }
    #expect(error?.description.hasPrefix(expected) == true, "\(error?.description ?? "")")
    #expect(error?.exitCode == 2)
  }

  @Test(arguments: [
    [], ["serve"], ["--http", ":1"], ["help"], ["help", "record", "list"], ["record"], ["record", "list", "--json"],
    ["record", "verify", "servee"], ["transcode-worker"], ["--help"], ["version"], ["-h"], ["streams", "cam"],
  ])
  func commandsAreLeftToTheParser(arguments: [String]) throws {
    try CommandNames.check(arguments)
  }

  @Test func whatIsFarFromEverythingSuggestsNothing() {
    #expect(Suggestion.nearest(to: "serv", among: ["serve", "record"]) == "serve")
    #expect(Suggestion.nearest(to: "evres", among: ["serve", "record"]) == nil)
    #expect(Suggestion.nearest(to: "", among: ["serve"]) == nil)
    #expect(Suggestion.nearest(to: "serve", among: []) == nil)
    #expect(Suggestion.nearest(to: String(repeating: "s", count: 100_000), among: ["serve"]) == nil)
  }
}
