import FMP4
import Testing
@testable import Transcode

@Suite("What a transcoder makes")
struct TranscodeAimTests {
  @Test func `Renditions have their names in the ladder's order`() {
    let ladder = [720, 480, 1080].map { RungSpecification(shortSide: $0, bitRate: 1_000_000) }
    #expect(TranscodeAim.video(ladder).names == ["720p", "480p", "1080p"])
    #expect(TranscodeAim.video([]).names == [])
    #expect(TranscodeAim.audio(AudioSpecification(.opus)).names == ["opus"])
  }
}
