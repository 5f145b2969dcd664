import Base
@testable import Control
import FMP4
import HTTP
import LocalSources
import Logging
import Publishing
@testable import Recording
@testable import Settings
import Streams
import Testing

@Suite struct ServerConfigurationTests {
  private func load(
    _ flags: [SettingName: [String]] = [:], environment: [String: String] = [:]
  ) throws(ConfigurationError) -> ServerConfiguration {
    try ServerConfiguration(loading: SettingSources(flags: flags, environment: environment))
  }

  private func complaint(_ flags: [SettingName: [String]] = [:], environment: [String: String] = [:]) -> String? {
    let error = #expect(throws: ConfigurationError.self) { try load(flags, environment: environment) }
    #expect(error?.exitCode == 2)
    #expect(error?.description.contains("\n") == false)
    return error?.description
  }

  @Test func recordingsAreSplitSyncedAndLimitedAsTold() throws {
    let configuration = try load(
      [
        "record-mode": ["manual"], "record-sync": ["0s"], "record-split": ["1h"], "record-max-duration": ["8h"],
        "record-max-size": ["2GB"],
      ])
    #expect(
      configuration.streams.standard.recording
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
    #expect(configuration.streams.standard.settings.partTarget.seconds == 0.2)
    #expect(configuration.streams.standard.settings.segmentTarget.seconds == 2)
    #expect(configuration.streams.standard.settings.targetDuration == .automatic)
    #expect(configuration.streams.standard.settings.window.seconds == 60)
    #expect(configuration.streams.standard.settings.reconnectWindow.seconds == 30)
    #expect(
      configuration.maxViewers == 10000 && configuration.httpLimits.repeatedPolls == 100
        && configuration.keepFree == 1_000_000_000)
    #expect(configuration.recordingsFolder == "./recordings")
    #expect(configuration.streams.standard.recording == RecordingPolicy())
    #expect(configuration.segmentsFolder == nil && configuration.webFolder == nil)
    #expect(configuration.logLevel == .info && configuration.logFormat == .text)
  }

  @Test func `SRT callers without a stream ID have a stream where one is named`() throws {
    #expect(try load().srtDefaultStream == nil)
    #expect(try load(["srt-default-stream": ["cam"]]).srtDefaultStream == StreamName("cam"))
    #expect(try load(environment: ["WEIR_SRT_DEFAULT_STREAM": "stage"]).srtDefaultStream == StreamName("stage"))
    #expect(complaint(["srt-default-stream": ["a b"]])?.contains("--srt-default-stream") == true)
  }

  @Test func flagBeatsVariableBeatsDefault() throws {
    let environment = ["WEIR_HTTP": ":1", "WEIR_RTMP": ":2"]
    let configuration = try load(["http": [":3"]], environment: environment)
    #expect(configuration.http.port == 3)
    #expect(configuration.rtmp.port == 2)
  }

  @Test func anEmptyVariableIsNoneButAnEmptyKeyIsRefused() throws {
    #expect(try load(environment: ["WEIR_HTTP": ""]).http.port == 8080)
    #expect(complaint(environment: ["WEIR_PUBLISH_KEY": ""])?.contains("the key is empty") == true)
    #expect(complaint(["publish-key": [""]])?.contains("the key is empty") == true)
  }

  @Test func sourcesAddUpAndNamesAreUnique() throws {
    let configuration = try load(["source": ["a=test", "b=test"], "test-pattern": ["c"]])
    #expect(configuration.sources.map(\.name.description) == ["a", "b", "c"])
    #expect(try load(environment: ["WEIR_SOURCE": "a=test,b=test"]).sources.count == 2)
    #expect(
      complaint(["source": ["a=test"], "test-pattern": ["a"]])
        == "--test-pattern a: the name \"a\" is given twice; give each source its own name")
  }

  @Test func aNameOutsideTheGrammarIsRefused() {
    let long = String(repeating: "a", count: 65)
    for name in ["", "..", "a/b", "-a", "a b", "é", long] {
      #expect(complaint(["test-pattern": [name]])?.contains("cannot name a stream") == true)
    }
  }

  @Test func errorsNameTheFlagOrTheVariable() {
    #expect(
      complaint(["part-duration": ["200"]])
        == "--part-duration 200: a duration needs a unit; write 200ms or 200s")
    #expect(
      complaint(environment: ["WEIR_PART_DURATION": "200"])
        == "WEIR_PART_DURATION=200: a duration needs a unit; write 200ms or 200s")
    #expect(complaint(["http": ["a\nb"]])?.hasPrefix("--http a\\nb: ") == true)
  }

  @Test func aPartIsShorterThanASegment() throws {
    #expect(try load(["part-duration": ["1999ms"]]).streams.standard.settings.partTarget.seconds == 1.999)
    #expect(complaint(["part-duration": ["2s"]])?.contains("must be shorter than a segment (2s)") == true)
  }

  @Test func theWindowHoldsThreeSegments() throws {
    #expect(try load(["window": ["6s"]]).streams.standard.settings.window.seconds == 6)
    #expect(complaint(["window": ["5999ms"]])?.contains("use at least 6s") == true)
  }

  @Test func aTargetDurationIsNotShorterThanASegment() throws {
    #expect(try load(["target-duration": ["2"]]).streams.standard.settings.targetDuration == .seconds(2))
    #expect(try load(["target-duration": ["6s"]]).streams.standard.settings.targetDuration == .seconds(6))
    #expect(complaint(["target-duration": ["1"]])?.contains("use 2 or more, or auto") == true)
    #expect(complaint(["target-duration": ["1.5"]])?.contains("or auto") == true)
  }

  @Test func viewersAreCountedFromOne() throws {
    #expect(try load(["max-viewers": ["1"]]).maxViewers == 1)
    #expect(complaint(["max-viewers": ["0"]])?.contains("from 1 to 1000000") == true)
    #expect(complaint(["max-viewers": ["1000001"]]) != nil)
  }

  @Test func tlsNeedsBothFilesAndAListener() throws {
    let files: [SettingName: [String]] = ["tls-cert": ["c.pem"], "tls-key": ["k.pem"]]
    let configuration = try load(files.merging(["https": [":8443"]]) { a, _ in a })
    #expect(configuration.tls.map { [$0.certificate, $0.key] } == ["c.pem", "k.pem"])
    #expect(complaint(["https": [":8443"]])?.contains("add --tls-cert FILE and --tls-key FILE") == true)
    #expect(complaint(["tls-cert": ["c.pem"]])?.contains("add --tls-key FILE") == true)
    #expect(complaint(["tls-key": ["k.pem"]])?.contains("add --tls-cert FILE") == true)
    #expect(complaint(files)?.contains("no listener uses the certificate") == true)
  }

  @Test func twoListenersNeedTwoPortsUnlessTheSystemChooses() throws {
    #expect(complaint(["rtmp": [":8080"]]) == "--rtmp :8080: --http listens there already; choose another port")
    #expect(
      complaint(["srt": [":9"], "webrtc": [":9"]]) == "--webrtc :9: --srt listens there already; choose another port")
    #expect(try load(["http": [":0"], "rtmp": [":0"]]).rtmp.port == 0)
    #expect(try load(["http": [":9"], "srt": [":9"]]).http.port == 9, "one is of TCP, the other of UDP")
  }

  @Test func recordingIsOffOnlyWhereNothingStrongerAsksForIt() throws {
    #expect(try load(["no-record": ["1"]]).recordingsFolder == nil)
    #expect(try load(["no-record": ["1"]], environment: ["WEIR_RECORD": "r"]).recordingsFolder == nil)
    #expect(try load(["record": ["r"]], environment: ["WEIR_NO_RECORD": "1"]).recordingsFolder == "r")
    #expect(try load(environment: ["WEIR_NO_RECORD": "yes"]).recordingsFolder == nil)
    #expect(try load(environment: ["WEIR_NO_RECORD": "0"]).recordingsFolder == "./recordings")
    #expect(complaint(["record": ["r"], "no-record": ["1"]])?.contains("keep one of the two") == true)
    #expect(complaint(environment: ["WEIR_NO_RECORD": "perhaps"])?.contains("use 1 or 0") == true)
  }

  @Test func sourcesBeginOnAirUnlessToldOtherwiseByWhoCanPutThemThere() throws {
    #expect(try load().sourcesBegin == .onAir)
    #expect(try load(["off-air": ["1"], "admin-token": ["t"]]).sourcesBegin == .offAir)
    #expect(try load(environment: ["WEIR_OFF_AIR": "1", "WEIR_ADMIN_TOKEN": "t"]).sourcesBegin == .offAir)
    #expect(try load(environment: ["WEIR_OFF_AIR": "0"]).sourcesBegin == .onAir)
    #expect(complaint(["off-air": ["1"]])?.contains("add --admin-token TOKEN") == true)
  }

  @Test func aKeyNeverShowsInTheConfiguration() throws {
    var text = ""
    dump(try load(["publish-key": ["canary-4711"]]), to: &text)
    #expect(text.contains("***"))
    #expect(!text.contains("canary"))
  }

  @Test func whereRecordingsGoIsNoContradictionAmongVariables() throws {
    #expect(try load(environment: ["WEIR_NO_RECORD": "1", "WEIR_RECORD": "r"]).recordingsFolder == nil)
    #expect(try load(environment: ["WEIR_NO_RECORD": "0", "WEIR_RECORD": "r"]).recordingsFolder == "r")
  }
}
