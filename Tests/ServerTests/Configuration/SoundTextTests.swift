import FMP4
import Ingest
import Testing

@testable import Basics
@testable import Server

@Suite struct SoundTextTests {
  @Test func aCodecMayHaveAStreamAndABitRate() throws {
    #expect(try SoundText(parsing: "aac").sound == SoundSpecification(.aac))
    #expect(try SoundText(parsing: "source").sound == nil)
    let own = try SoundText(parsing: "cam=opus@64k")
    #expect(own.name?.description == "cam")
    #expect(own.sound == SoundSpecification(.opus, bitRate: 64_000))
  }

  @Test(arguments: ["", "mp3", "aac@", "aac@23k", "aac@513k", "a b=aac", "=aac", "aac@64k@64k", "AAC"])
  func whatMakesNoSenseIsRefused(text: String) {
    #expect(throws: ValueError.self) { _ = try SoundText(parsing: text) }
  }

  @Test func aStreamsOwnSettingBeatsTheOneOfAll() throws {
    let sources = SettingSources(environment: ["WEIR_AUDIO_CODEC": "aac,cam=source,mic=opus"])
    let sounds = try sources[StreamOptions().audioCodec]
    #expect(sounds[try #require(StreamName("cam"))] == nil)
    #expect(sounds[try #require(StreamName("mic"))]?.coding == .opus)
    #expect(sounds[try #require(StreamName("other"))]?.coding == .aac)
    let twice = SettingSources(flags: ["audio-codec": ["aac", "opus"]])
    #expect(throws: ConfigurationError.self) { _ = try twice[StreamOptions().audioCodec] }
  }
}
