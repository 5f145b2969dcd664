import FMP4
import LibAV
import Local
import Support
import Testing

@Suite("The test pattern as YUV4MPEG2")
struct TestPatternFileTests {
  private let settings = TestSourceSettings(width: 320, height: 180)

  private func written(_ frames: Range<Int64>, wallStart: WallTime = PatternClock.wallStart) throws -> [UInt8] {
    var bytes: [UInt8] = []
    try TestPatternFile(settings: settings, wallStart: wallStart).write(frames) { bytes += $0 }
    return bytes
  }

  private let header = Array("YUV4MPEG2 W320 H180 F30000:1000 Ip A1:1 C420\n".utf8)
  private let mark = Array("FRAME\n".utf8)
  private let frameSize = 320 * 180 * 3 / 2

  @Test func `A header is followed by marked frames of planar 4 2 0`() throws {
    let bytes = try written(0..<3)
    #expect(bytes.count == header.count + 3 * (mark.count + frameSize))
    #expect(bytes.starts(with: header))
    for frame in 0..<3 {
      let start = header.count + frame * (mark.count + frameSize)
      #expect(Array(bytes[start..<start + mark.count]) == mark)
    }
    #expect(try written(5..<5) == header)
  }

  @Test func `Each frame has its number burned in`() throws {
    var bytes = try written(4294..<4298)
    for frame in 0..<4 {
      let start = header.count + frame * (mark.count + frameSize) + mark.count
      let number = bytes.withUnsafeMutableBytes { all in
        CounterBlock(frameWidth: 320).read(
          from: LumaPlane(
            pixels: UnsafeMutableRawBufferPointer(rebasing: all[start..<start + 320 * 180]), stride: 320, width: 320,
            height: 180))
      }
      #expect(number == UInt32(4294 + frame))
    }
  }

  @Test func `Equal settings and times give equal bytes, and frames do not depend on those before`() throws {
    #expect(try written(7..<9) == written(7..<9))
    #expect(try Array(written(7..<9).suffix(frameSize)) == Array(written(8..<9).suffix(frameSize)))
    #expect(try written(7..<8) != written(7..<8, wallStart: PatternClock.wallStart + 3_600_000_000_000))
  }

  @Test func `It stops when no more is taken`() throws {
    struct Full: Error {}
    var taken = 0
    #expect(throws: Full.self) {
      try TestPatternFile(settings: settings, wallStart: 0).write(0..<1_000_000) { bytes in
        taken += bytes.count
        if taken > 10_000 { throw Full() }
      }
    }
    #expect(taken < 11_000)
  }
}
