import Base
@testable import LibAV
import Publishing
@testable import Settings
import Streams
import Testing
import Transcode

@Suite struct LadderSpecificationTests {
  @Test func aLadderIsSortedFromTheLargestRung() throws {
    let ladder = try LadderSpecification(parsing: "360p@800k,1080p@5M,720p@2.5M")
    #expect(ladder.rungs.map(\.name) == ["1080p", "720p", "360p"])
    #expect(ladder.rungs.map(\.bitRate) == [5_000_000, 2_500_000, 800_000])
  }

  @Test func aNameBeforeTheRungsIsTheStreams() throws {
    let named = try #require(try LadderSpecification.named("cam=240p@300000"))
    #expect(named.stream.description == "cam")
    #expect(try LadderSpecification(parsing: named.rest).rungs == [RungSpecification(shortSide: 240, bitRate: 300_000)])
  }

  @Test func aRungMayHaveAPresetOfItsOwn() throws {
    let ladder = try LadderSpecification(parsing: "720p@3M:preset=fast,360p@800k")
    #expect(try LadderSpecification.named("720p@3M:preset=fast,360p@800k") == nil)
    #expect(ladder.rungs.map(\.preset) == [.fast, .veryfast])
  }

  @Test(arguments: [
    "720p@3M:preset=", "720p@3M:preset=quick", "720p@3M:fast", "720p@3M:preset=fast:preset=slow", "720p@3M:", "", ",",
    "720p", "720@3M", "720p@", "720p@x", "721p@3M", "62p@100k", "4322p@3M", "720p@49k", "720p@201M",
    "720p@3M,720p@1M", "a b=720p@3M", "=720p@3M", "0720p@3M", "720p@3M,",
    "64p@1M,66p@1M,68p@1M,70p@1M,72p@1M,74p@1M,76p@1M,78p@1M,80p@1M",
  ])
  func whatMakesNoSenseIsRefused(text: String) {
    #expect(throws: ValueError.self) { _ = try LadderSpecification(parsing: text) }
  }

  @Test func aStreamsOwnLadderBeatsTheOneOfAll() throws {
    let sources = SettingSources(
      flags: ["ladder": ["720p@3M", "cam=360p@800k"]], environment: ["WEIR_LADDER": "ignored"])
    let profiles = try StreamProfiles(loading: sources, publicURL: nil)
    #expect(profiles[try #require(StreamName("cam"))].settings.ladder.map(\.name) == ["360p"])
    #expect(profiles[try #require(StreamName("other"))].settings.ladder.map(\.name) == ["720p"])
    #expect(profiles.standard.settings.layout == .separate)
  }

  @Test func aVariableSeparatesLaddersBySemicolons() throws {
    let sources = SettingSources(environment: ["WEIR_LADDER": "720p@3M,360p@800k;cam=240p@300k"])
    let profiles = try StreamProfiles(loading: sources, publicURL: nil)
    #expect(profiles.all.map { $0.settings.ladder.map(\.name) } == [["720p", "360p"], ["240p"]])
  }

  @Test func aLadderThatIsGivenTwiceIsRefused() {
    let sources = SettingSources(flags: ["ladder": ["720p@3M", "360p@800k"]])
    #expect(throws: ConfigurationError.self) { _ = try sources[StreamOptions().ladder] }
    let named = SettingSources(flags: ["ladder": ["cam=720p@3M", "cam=360p@800k"]])
    #expect(throws: ConfigurationError.self) { _ = try StreamProfiles(loading: named, publicURL: nil) }
    let misnamed = SettingSources(flags: ["ladder": ["a b=720p@3M"]])
    #expect(throws: ConfigurationError.self) { _ = try StreamProfiles(loading: misnamed, publicURL: nil) }
  }

  @Test(arguments: [
    (1920, 1080, "720p", 1280, 720), (1080, 1920, "720p", 720, 1280), (1440, 1080, "360p", 480, 360),
    (854, 480, "240p", 428, 240), (4096, 1716, "720p", 1718, 720),
  ])
  func aRungHasTheShapeOfItsSource(width: Int, height: Int, name: String, wide: Int, high: Int) throws {
    let side = try #require(Int(name.dropLast()))
    let size = RungSpecification(shortSide: side, bitRate: 1_000_000).size(ofSource: (width, height))
    #expect(size == (wide, high))
  }

  @Test func nothingIsScaledUpAndARungThatEqualsTheSourceIsTheSource() {
    let rung = RungSpecification(shortSide: 720, bitRate: 1_000_000)
    #expect(rung.applies(toSource: (1282, 722)))
    #expect(!rung.applies(toSource: (1280, 720)))
    #expect(!rung.applies(toSource: (640, 360)))
    // For viewers by WebRTC a source is encoded anew in its own size.
    let anew = RungSpecification(shortSide: 720, bitRate: 1_000_000, smallSource: .encoded)
    #expect(anew.applies(toSource: (640, 360)) && anew.size(ofSource: (640, 360)) == (640, 360))
    #expect(anew.size(ofSource: (354, 191)) == (352, 190) && anew.size(ofSource: (1920, 1080)) == (1280, 720))
  }
}
