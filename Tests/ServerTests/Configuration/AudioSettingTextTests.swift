import FMP4
import Ingest
import Testing

@testable import Basics
@testable import Server

@Suite struct AudioSettingTextTests {
  @Test func aCodecMayHaveAStreamAndABitRate() throws {
    #expect(try AudioSettingText(parsing: "aac").audio == AudioSpecification(.aac))
    #expect(try AudioSettingText(parsing: "source").audio == nil)
    let own = try AudioSettingText(parsing: "cam=opus@64k")
    #expect(own.name?.description == "cam")
    #expect(own.audio == AudioSpecification(.opus, bitRate: 64_000))
  }

  @Test(arguments: ["", "mp3", "aac@", "aac@23k", "aac@513k", "a b=aac", "=aac", "aac@64k@64k", "AAC"])
  func whatMakesNoSenseIsRefused(text: String) {
    #expect(throws: ValueError.self) { _ = try AudioSettingText(parsing: text) }
  }

  @Test func aStreamsOwnSettingBeatsTheOneOfAll() throws {
    let sources = SettingSources(environment: ["WEIR_AUDIO_CODEC": "aac,cam=source,mic=opus"])
    let audioProfiles = try sources[StreamOptions().audioCodec]
    #expect(audioProfiles[try #require(StreamName("cam"))] == nil)
    #expect(audioProfiles[try #require(StreamName("mic"))]?.coding == .opus)
    #expect(audioProfiles[try #require(StreamName("other"))]?.coding == .aac)
    let twice = SettingSources(flags: ["audio-codec": ["aac", "opus"]])
    #expect(throws: ConfigurationError.self) { _ = try twice[StreamOptions().audioCodec] }
  }
}
