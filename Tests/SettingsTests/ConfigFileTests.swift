import Base
@testable import Control
import FMP4
import LocalSources
import Logging
import Publishing
@testable import Recording
@testable import Settings
import Streams
import Support
import Testing
import Transcode

@Suite struct ConfigFileTests {
  private func load(
    _ text: String, flags: [SettingName: [String]] = [:], environment: [String: String] = [:]
  ) throws(ConfigurationError) -> ServerConfiguration {
    let file = try ConfigFile(text, name: "weir.yaml")
    return try ServerConfiguration(loading: SettingSources(flags: flags, environment: environment, file: file))
  }

  private func profile(_ configuration: ServerConfiguration, _ name: String) throws -> StreamProfile {
    configuration.streams[try #require(StreamName(name))]
  }

  @Test func `A flag beats a variable, a variable the file, the file the default`() throws {
    let text = "http: {listen: ':1'}\nrtmp: {listen: ':2'}\nlog: {level: debug}"
    let loaded = try load(text, flags: ["http": [":3"]], environment: ["WEIR_HTTP": ":4", "WEIR_RTMP": ":5"])
    #expect(loaded.http.port == 3)
    #expect(loaded.rtmp.port == 5)
    #expect(loaded.logLevel == .debug)
    #expect(loaded.maxViewers == 10_000)
  }

  @Test func `JSON is read as YAML is`() throws {
    let text = #"{"http": {"listen": ":81", "trustedProxies": ["10.0.0.0/8", "::1"]}, "limits": {"viewers": 7}}"#
    let loaded = try load(text)
    #expect(loaded.http.port == 81)
    #expect(loaded.maxViewers == 7)
  }

  @Test func `The most specific entry counts, over what holds for all`() throws {
    let loaded = try load(
      """
      streams:
        "*": {partDuration: 500ms, record: {split: 1h}}
        cam-*: {partDuration: 100ms, record: {mode: manual}}
        cam-1: {ladder: [720p@3M, 360p@800k]}
        "*-hd": {segmentDuration: 4s}
      """)
    let (other, two, one) = try (profile(loaded, "x"), profile(loaded, "cam-2"), profile(loaded, "cam-1"))
    #expect(other.settings.partTarget == MediaTime(milliseconds: 500))
    #expect(two.settings.partTarget == MediaTime(milliseconds: 100))
    #expect(two.recording.start == .manual)
    #expect(two.recording.split == .clock(3_600_000_000_000))
    #expect(one.settings.partTarget == MediaTime(milliseconds: 500))
    #expect(one.recording.start == .automatic)
    #expect(one.settings.ladder.map(\.name) == ["720p", "360p"])
    #expect(one.settings.layout == .separate)
    #expect(try profile(loaded, "cam-hd").settings.partTarget == MediaTime(milliseconds: 100))
    #expect(try profile(loaded, "a-hd").settings.segmentTarget == MediaTime(milliseconds: 4000))
  }

  @Test func `What is said of one stream beats a flag for all, and a flag for it beats the file`() throws {
    let loaded = try load(
      "streams: {cam: {ladder: 720p@3M, partDuration: 100ms}, mic: {partDuration: 300ms}}",
      flags: ["part-duration": ["200ms"], "ladder": ["cam=360p@800k"]])
    #expect(try profile(loaded, "cam").settings.ladder.map(\.name) == ["360p"])
    #expect(try profile(loaded, "cam").settings.partTarget == MediaTime(milliseconds: 100))
    #expect(try profile(loaded, "mic").settings.partTarget == MediaTime(milliseconds: 300))
    #expect(loaded.streams.standard.settings.partTarget == MediaTime(milliseconds: 200))
  }

  @Test func `A key is for the names that it stands at`() throws {
    let keys = try load("streams: {'*': {publishKeys: all}, cam-*: {publishKeys: [one, 'a=b']}}").publishKeys
    let (cam, other) = (try #require(StreamName("cam-1")), try #require(StreamName("other")))
    #expect(keys.right(of: Secret("one"), to: cam) == .keyOfName)
    #expect(keys.right(of: Secret("a=b"), to: cam) == .keyOfName)
    #expect(keys.right(of: Secret("all"), to: cam) == .keyForAllNames)
    #expect(keys.right(of: Secret("one"), to: other) == nil)
    #expect(keys.right(of: nil, to: other) == nil)
  }

  @Test(arguments: [
    ("http: {lisen: 1}", "weir.yaml:1:8: http.lisen: weir has no such setting; did you mean listen?"),
    ("a: 1", "weir.yaml:1:1: a: weir has no such setting; there are "),
    (
      "part_duration: 1s",
      "weir.yaml:1:1: part_duration: weir has no such setting; did you mean streams.*.partDuration?"
    ),
    (
      "streams:\n  '*':\n    partDuration: 200",
      "weir.yaml:3:19: streams.*.partDuration: 200: a duration needs a unit; write 200ms or 200s"
    ),
    ("streams: {a b: {}}", "weir.yaml:1:11: streams.a b: that is neither a stream's name nor a pattern; "),
    ("streams: {cam: {partDuration: 3s}}", "weir.yaml:1:31: streams.cam.partDuration: 3s: a part must be shorter "),
    (
      "streams: {cam: {recrod: {}}}",
      "weir.yaml:1:17: streams.cam.recrod: weir has no such setting; did you mean record?"
    ),
    ("streams: {cam-*: {record: {mod: x}}}", "weir.yaml:1:28: streams.cam-*.record.mod: weir has no such setting; "),
    ("streams: {cam: {record: 3}}", "weir.yaml:1:25: streams.cam.record: one value where a group of settings "),
    ("streams: {cam: 3}", "weir.yaml:1:16: streams.cam: one value where a group of settings is wanted; "),
    ("streams: {cam: {window: [1]}}", "weir.yaml:1:25: streams.cam.window: a list is no value of it; "),
    ("http: 3", "weir.yaml:1:7: http: one value where a group of settings is wanted; write listen: below it"),
    ("http: {listen: [1]}", "weir.yaml:1:16: http.listen: a list is no value of it; write one addr"),
    ("http: {listen: {a: b}}", "weir.yaml:1:16: http.listen: a group of settings is no value of it; write one addr"),
    (
      "http:\n  listen:", "weir.yaml:2:10: http.listen: nothing is no value of it; write a value, or leave the line out"
    ),
    ("recordings: {disabled: yes}", "weir.yaml:1:24: recordings.disabled: yes: that is neither true nor false; "),
    ("sources: [demo]", "weir.yaml:1:10: sources: a list is no value of it; write NAME: name=kind below it"),
    ("limits: {viewers: 0}", "weir.yaml:1:19: limits.viewers: 0: that is not a whole number in range; "),
    ("streams: {cam: {publishKeys: [geheim, '']}}", "weir.yaml:1:39: streams.cam.publishKeys: the key is empty; "),
    ("admin: {token: [geheim]}", "weir.yaml:1:16: admin.token: a list is no value of it; write one token"),
    ("a: &x 1", "weir.yaml:1:4: anchors (&name) of YAML are not read; "),
    ("- *x", "weir.yaml:1:3: aliases (*name) of YAML are not read; "),
    ("http: {}\nhttp: {}", "weir.yaml:1:1: a name is given twice; "),
    ("streams: {'*': {publishKeys: []}}", "weir.yaml:1:30: streams.*.publishKeys: the list is empty; "),
    ("streams: {123: {}, \"123\": {}}", "weir.yaml:1:20: streams: a name is given twice; "),
    ("admin: {geheim}", "weir.yaml:1:9: admin: what stands here is no setting; "),
    ("streams: {'*': {publishKeys: {geheim: , geheim: }}}", "weir.yaml:1:"),
    ("a: [", "weir.yaml:2:1: did not find expected node content; "),
    ("a: 1\n--- \nb: 2", "weir.yaml:2:1: but found another document; "),
    ("? [a]\n: b", "weir.yaml:1:3: a name of a setting is wanted here, not a list; "),
  ])
  func `A mistake is named with its place, the value, why, and what is meant`(text: String, expected: String) {
    let error = #expect(throws: ConfigurationError.self) { try load(text) }
    let told = error?.description ?? ""
    #expect(told.hasPrefix(expected), "\(told)")
    #expect(!told.contains("\n") && !told.contains("geheim"))
    #expect(error?.exitCode == 2)
  }

  /// A few lines of aliases stand for gigabytes.
  @Test(arguments: [
    "\"a #\": &a [x]\n", "'a #': &a [x]", "a: 1\r- *x", "a: 1\u{85}b: &b 1", "# x\u{85}b: &b 1", "# x\u{2028}b: &b 1",
    "\u{feff}&a x", "{\"a\":*x}", "{'a':&x 1}", "[*x]", "{*x : 1}", "a: it's \"b\nc: &d 1", "a: it\":\" b\nc: &d 1",
    "a: |\n  \"\nc: &d 1", "a: x 'y\nb: *x", "?\t*x", "a: \"x\\\"\" \nb: &b 1", "a: 'x''' \nb: &b 1", "é: &b 1",
  ])
  func `No anchor and no alias gets past the scan`(text: String) {
    #expect(ConfigScan.refused(in: text) != nil)
  }

  @Test(arguments: [
    "\"cam-*-hd\": {}", "cam-*: {}", "a: \"abc &def *x\"", "a: 'a:&b'", "a: \"# &x\"", "a: x # *y", "# don't *x\na: 1",
    "a: b*c&d", "\"*\": {a: 1}", "a: it's", "a: \"\\\" &x\"", "a: ''' &x'", "a: a|b",
  ])
  func `Texts that only look so are read`(text: String) {
    #expect(ConfigScan.refused(in: text) == nil, "\(text)")
  }

  @Test func `Settings without a default can be switched off for one stream`() throws {
    let loaded = try load(
      "streams: {'*': {ladder: 720p@3M, rewind: 1h, record: {split: 1h}}, cam: {ladder: [], rewind: null, record: {split: ~}}}"
    )
    let cam = try profile(loaded, "cam")
    #expect(cam.settings.ladder.isEmpty && cam.settings.rewind == nil && cam.recording.split == .never)
    #expect(try profile(loaded, "x").settings.rewind != nil)
    #expect(loaded.canRewind)
  }

  @Test func `A flag for one stream leaves to the others what the file says`() throws {
    let loaded = try load(
      "streams: {'*': {ladder: 360p@800k, publishKeys: all}}",
      flags: ["ladder": ["cam=720p@3M"], "publish-key": ["cam=own"]])
    #expect(try profile(loaded, "x").settings.ladder.map(\.name) == ["360p"])
    #expect(try profile(loaded, "cam").settings.ladder.map(\.name) == ["720p"])
    #expect(loaded.publishKeys.right(of: Secret("all"), to: try #require(StreamName("x"))) == .keyForAllNames)
  }

  @Test func `A folder given by a flag or a variable beats what the file switches off`() throws {
    let text = "recordings: {disabled: true}"
    #expect(try load(text).recordingsFolder == nil)
    #expect(try load(text, flags: ["record": ["r"]]).recordingsFolder == "r")
    #expect(try load(text, environment: ["WEIR_RECORD": "r"]).recordingsFolder == "r")
  }

  @Test func `What is nested without end, too large or no text is refused`() {
    for text in [
      String(repeating: "[", count: 100_000), String(repeating: "a: {", count: 20) + String(repeating: "}", count: 20),
      String(repeating: "# x\n", count: 300_000), "a: \u{0}", "\t- x", "%YAML 9.9\n---\n", "!!binary x",
    ] {
      #expect(throws: ConfigurationError.self) { try load(text) }
    }
  }

  @Test(arguments: ["", "# nothing", "---", "http:", "streams:", "streams: {cam: }", "{}"])
  func `A file may say nothing`(text: String) throws {
    #expect(try load(text).http.port == 8080)
  }

  @Test func `The sample means the defaults, and each of its lines can be used`() throws {
    _ = try load(ConfigSample.text)
    for line in ConfigSample.text.split(separator: "\n") where line.contains("# not set") {
      #expect(line.drop { $0 == " " }.hasPrefix("#"))
    }
    let used = ConfigSample.text.split(separator: "\n").compactMap { line -> String? in
      let bare = line.drop { $0 == " " }
      guard bare.hasPrefix("#"), !bare.hasPrefix("# ") || bare.hasPrefix("#  ") else { return String(line) }
      guard !line.contains("# not set") else { return nil }
      return line.prefix { $0 == " " } + String(bare.dropFirst())
    }
    let loaded = try load(used.joined(separator: "\n"))
    #expect(loaded.http.port == 8080)
    #expect(loaded.sources.map(\.name.description) == ["demo"])
    #expect(try profile(loaded, "cam-7").recording.start == .manual)
    #expect(try profile(loaded, "cam-1").settings.ladder.map(\.name) == ["720p", "360p"])
  }

  @Test func `Every flag has its place in the file, and no place is taken twice`() {
    let places = ServerOptions.inFile.compactMap(\.path)
    #expect(ServerOptions.all.filter { $0.path == nil }.map(\.name.text) == ["config"])
    #expect(Set(places).count == places.count)
    for place in places {
      #expect(!places.contains { $0.description.hasPrefix(place.description + ".") }, "\(place)")
    }
  }

  @Test func `What holds is shown with where it comes from, without keys`() throws {
    let file = try ConfigFile(
      "http: {listen: ':1'}\nstreams: {'*': {publishKeys: [geheim]}, cam-*: {partDuration: 100ms}}", name: "weir.yaml")
    let sources = SettingSources(flags: ["rtmp": [":9"]], environment: ["WEIR_LOG": "json"], file: file)
    let all = try ConfigListing(sources).text
    for line in [
      "  listen: \":1\"  # weir.yaml:1:16", "  listen: \":9\"  # --rtmp", "  format: json  # WEIR_LOG",
      "  keepFree: 1GB  # default",
    ] {
      #expect(all.split(separator: "\n").contains { $0 == line }, "\(line)")
    }
    #expect(!all.contains("geheim"))
    let cam = try ConfigListing(sources, stream: StreamName("cam-1")).text
    #expect(cam.contains("# As cam-*."))
    #expect(cam.contains("    partDuration: 100ms  # weir.yaml:2:63"))
  }

  @Test func `What a flag or a variable overrules in the file is told`() throws {
    let file = try ConfigFile("http: {listen: ':1'}\nrtmp: {listen: ':2'}\nlog: {level: debug}", name: "weir.yaml")
    let sources = SettingSources(
      flags: ["http": [":3"], "log-level": ["debug"]], environment: ["WEIR_RTMP": ":5"], file: file)
    #expect(
      sources.overruled.map(\.description) == [
        "weir.yaml:1:16: http.listen has no effect: --http says otherwise",
        "weir.yaml:2:16: rtmp.listen has no effect: WEIR_RTMP says otherwise",
      ])
  }

  @Test func `A file that may be missing is left out, another one is an error`() throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/weir.yaml"
    #expect(try SettingSources(flags: ["config": ["-" + path]]).readingFile().file == nil)
    let error = #expect(throws: ConfigurationError.self) { try SettingSources(flags: ["config": [path]]).readingFile() }
    #expect(error?.description.hasPrefix("--config \(path): cannot read it: No such file or directory; ") == true)
    #expect(throws: ConfigurationError.self) { try SettingSources(flags: ["config": [folder.path]]).readingFile() }
  }
}
