@testable import FMP4
import NIOCore
import Support
import Testing

@Suite("The boxes of a sample table")
struct SampleTableBoxesTests {
  private func hex(_ box: Box?) -> String {
    (box?.payload ?? []).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }

  private func run(_ samples: [RunSample], at start: Int64) -> TrackRun {
    TrackRun(
      track: .video, timescale: 30_000, baseDecodeTime: start, samples: samples,
      byteCount: samples.reduce(0) { $0 + Int($1.size) }, duration: samples.reduce(0) { $0 + Int64($1.duration) })
  }

  /// Three frames in a chunk at byte 50 and two in one at 900, with B-frames and one that is disposable.
  private func table(firstOffset: Int32 = 2000, isDisposable: Bool = true) -> SampleTable {
    var table = SampleTable(timescale: 30_000)
    let key = RunSample(size: 0x100, duration: 1000, compositionOffset: firstOffset, isSync: true)
    let other = RunSample(size: 0x10, duration: 1000, compositionOffset: 2000, isSync: false)
    let last = RunSample(
      size: 0x11, duration: 1500, compositionOffset: 0, isSync: false, isDisposable: isDisposable)
    table.append(run([key, other, other], at: 0), at: 50, description: 1)
    table.append(run([key, last], at: 3000), at: 900, description: 1)
    return table
  }

  private func written(_ table: SampleTable, audio: Bool = false, shift: UInt64 = 0) throws -> Box {
    let description = try audio ? SyntheticMedia.audio() : SyntheticMedia.video()
    let buffer = ByteBuffer.boxes(capacity: 1 << 16) {
      $0.sampleTable(table, descriptions: [description], shift: shift)
    }
    return try #require(Box.parse(Array(buffer.readableBytesView))?.first)
  }

  // MARK: Written

