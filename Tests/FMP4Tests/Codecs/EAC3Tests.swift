@testable import FMP4
import NIOCore
import Support
import Testing

/// Frames and the record of E-AC-3, by ETSI TS 102 366: fields of §E.1.2, the box of annex F.6.
@Suite struct EAC3Tests {
  /// The fields of a frame, as wide as the standard has them.
  private struct Fields {
    var type = 0
    var substream = 0
    var bytes = 1536
    var rate = 0
    var blocks = 3
    var mode = 7
    var lfe = 1
    var identification = 16
    var map: Int?

    var frame: ByteBuffer {
      var text = BitText.number(0x0B77, 16) + BitText.number(type, 2) + BitText.number(substream, 3)
      text += BitText.number(bytes / 2 - 1, 11) + BitText.number(rate, 2) + BitText.number(blocks, 2)
      text += BitText.number(mode, 3) + BitText.number(lfe, 1) + BitText.number(identification, 5)
      // dialnorm, and a compr of eight bits; of dual mono two of both.
      for _ in 0..<(mode == 0 ? 2 : 1) { text += BitText.number(31, 5) + "1" + BitText.number(0xA5, 8) }
      if type == 1 { text += map.map { "1" + BitText.number($0, 16) } ?? "0" }
      let head = BitText.bytes(text)
      return ByteBuffer(bytes: head + [UInt8](repeating: 0, count: max(0, bytes - head.count)))
    }
  }

  private func read(_ change: (inout Fields) -> Void = { _ in }) -> EAC3.Frame? {
    var fields = Fields()
    change(&fields)
    return EAC3.Frame(fields.frame)
  }

  @Test func `A header is read`() throws {
    let frame = try #require(read { $0.substream = 5 })
    #expect(frame.role == .independent && frame.substream == 5 && frame.byteCount == 1536 && frame.blocks == 6)
    #expect([0, 1, 2].compactMap { blocks in read { $0.blocks = blocks }?.blocks } == [1, 2, 3])
    #expect(read { $0.bytes = 2 }?.byteCount == 2 && read { $0.bytes = 4096 }?.byteCount == 4096)
  }

  @Test func `What the standard reserves is no frame`() {
    #expect(read { $0.type = 2 } != nil && read { $0.type = 3 } == nil)
    #expect(read { $0.rate = 2 } != nil && read { $0.rate = 3 } == nil)
    // 11 to 16: a decoder of E-AC-3 reads those. 8 and less are AC-3.
    #expect((0...31).filter { id in read { $0.identification = id } != nil } == Array(11...16))
    var other = Fields().frame
    other.setInteger(UInt8(0x78), at: 1)
    #expect(EAC3.Frame(other) == nil)
  }

