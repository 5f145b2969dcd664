import Base
import FMP4
import Publishing
@testable import Settings
import Streams
import Testing
import Transcode

@Suite struct AudioSettingTextTests {
  @Test func aCodecMayHaveAStreamAndABitRate() throws {
    #expect(try AudioSettingText(parsing: "aac").audio == AudioSpecification(.aac))
    #expect(try AudioSettingText(parsing: "source").audio == nil)
    let own = try #require(try AudioSettingText.named("cam=opus@64k"))
    #expect(own.stream.description == "cam")
    #expect(try AudioSettingText(parsing: own.rest).audio == AudioSpecification(.opus, bitRate: 64_000))
  }

  @Test(arguments: ["", "mp3", "aac@", "aac@23k", "aac@513k", "a b=aac", "=aac", "aac@64k@64k", "AAC"])
  func whatMakesNoSenseIsRefused(text: String) {
    #expect(throws: ValueError.self) { _ = try AudioSettingText(parsing: text) }
  }

  @Test func aStreamsOwnSettingBeatsTheOneOfAll() throws {
    let sources = SettingSources(environment: ["WEIR_AUDIO_CODEC": "aac,cam=source,mic=opus"])
    let profiles = try StreamProfiles(loading: sources, publicURL: nil)
    #expect(profiles[try #require(StreamName("cam"))].settings.audio == nil)
    #expect(profiles[try #require(StreamName("mic"))].settings.audio?.coding == .opus)
    #expect(profiles[try #require(StreamName("other"))].settings.audio?.coding == .aac)
    #expect(profiles[try #require(StreamName("cam"))].settings.addsPlayableAudio == false)
    let none = try StreamProfiles(loading: SettingSources(environment: [:]), publicURL: nil)
    #expect(none[try #require(StreamName("cam"))].settings.addsPlayableAudio)
    let twice = SettingSources(flags: ["audio-codec": ["aac", "opus"]])
    #expect(throws: ConfigurationError.self) { _ = try twice[StreamOptions().audioCodec] }
  }
}
