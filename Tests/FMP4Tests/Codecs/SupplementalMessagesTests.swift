@testable import FMP4
import NIOCore
import Testing

@Suite("SupplementalMessages and NALUnitRole")
struct SupplementalMessagesTests {
  private func messages(_ unit: [UInt8], headerLength: Int = 1) -> SupplementalMessages {
    var messages = SupplementalMessages()
    messages.read(unit, headerLength: headerLength)
    return messages
  }

  @Test func `A recovery point of no frames is one, and one of some frames is none`() {
    #expect(messages([0x06, 0x06, 0x01, 0xC4, 0x80]).isRecoveryPoint)
    #expect(!messages([0x06, 0x06, 0x01, 0x44, 0x80]).isRecoveryPoint, "recovery_frame_cnt 1")
    #expect(
      !messages([0x4E, 0x01, 0x06, 0x01, 0xC4, 0x80], headerLength: 2).isRecoveryPoint, "of HEVC it is another one")
  }

  @Test func `A picture that becomes whole little by little is told`() {
    #expect(messages([0x06, 0x06, 0x01, 0x44, 0x80]).isGradualRefresh)
    #expect(!messages([0x06, 0x06, 0x01, 0xC4, 0x80]).isGradualRefresh)
    // recovery_poc_cnt of HEVC: 1, 0 and -1.
    for (bits, isGradual) in [(0x54, true), (0xC4, false), (0x74, false)] as [(UInt8, Bool)] {
      #expect(messages([0x4E, 0x01, 0x06, 0x01, bits, 0x80], headerLength: 2).isGradualRefresh == isGradual)
    }
  }

  @Test func `A message behind one of 255 bytes and more is read`() {
    let long: [UInt8] = [0x05, 0xFF, 0x02] + [UInt8](repeating: 0x11, count: 257)
    #expect(messages([0x06] + long + [0x06, 0x01, 0xC4, 0x80]).isRecoveryPoint)
  }

  @Test func `Light levels of an HDR film are read, and a message that is too short is ignored`() {
    let level = messages([0x4E, 0x01, 0x90, 0x04, 0x03, 0xE8, 0x01, 0x90, 0x80], headerLength: 2).lightLevel
    #expect(level?.maximum == 1000 && level?.maximumAverage == 400)
    #expect(messages([0x4E, 0x01, 0x90, 0x04, 0x03, 0xE8], headerLength: 2).lightLevel == nil)
    #expect(messages([]).lightLevel == nil && messages([0xFF, 0xFF, 0xFF, 0xFF]).lightLevel == nil)
  }

  @Test(
    arguments: [
      (CodecID.h264, [0x65, 0x88], NALUnitRole.first), (.h264, [0x65, 0x08], .slice), (.h264, [0x41, 0x9A], .first),
      (.h264, [0x67, 0x64], .leading), (.h264, [0x09, 0x10], .leading), (.h264, [0x0C, 0xFF], .other),
      (.hevc, [0x26, 0x01, 0x80], .first), (.hevc, [0x26, 0x01, 0x00], .slice), (.hevc, [0x40, 0x01, 0x0C], .leading),
      (.hevc, [0x26, 0x09, 0x80], .slice), (.hevc, [0x4A, 0x01, 0x00], .other),
    ] as [(CodecID, [UInt8], NALUnitRole)])
  func `A NAL unit says how it takes part in a frame`(_ coding: CodecID, _ unit: [UInt8], _ role: NALUnitRole) {
    #expect(coding.type.role(ofUnitAt: 1, in: ByteBuffer(bytes: [0] + unit)) == role)
    for count in 0..<unit.count {
      #expect(coding.type.role(ofUnitAt: 1, in: ByteBuffer(bytes: [0] + unit.prefix(count))) == nil)
    }
  }

  @Test func `Codecs without NAL units have no roles`() {
    for coding in CodecID.allCases where coding != .h264 && coding != .hevc {
      #expect(!coding.type.hasNALUnits && coding.type.role(ofUnitAt: 0, in: ByteBuffer(bytes: [0x65, 0x88, 0])) == nil)
    }
  }
}
