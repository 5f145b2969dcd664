import FMP4
import Testing

@Suite("Codes of four characters")
struct FourCCTests {
  @Test func `A literal is its bytes, the first in the highest bits`() {
    #expect(FourCC(stringLiteral: "moov").rawValue == 0x6D6F_6F76)
    #expect(("url " as FourCC).rawValue == 0x7572_6C20)
    #expect(("µ-l" as FourCC).rawValue == 0xC2B5_2D6C, "bytes count, not letters")
  }

  @Test func `The text is the four bytes, and bytes that are no text are replaced`() {
    #expect("\(FourCC(rawValue: 0x6D64_6174))" == "mdat")
    #expect("\(FourCC(rawValue: 0x7572_6C20))" == "url ")
    #expect(FourCC(rawValue: 0).description.utf8.elementsEqual([0, 0, 0, 0]))
    #expect(FourCC(rawValue: 0xFFFF_FFFF).description == "\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}")
  }

  @Test func `Codes are equal when their bytes are`() {
    #expect(Set<FourCC>(["avc1", "hvc1", FourCC(rawValue: 0x6176_6331)]).count == 2)
    #expect("avc1" as FourCC != "avC1")
  }
}
