import Testing
@testable import WebRTC

@Suite struct CRC32Tests {
  @Test func `The check value of ISO 3309, and of no bytes`() {
    #expect(CRC32.of(Array("123456789".utf8)) == 0xCBF4_3926)
    #expect(CRC32.of([UInt8]()) == 0 && CRC32.of([0] as [UInt8]) == 0xD202_EF8D)
  }

  /// RFC 5769 §2.1: the fingerprint is the checksum of what stands before it, xor "STUN".
  @Test func `The fingerprint of RFC 5769`() {
    let stated = STUNTests.sample.suffix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    #expect(CRC32.of(STUNTests.sample.dropLast(8)) ^ 0x5354_554E == stated)
  }
}
