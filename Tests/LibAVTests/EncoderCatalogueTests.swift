import FMP4
import LibAV
import Testing

@Suite("The encoders of this machine")
struct EncoderCatalogueTests {
  @Test func `Every encoder is listed once with its coding`() {
    let listed = EncoderCatalogue.list()
    let video = listed.filter { CodecID(rawValue: $0.coding)?.kind == .video }
    #expect(video.map(\.name) == VideoEncoderName.allCases.map(\.rawValue))
    #expect(video.map(\.isHardware) == VideoEncoderName.allCases.map(\.isHardware))
    let audio = listed.filter { CodecID(rawValue: $0.coding)?.kind == .audio }
    #expect(Set(audio.map(\.name)) == ["aac", "libopus"] && audio.allSatisfy { !$0.isHardware })
    #expect(video.count + audio.count == listed.count)
    // What weir's packages bring along works.
    #expect(listed.filter { ["libx264", "aac", "libopus"].contains($0.name) }.allSatisfy { $0.problem == nil })
    // What does not work says why, in one line.
    #expect(listed.compactMap(\.problem).allSatisfy { !$0.isEmpty && !$0.contains("\n") })
  }

  @Test func `Software works everywhere`() {
    #expect(EncoderCatalogue.problem(of: .x264) == nil)
  }
}
