import CLibAV
@testable import LibAV
import Testing

@Suite("The codec library")
struct CaptureLibraryTests {
  @Test func `Its version and licence are told as it states them`() throws {
    let words = CaptureLibrary.description.split(separator: " ", maxSplits: 2)
    #expect(words.first == "libavcodec")
    let version = try #require(words.dropFirst().first).split(separator: ".").map { Int($0) ?? -1 }
    #expect(version.count == 3 && version.allSatisfy { $0 >= 0 })
    #expect(version.first == Int(avcodec_version() >> 16))
    // One of FFmpeg's licences, in brackets.
    let licence = try #require(words.last)
    #expect(licence.hasPrefix("(") && licence.hasSuffix(")") && licence.contains("GPL"))
  }
}
