import CLibAV
@testable import Local
import Testing

@Suite struct SampleFormatTests {
  private func widened(_ packed: [UInt8], room: Int) -> [Int32] {
    var wide = [Int32](repeating: 77, count: room)
    wide.withUnsafeMutableBytes { wide in
      packed.withUnsafeBytes { SampleFormat.widen($0, into: wide) }
    }
    return wide
  }

  @Test func packedSamplesKeepTheirSignAndLoudness() {
    let packed: [UInt8] = [
      0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 0x00, 0x00, 0x80, 0x56, 0x34, 0x12,
    ]
    #expect(widened(packed, room: 6) == [0, 256, -256, 0x7FFF_FF00, .min, 0x1234_5600])
  }

  @Test func whatIsNoWholeSampleOrHasNoRoomIsLeftOut() {
    #expect(widened([1, 2, 3, 4, 5], room: 2) == [0x0302_0100, 77])
    #expect(widened([1, 2, 3, 4, 5, 6], room: 1) == [0x0302_0100])
    #expect(widened([], room: 1) == [77])
  }

  @Test func theDevicesSizesAreALSAs() {
    #expect(SampleFormat.allCases.map(\.deviceBytes) == [4, 4, 3, 2, 1])
    #expect(SampleFormat.packed24.converted == AV_SAMPLE_FMT_S32)
  }

  /// A packed tone becomes what the same tone in 32 bits becomes.
  @Test func packedAudioIsHeardAsItIs() throws {
    let tone = (0..<4800).map { number in Int32(number % 96 - 48) * 65_536 }
    let packed = tone.flatMap { value in
      let bits = UInt32(bitPattern: value)
      return [
        UInt8(truncatingIfNeeded: bits), UInt8(truncatingIfNeeded: bits >> 8), UInt8(truncatingIfNeeded: bits >> 16),
      ]
    }
    #expect(widened(packed, room: tone.count) == tone.map { $0 << 8 })
  }
}
