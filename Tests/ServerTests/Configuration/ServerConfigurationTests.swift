import Ingest
import Logging
import Testing

@testable import Basics
@testable import HTTP
@testable import Server

@Suite struct ServerConfigurationTests {
  private func load(
    _ flags: [Setting: [String]] = [:], environment: [String: String] = [:]
  ) throws(ConfigurationError) -> ServerConfiguration {
    try ServerConfiguration(loading: SettingSources(flags: flags, environment: environment))
  }

  private func complaint(_ flags: [Setting: [String]] = [:], environment: [String: String] = [:]) -> String? {
    let error = #expect(throws: ConfigurationError.self) { try load(flags, environment: environment) }
    #expect(error?.exitCode == 2)
    #expect(error?.description.contains("\n") == false)
    return error?.description
  }

  @Test func recordingsAreSplitSyncedAndLimitedAsTold() throws {
    let configuration = try load(
      [
        .recordMode: ["manual"], .recordSync: ["0s"], .recordSplit: ["1h"], .recordMaxDuration: ["8h"],
        .recordMaxSize: ["2GB"],
      ])
    #expect(
      configuration.recordingPolicy
        == RecordingPolicy(
          start: .manual, syncInterval: 0, maximumDuration: 28_800_000_000_000, maximumBytes: 2_000_000_000,
          split: .clock(3_600_000_000_000)))
  }

  @Test func nothingGivenMeansTheDefaults() throws {
    let configuration = try load()
    #expect(configuration.http == ListenAddress(host: .any, port: 8080))
    #expect(configuration.rtmp == ListenAddress(host: .any, port: 1935))
    #expect(configuration.https == nil && configuration.rtmps == nil && configuration.tls == nil)
    #expect(configuration.sources.isEmpty && configuration.publishKeys.isEmpty)
    #expect(configuration.partDuration == .milliseconds(200))
    #expect(configuration.segmentDuration == .seconds(2))
    #expect(configuration.targetDuration == .automatic)
    #expect(configuration.window == .seconds(60) && configuration.reconnectWindow == .seconds(30))
    #expect(
      configuration.maxViewers == 10000 && configuration.pollLimit == 100 && configuration.keepFree == 1_000_000_000)
    #expect(configuration.recording == .folder("./recordings"))
    #expect(configuration.recordingPolicy == RecordingPolicy())
    #expect(configuration.segmentsFolder == nil && configuration.webFiles == .embedded)
    #expect(configuration.logLevel == .info && configuration.logFormat == .text)
  }

  @Test func flagBeatsVariableBeatsDefault() throws {
    let environment = ["WEIR_HTTP": ":1", "WEIR_RTMP": ":2"]
    let configuration = try load([.http: [":3"]], environment: environment)
    #expect(configuration.http.port == 3)
    #expect(configuration.rtmp.port == 2)
  }

  @Test func anEmptyVariableIsNoneButAnEmptyKeyIsRefused() throws {
    #expect(try load(environment: ["WEIR_HTTP": ""]).http.port == 8080)
    #expect(complaint(environment: ["WEIR_PUBLISH_KEY": ""])?.contains("the key is empty") == true)
    #expect(complaint([.publishKey: [""]])?.contains("the key is empty") == true)
  }

  @Test func sourcesAddUpAndNamesAreUnique() throws {
    let configuration = try load([.source: ["a=test", "b=test"], .testPattern: ["c"]])
    #expect(configuration.sources.map(\.name.description) == ["a", "b", "c"])
    #expect(try load(environment: ["WEIR_SOURCE": "a=test,b=test"]).sources.count == 2)
    #expect(
      complaint([.source: ["a=test"], .testPattern: ["a"]])
        == "--test-pattern a: the name \"a\" is given twice; give each source its own name")
  }

  @Test func aNameOutsideTheGrammarIsRefused() {
    let long = String(repeating: "a", count: 65)
    for name in ["", "..", "a/b", "-a", "a b", "é", long] {
      #expect(complaint([.testPattern: [name]])?.contains("cannot name a stream") == true)
    }
  }

  @Test func errorsNameTheFlagOrTheVariable() {
    #expect(
      complaint([.partDuration: ["200"]])
        == "--part-duration 200: a duration needs a unit; write 200ms or 200s")
    #expect(
      complaint(environment: ["WEIR_PART_DURATION": "200"])
        == "WEIR_PART_DURATION=200: a duration needs a unit; write 200ms or 200s")
    #expect(complaint([.http: ["a\nb"]])?.hasPrefix("--http a\\nb: ") == true)
  }

  @Test func aPartIsShorterThanASegment() throws {
    #expect(try load([.partDuration: ["1999ms"]]).partDuration == .milliseconds(1999))
    #expect(complaint([.partDuration: ["2s"]])?.contains("must be shorter than a segment (2s)") == true)
  }

  @Test func theWindowHoldsThreeSegments() throws {
    #expect(try load([.window: ["6s"]]).window == .seconds(6))
    #expect(complaint([.window: ["5999ms"]])?.contains("use at least 6s") == true)
  }

  @Test func aTargetDurationIsNotShorterThanASegment() throws {
    #expect(try load([.targetDuration: ["2"]]).targetDuration == .seconds(2))
    #expect(try load([.targetDuration: ["6s"]]).targetDuration == .seconds(6))
    #expect(complaint([.targetDuration: ["1"]])?.contains("use 2 or more, or auto") == true)
    #expect(complaint([.targetDuration: ["1.5"]])?.contains("or auto") == true)
  }

  @Test func viewersAreCountedFromOne() throws {
    #expect(try load([.maxViewers: ["1"]]).maxViewers == 1)
    #expect(complaint([.maxViewers: ["0"]])?.contains("from 1 to 1000000") == true)
    #expect(complaint([.maxViewers: ["1000001"]]) != nil)
  }

  @Test func tlsNeedsBothFilesAndAListener() throws {
    let files: [Setting: [String]] = [.tlsCert: ["c.pem"], .tlsKey: ["k.pem"]]
    let configuration = try load(files.merging([.https: [":8443"]]) { a, _ in a })
    #expect(configuration.tls.map { [$0.certificate, $0.key] } == ["c.pem", "k.pem"])
    #expect(complaint([.https: [":8443"]])?.contains("add --tls-cert FILE and --tls-key FILE") == true)
    #expect(complaint([.tlsCert: ["c.pem"]])?.contains("add --tls-key FILE") == true)
    #expect(complaint([.tlsKey: ["k.pem"]])?.contains("add --tls-cert FILE") == true)
    #expect(complaint(files)?.contains("no listener uses the certificate") == true)
  }

  @Test func twoListenersNeedTwoPortsUnlessTheSystemChooses() throws {
    #expect(complaint([.rtmp: [":8080"]]) == "--rtmp :8080: --http listens there already; choose another port")
    #expect(try load([.http: [":0"], .rtmp: [":0"]]).rtmp.port == 0)
  }

  @Test func recordingIsOffOnlyWhereNothingStrongerAsksForIt() throws {
    #expect(try load([.noRecord: ["1"]]).recording == .off)
    #expect(try load([.noRecord: ["1"]], environment: ["WEIR_RECORD": "r"]).recording == .off)
    #expect(try load([.record: ["r"]], environment: ["WEIR_NO_RECORD": "1"]).recording == .folder("r"))
    #expect(try load(environment: ["WEIR_NO_RECORD": "yes"]).recording == .off)
    #expect(try load(environment: ["WEIR_NO_RECORD": "0"]).recording == .folder("./recordings"))
    #expect(complaint([.record: ["r"], .noRecord: ["1"]])?.contains("keep one of the two") == true)
    #expect(complaint(environment: ["WEIR_NO_RECORD": "perhaps"])?.contains("use 1 or 0") == true)
  }

  @Test func sourcesBeginOnAirUnlessToldOtherwiseByWhoCanPutThemThere() throws {
    #expect(try load().sourcesBegin == .onAir)
    #expect(try load([.offAir: ["1"], .adminToken: ["t"]]).sourcesBegin == .offAir)
    #expect(try load(environment: ["WEIR_OFF_AIR": "1", "WEIR_ADMIN_TOKEN": "t"]).sourcesBegin == .offAir)
    #expect(try load(environment: ["WEIR_OFF_AIR": "0"]).sourcesBegin == .onAir)
    #expect(complaint([.offAir: ["1"]])?.contains("add --admin-token TOKEN") == true)
  }

  @Test func aKeyNeverShowsInTheConfiguration() throws {
    var text = ""
    dump(try load([.publishKey: ["canary-4711"]]), to: &text)
    #expect(text.contains("***"))
    #expect(!text.contains("canary"))
  }

  @Test func whereRecordingsGoIsNoContradictionAmongVariables() throws {
    #expect(try load(environment: ["WEIR_NO_RECORD": "1", "WEIR_RECORD": "r"]).recording == .off)
    #expect(try load(environment: ["WEIR_NO_RECORD": "0", "WEIR_RECORD": "r"]).recording == .folder("r"))
  }
}
