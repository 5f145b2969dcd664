import FMP4
import NIOCore
import Publishing
import Support
import Testing

@Suite("Parameter sets of a video in a transport stream")
struct VideoParameterSetsTests {
  /// The sets of SyntheticMedia's record, by their places in it (ISO/IEC 14496-15 §5.3.3.1).
  private static let sps = Array(SyntheticMedia.h264Record[8..<8 + 26])
  private static let pps = Array(SyntheticMedia.h264Record[37..<37 + 6])

  private static func filler(_ number: Int) -> [UInt8] { [9, UInt8(number >> 8), UInt8(number & 255)] }

  @Test func `A configuration is there once there is a set of each kind, in any order`() throws {
    for order in [[Self.sps, Self.pps], [Self.pps, Self.sps]] {
      var sets = VideoParameterSets(.h264)
      #expect(try !sets.receive([]) && !sets.receive([order[0]]) && !sets.receive([order[0]]))
      #expect(sets.codec == nil)
      #expect(try sets.receive([order[1]]))
      let codec = try #require(sets.codec)
      #expect(codec.id == .h264 && codec.codecString == "avc1.64000D")
      #expect(codec.displaySize?.width == 320 && codec.displaySize?.height == 180)
    }
  }

  @Test func `The same sets again change nothing, and others do`() throws {
    var sets = VideoParameterSets(.h264)
    #expect(try sets.receive([Self.sps, Self.pps]))
    #expect(try !sets.receive([Self.sps, Self.pps]) && !sets.receive([Self.pps]))
    var other = Self.sps
    other[3] = 0x1E  // level_idc 3
    #expect(try sets.receive([other, Self.pps]))
    #expect(sets.codec?.codecString == "avc1.64001E")
  }

  @Test func `Of HEVC three kinds are wanted`() throws {
    var sets = VideoParameterSets(.hevc)
    let kinds = [32, 33, 34].map { [UInt8($0 << 1), 1, 0xFF] }
    #expect(try !sets.receive([kinds[0], kinds[1]]) && sets.codec == nil)
    // Whole, and nothing that a decoder takes.
    #expect(throws: CodecError.self) { try sets.receive([kinds[2]]) }
    #expect(sets.codec == nil)
  }

  @Test func `Sets that cannot be used are told, and better ones taken`() throws {
    var sets = VideoParameterSets(.h264)
    #expect(throws: CodecError.self) { try sets.receive([[0x67, 1], Self.pps]) }
    #expect(try !sets.receive([Self.pps]), "the unusable ones are forgotten")
    #expect(try sets.receive([Self.sps]))
  }

  @Test func `The newest sets are kept to the limit`() throws {
    let limit = PublicationLimits.parameterSets
    for (fillers, isThere) in [(limit - 2, true), (limit - 1, false)] {
      var sets = VideoParameterSets(.h264)
      _ = try sets.receive([Self.sps])
      for number in 0..<fillers { #expect(try !sets.receive([Self.filler(number)])) }
      #expect(try sets.receive([Self.pps]) == isThere, "\(fillers)")
    }
  }

  @Test func `An empty set is passed over`() throws {
    var sets = VideoParameterSets(.h264)
    #expect(try !sets.receive([[], Self.sps]) && sets.receive([Self.pps]))
  }
}
