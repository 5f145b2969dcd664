import Control
import Publishing
@testable import Settings
import Testing

@Suite struct SettingChangesTests {
  private func sources(_ file: String) throws -> SettingSources {
    SettingSources(file: try ConfigFile(file, name: "weir.yaml"))
  }

  @Test(
    arguments: [
      ("{}", "{}", [:]),
      ("{}", "limits: {viewers: 5}", [.now: ["limits.viewers"]]),
      ("limits: {viewers: 5}", "limits: {viewers: 10000}", [.now: ["limits.viewers"]]),
      ("limits: {viewers: 10000}", "{}", [:]),
      ("{}", "recordings: {folder: /tmp/x}", [.restart: ["recordings.folder"]]),
      ("{}", "streams: {'*': {window: 20s}}", [.nextEpoch: ["streams.*.window"]]),
      ("{}", "streams: {cam: {window: 20s}}", [.nextEpoch: ["streams.cam.window"]]),
      ("streams: {cam: {window: 20s}}", "{}", [.nextEpoch: ["streams.cam.window"]]),
      (
        "streams: {cam: {window: 20s}}", "streams: {cam: {window: 20s, record: {mode: never}}}",
        [.nextEpoch: ["streams.cam.record.mode"]]
      ),
      (
        "streams: {'*': {publishKeys: [abcdefgh]}}", "streams: {'*': {publishKeys: [ijklmnop]}}",
        [.now: ["streams.*.publishKeys"]]
      ),
      ("http: {listen: ':1'}", "http: {listen: ':2'}\nhttps: {listen: ':3'}", [.now: ["http.listen", "https.listen"]]),
    ] as [(String, String, [SettingEffect: [String]])])
  func whatDiffersIsNamedByItsPlace(old: String, new: String, places: [SettingEffect: [String]]) throws {
    #expect(try SettingChanges(from: sources(old), to: sources(new)).places == places)
  }

  @Test func whatIsSetOverTheAPIBeatsTheFileAndFlagsBeatIt() throws {
    let cam = try #require(StreamName("cam"))
    var given = SettingSources(
      flags: ["ladder": ["cam=360p@800k"]],
      file: try ConfigFile("streams: {cam: {window: 20s, reconnectWindow: 5s}}", name: "weir.yaml"))
    given.setByAPI[cam] = try ConfigFile.texts(of: cam, setByAPI: #"{"window": "30s", "ladder": "240p@400k"}"#)
    let own = try #require(try given.ofStreams.first { $0.pattern.matches(cam) }).sources
    let options = StreamOptions()
    #expect(try own[options.window] == .seconds(30) && own[options.reconnectWindow] == .seconds(5))
    #expect(own.texts(of: options.window).first?.origin.description == "API")
    #expect(own.texts(of: options.ladder).map(\.text) == ["360p@800k"])
  }

  @Test(arguments: [
    ("[]", "the request:1:1: a list where settings are wanted"), ("", "the request:1:1: nothing where"),
    (#"{"windw": "30s"}"#, "streams.cam.windw: weir has no such setting; did you mean window?"),
    (#"{"publishKeys": ["geheim"]}"#, "keys are not set here; make one with POST /api/v1/keys"),
  ])
  func whatCannotBeSetIsTold(text: String, message: String) throws {
    let cam = try #require(StreamName("cam"))
    let error = #expect(throws: ConfigurationError.self) { _ = try ConfigFile.texts(of: cam, setByAPI: text) }
    let shown = "\(try #require(error))"
    #expect(shown.contains(message) && !shown.contains("geheim"), "\(shown)")
  }

  @Test func everySettingSaysWhenItTakesEffect() {
    for setting in ServerOptions.all where setting.path?.isOfStreams ?? false {
      #expect(setting.effect != .restart, "\(setting.name.flag)")
    }
    #expect(ServerOptions.all.filter { $0.effect == .now }.count == 44)
  }
}