  @Test func `Each table has the bytes that the standard says`() throws {
    let box = try written(table(), shift: 0x1000)
    #expect(box.children.map(\.type) == ["stsd", "stts", "ctts", "stss", "sdtp", "stsc", "stsz", "stco"])
    #expect(hex(box.first("stts")) == "00000000 00000002 00000004 000003e8 00000001 000005dc".filter { $0 != " " })
    #expect(
      hex(box.first("ctts")) == "00000000 00000002 00000004 000007d0 00000001 00000000".filter { $0 != " " })
    #expect(hex(box.first("stss")) == "00000000 00000002 00000001 00000004".filter { $0 != " " })
    #expect(hex(box.first("sdtp")) == "00000000 2010102018".filter { $0 != " " })
    #expect(
      hex(box.first("stsc"))
        == "00000000 00000002 00000001 00000003 00000001 00000002 00000002 00000001".filter { $0 != " " })
    #expect(
      hex(box.first("stsz"))
        == "00000000 00000000 00000005 00000100 00000010 00000010 00000100 00000011".filter { $0 != " " })
    #expect(hex(box.first("stco")) == "00000000 00000002 00001032 00001384".filter { $0 != " " })
  }

  @Test func `Boxes that say nothing are left out, and one size of all is said once`() throws {
    var table = SampleTable(timescale: 30_000)
    let sample = RunSample(size: 7, duration: 1000, compositionOffset: 0, isSync: true)
    table.append(run([sample, sample, sample], at: 0), at: 0, description: 1)
    let box = try written(table)
    #expect(box.children.map(\.type) == ["stsd", "stts", "stsc", "stsz", "stco"])
    #expect(hex(box.first("stsz")) == "000000000000000700000003")
  }

  @Test func `A negative offset takes version 1`() throws {
    #expect(try written(table()).first("ctts")?.number(0) == 0)
    let signed = try #require(try written(table(firstOffset: -1)).first("ctts"))
    #expect(signed.number(0) == 1 << 24)
    #expect(signed.number(12) == 0xFFFF_FFFF)
  }

  @Test func `Offsets of more than 32 bits take the larger box`() throws {
    let limit = UInt64(UInt32.max) - 900
    #expect(try written(table(), shift: limit).first("co64") == nil)
    let large = try #require(try written(table(), shift: limit + 1).first("co64"))
    #expect(large.number(4) == 2 && large.number(16, 8) == 1 << 32)
  }

  /// ISO/IEC 14496-12 §10.1: one frame of AAC before the wanted one is to be decoded.
  @Test func `Audio says how much is to be decoded before`() throws {
    let box = try written(table(isDisposable: false), audio: true)
    #expect(hex(box.first("sgpd")) == "01000000 726f6c6c 00000002 00000001 ffff".filter { $0 != " " })
    #expect(hex(box.first("sbgp")) == "00000000 726f6c6c 00000001 00000005 00000001".filter { $0 != " " })
  }

  // MARK: Read

  private func view(_ stbl: [UInt8]) throws -> BoxView {
    try #require(BoxReader(ByteBuffer(bytes: stbl)).first { _ in true })
  }

  private func bytes(_ table: SampleTable, shift: UInt64 = 0) throws -> [UInt8] {
    let description = try SyntheticMedia.video()
    let buffer = ByteBuffer.boxes(capacity: 1 << 16) {
      $0.sampleTable(table, descriptions: [description], shift: shift)
    }
    return Array(buffer.readableBytesView)
  }

  @Test(arguments: [0, UInt64(UInt32.max)]) func `What is written is read back`(shift: UInt64) throws {
    let reader = try SampleTableReader(view(bytes(table(), shift: shift)))
    #expect(reader.sampleCount == 5 && reader.commonSize == 0)
    #expect(reader.durations.map(\.count) == [4, 1] && reader.durations.map(\.duration) == [1000, 1500])
    #expect(reader.syncSamples.map { Array($0) } == [1, 4])
    #expect(reader.chunkRuns.map(\.firstChunk) == [1, 2] && reader.chunkRuns.map(\.samplesPerChunk) == [3, 2])
    #expect(Array(reader.sizes) == [0x100, 0x10, 0x10, 0x100, 0x11])
    #expect(Array(reader.chunkOffsets) == [50 + shift, 900 + shift])
    #expect(try SampleTableReader.sampleCount(view(bytes(table()))) == 5)
  }

  @Test func `A common size has no list, and no list of sync samples means all`() throws {
    let stbl = BoxBytes.box(
      "stbl",
      BoxBytes.fullBox("stts", BoxBytes.u32(0)) + BoxBytes.fullBox("stsc", BoxBytes.u32(0))
        + BoxBytes.fullBox("stsz", BoxBytes.u32(9) + BoxBytes.u32(.max)) + BoxBytes.fullBox("stco", BoxBytes.u32(0)))
    let reader = try SampleTableReader(view(stbl))
    #expect(reader.commonSize == 9 && reader.sampleCount == Int(UInt32.max) && reader.sizes.isEmpty)
    #expect(reader.syncSamples == nil && reader.durations.isEmpty && reader.chunkOffsets.isEmpty)
  }

  @Test(arguments: ["stts", "stss", "stsc", "stsz", "stco"])
  func `A table that states more entries than it has is refused`(_ type: String) throws {
    let whole = try bytes(table())
    let box = try #require(Box.parse(whole)?.first?.first(type))
    // The number of entries follows version and flags; of sizes there is one field before it.
    let place = box.offset + 8 + (type == "stsz" ? 11 : 7)
    for count: UInt8 in [whole[place] + 1, 255] {
      var changed = whole
      changed[place] = count
      #expect(throws: BoxError(.truncated, ["stbl", FourCC(rawValue: code(type))], at: UInt64(box.offset))) {
        _ = try SampleTableReader(view(changed))
      }
    }
    var fewer = whole
    fewer[place] -= 1
    #expect(throws: Never.self) { _ = try SampleTableReader(view(fewer)) }
  }

  private func code(_ type: String) -> UInt32 { type.utf8.reduce(0) { $0 << 8 | UInt32($1) } }

  @Test func `A table without one of its boxes says which`() throws {
    let whole = try #require(Box.parse(try bytes(table()))?.first)
    for missing in ["stts", "stsc", "stsz", "stco"] {
      let rest = whole.children.filter { $0.type != missing }.flatMap { BoxBytes.box($0.type, $0.payload) }
      #expect(throws: BoxError(.missing(FourCC(rawValue: code(missing))), ["stbl"], at: 0)) {
        _ = try SampleTableReader(view(BoxBytes.box("stbl", rest)))
      }
    }
  }

  @Test func `Changed bytes throw or are read, and never trap`() throws {
    let whole = try bytes(table())
    for place in 8..<whole.count {
      for value: UInt8 in [0, 1, 0x7F, 0x80, 0xFF] {
        var changed = whole
        changed[place] = value
        guard let reader = try? SampleTableReader(view(changed)) else { continue }
        _ = (Array(reader.durations), Array(reader.chunkRuns), Array(reader.sizes), Array(reader.chunkOffsets))
      }
    }
  }
}
