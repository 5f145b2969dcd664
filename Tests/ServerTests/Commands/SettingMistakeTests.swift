import ArgumentParser
import Base
@testable import Recording
@testable import Server
@testable import Settings
import Testing

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

  @Test(arguments: [
    (
      "rotate", "cam=90",
      "--rotate cam=90: it is for all streams, and has no NAME=; one stream's value stands in the configuration file, at "
        + "streams.cam.rotate"
    ),
    ("rotate", "cam=91", "--rotate cam=91: it is for all streams, and has no NAME=; "),
    ("window", "cam=20s", "--window cam=20s: it is for all streams, and has no NAME=; "),
    ("rotate", "=90", "--rotate =90: "), ("rotate", "a b=90", "--rotate a b=90: "),
    ("audio-languages", "audio=1", "--audio-languages audio=1: "),
  ])
  func aFlagForAllStreamsThatNamesOneSaysWhereThatStands(flag: String, value: String, expected: String) throws {
    let sources = SettingSources(flags: [SettingName(stringLiteral: flag): [value]])
    let error = #expect(throws: ConfigurationError.self) { _ = try ServerConfiguration(loading: sources) }
    let told = error?.description ?? ""
    #expect(told.hasPrefix(expected), "\(told)")
    #expect(told.contains("NAME=") == expected.contains("NAME="), "\(told)")
  }

  @Test(arguments: [
    (["record", "help"], ["help", "record"]), (["record", "help", "clip"], ["help", "record", "clip"]),
    (["streams", "help"], ["help", "streams"]), (["help", "record"], ["help", "record"]), (["help"], ["help"]),
    (["streams", "show", "help"], ["streams", "show", "help"]),
    (["record", "list", "help"], ["record", "list", "help"]),
    (["--http", "help"], ["--http", "help"]), ([], []),
  ])
  func helpBehindACommandIsHelpOfIt(words: [String], expected: [String]) throws {
    #expect(CommandNames.helpInFront(words) == expected)
    try CommandNames.check(expected)
  }

  @Test(arguments: [
    (["serve", "--max-viewers", "-3"], ["serve", "--max-viewers=-3"]),
    (["--window", "-1.5s", "--http", ":1"], ["--window=-1.5s", "--http", ":1"]),
    (["--http", "-x"], ["--http", "-x"]), (["--window=1s", "-3"], ["--window=1s", "-3"]),
    (["-o", "-3"], ["-o", "-3"]),
    (["--", "--window", "-3"], ["--", "--window", "-3"]), (["-3"], ["-3"]), ([], []),
  ])
  func aNumberBelowZeroIsTheValueOfItsFlag(words: [String], expected: [String]) {
    #expect(Arguments.joiningNumbers(words) == expected)
  }

  @Test func aNumberBelowZeroIsRefusedWithItsRange() throws {
    let words = Arguments.joiningNumbers(["serve", "--max-viewers", "-3"])
    let given = try #require(try RootCommand.parseAsRoot(words) as? ServeCommand).settings.given
    let error = #expect(throws: ConfigurationError.self) {
      _ = try ServerConfiguration(loading: SettingSources(flags: given))
    }
    let expected = "--max-viewers -3: that is not a whole number in range; use a number from 1 to 1000000"
    #expect(error?.description == expected)
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