  @Test func `A header that ends within its fields is no frame`() {
    let whole = Array(Fields().frame.readableBytesView)
    // 45 bits.
    for count in 0..<6 { #expect(EAC3.Frame(ByteBuffer(bytes: whole.prefix(count))) == nil, "\(count)") }
    #expect(EAC3.Frame(ByteBuffer(bytes: whole.prefix(6))) != nil)
    var fields = Fields()
    (fields.type, fields.map) = (1, 0x0200)
    // 45 bits, then 5, 1, 8, 1 and 16.
    let dependent = Array(fields.frame.readableBytesView)
    for count in 0..<10 { #expect(EAC3.Frame(ByteBuffer(bytes: dependent.prefix(count))) == nil, "\(count)") }
    #expect(EAC3.Frame(ByteBuffer(bytes: dependent.prefix(10)))?.role == .dependent(channelMap: 0x0200))
  }

  @Test func `A dependent frame has its own channels, also beside dual mono`() {
    #expect(read { $0.type = 1 }?.role == .dependent(channelMap: nil))
    for mode in 0...7 {
      #expect(read { ($0.type, $0.mode, $0.map) = (1, mode, 0xBEEF) }?.role == .dependent(channelMap: 0xBEEF))
    }
  }

  /// 13 bits of kbit/s, programmes − 1, then rate, identification, mode and so on of the first one.
  @Test func `The record of 5.1 at 384 kbit per second`() throws {
    let record: [UInt8] = [0x0C, 0x00, 0x20, 0x0F, 0x00]
    #expect(EAC3.Configuration.record(inFrame: Fields().frame) == record)
    let stored = try EAC3.Configuration(record: ByteBuffer(bytes: record))
    #expect(stored.sampleRate == 48_000 && stored.channels == 6 && stored.dataRate == 384 && stored.record() == record)
  }

  @Test func `7·1 is an independent frame and one that adds a pair`() throws {
    var added = Fields()
    // Lrs and Rrs: bit 6 of the map from the left, bit 1 of the locations.
    (added.type, added.mode, added.lfe, added.bytes, added.map) = (1, 2, 0, 512, 1 << 9)
    var sample = Fields().frame
    sample.writeImmutableBuffer(added.frame)
    let record = try #require(EAC3.Configuration.record(inFrame: sample))
    #expect(record == [0x10, 0x00, 0x20, 0x0F, 0x02, 0x02])
    #expect(try EAC3.Configuration(record: ByteBuffer(bytes: record)).channels == 8)
    // Without its first frame it is nothing.
    #expect(EAC3.Configuration.record(inFrame: added.frame) == nil)
  }

  /// Table E.1.5 and annex F.6: pairs count twice, single channels once.
  @Test func `Each location adds its channels`() throws {
    let locations: [(map: Int, channels: Int)] = [
      (0x400, 2), (0x200, 2), (0x100, 1), (0x80, 1), (0x40, 2), (0x20, 2), (0x10, 2), (0x08, 1), (0x02, 1), (0, 0),
      (0x502, 4),
    ]
    for (map, channels) in locations {
      let main = try #require(read())
      let dependent = try #require(read { ($0.type, $0.map) = (1, map) })
      let made = try #require(EAC3.Configuration([main, dependent]))
      #expect(made.channels == 6 + channels, "\(map)")
      #expect(try EAC3.Configuration(record: ByteBuffer(bytes: made.record())).channels == made.channels, "\(map)")
    }
  }

  @Test func `A record that is short, of several programmes or of a reserved rate is refused`() throws {
    let record: [UInt8] = [0x10, 0x00, 0x20, 0x0F, 0x02, 0x02]
    for count in 0..<record.count {
      #expect(throws: CodecError.self, "\(count)") {
        try EAC3.Configuration(record: ByteBuffer(bytes: record.prefix(count)))
      }
    }
    #expect(try EAC3.Configuration(record: ByteBuffer(bytes: record)).dependents == 1)
    var several = record
    several[1] |= 1
    var reserved = record
    reserved[2] |= 0xC0
    for wrong in [several, reserved] {
      #expect(throws: CodecError.self) { try EAC3.Configuration(record: ByteBuffer(bytes: wrong)) }
    }
  }

  @Test func `What follows the record is kept, to a bound`() throws {
    let record: [UInt8] = [0x0C, 0x00, 0x20, 0x0F, 0x00]
    for (more, kept) in [(1, 1), (16, 16), (17, 16), (200, 16)] {
      let stored = try EAC3.Configuration(record: ByteBuffer(bytes: record + [UInt8](repeating: 7, count: more)))
      #expect(stored.record() == record + [UInt8](repeating: 7, count: kept))
    }
  }

  @Test func `A rate of bytes that varies is the same format, other channels are not`() throws {
    func made(_ change: (inout Fields) -> Void) throws -> EAC3.Configuration {
      let made = read(change).flatMap { EAC3.Configuration([$0]) }
      return try #require(made)
    }
    let usual = try made { _ in }
    let shorter = try made { $0.bytes = 800 }
    #expect(usual.hasFormat(of: shorter) && usual != shorter)
    #expect(try !usual.hasFormat(of: made { $0.mode = 2 }) && !usual.hasFormat(of: made { $0.rate = 1 }))
  }
}
