internal import NIOCore

// Writes and reads the boxes of a `stbl` (ISO/IEC 14496-12 §8.5.1).

extension OutputRawSpan {
  /// `shift` is the number of bytes in the file before the origin of the table's offsets.
  mutating func sampleTable(_ table: SampleTable, descriptions: [TrackDescription], shift: UInt64) {
    box("stbl") { out in
      out.table("stsd", descriptions) { $1.writeSampleEntry(&$0) }
      // §8.6.1.2.
      out.table("stts", table.durations) {
        $0.u32($1.count)
        $0.u32($1.duration)
      }
      // §8.6.1.3. Left out if all composition offsets are 0. Version 1 has signed offsets.
      if table.offsets.contains(where: { $0.offset != 0 }) {
        out.table("ctts", version: table.offsets.contains { $0.offset < 0 } ? 1 : 0, table.offsets) {
          $0.u32($1.count)
          $0.i32($1.offset)
        }
      }
      if let numbers = table.syncSamples {
        out.table("stss", numbers) { $0.u32($1) }  // §8.6.2
      }
      if let dependencies = table.dependencies {
        out.fullBox("sdtp") { $0.bytes(dependencies) }  // §8.6.4
      }
      // §8.7.4.
      out.table("stsc", table.chunkRuns) {
        $0.u32($1.firstChunk)
        $0.u32($1.samplesPerChunk)
        $0.u32($1.description)
      }
      out.sizes(table.sizes)
      // §8.7.5.
      if table.chunks.contains(where: { $0.offset &+ shift > UInt64(UInt32.max) }) {
        out.table("co64", table.chunks) { $0.u64($1.offset &+ shift) }
      } else {
        out.table("stco", table.chunks) { $0.u32(UInt32(truncatingIfNeeded: $1.offset &+ shift)) }
      }
      if table.sampleCount > 0, let distance = descriptions.first.flatMap({ $0.codec.id.type.rollDistance }) {
        out.rollGroup(distance: distance, sampleCount: table.sampleCount)
      }
    }
  }

  /// `stsz`, §8.7.3.2.
  private mutating func sizes(_ sizes: [UInt32]) {
    fullBox("stsz") {
      let common = sizes.first.flatMap { first in sizes.allSatisfy { $0 == first } ? first : nil } ?? 0
      $0.u32(common)  // sample_size; 0 if each has its own
      $0.u32(UInt32(truncatingIfNeeded: sizes.count))
      if common == 0 { for size in sizes { $0.u32(size) } }
    }
  }

  /// `sgpd` and `sbgp` of type `roll` (§8.9.2, §8.9.3, §10.1): the number of samples to decode before the wanted one.
  private mutating func rollGroup(distance: Int16, sampleCount: Int) {
    fullBox("sgpd", version: 1) {
      $0.fourCC("roll")
      $0.u32(2)  // default_length
      $0.u32(1)  // entry_count
      $0.i16(distance)
    }
    fullBox("sbgp") {
      $0.fourCC("roll")
      $0.u32(1)  // entry_count
      $0.u32(UInt32(truncatingIfNeeded: sampleCount))
      $0.u32(1)  // group_description_index
    }
  }
}

/// Reads a `stbl`. The tables are views of its bytes.
struct SampleTableReader {
  let durations: Entries<(count: UInt64, duration: UInt64)>
  /// Nil if all samples are sync samples.
  let syncSamples: Entries<Int>?
  let chunkRuns: Entries<(firstChunk: Int, samplesPerChunk: Int, description: Int)>
  let sampleCount: Int
  /// Size of every sample. 0 if each has its own size.
  let commonSize: UInt32
  let sizes: Entries<UInt32>
  let chunkOffsets: Entries<UInt64>

  init(_ stbl: BoxView) throws(BoxError) {
    durations = try Entries(try stbl.child("stts"), of: 2) { (UInt64($0(0)), UInt64($0(1))) }
    syncSamples = try stbl.first("stss").map { box throws(BoxError) in try Entries(box, of: 1) { Int($0(0)) } }
    chunkRuns = try Entries(try stbl.child("stsc"), of: 3) { (Int($0(0)), Int($0(1)), Int($0(2))) }
    let sizeBox = try stbl.child("stsz")
    var fields = BoxFields(sizeBox)
    (commonSize, sampleCount) = try Self.sizes(&fields)
    sizes = try Entries(sizeBox, fields.rest, count: commonSize > 0 ? 0 : sampleCount, of: 1) { $0(0) }
    if let large = stbl.first("co64") {
      chunkOffsets = try Entries(large, of: 2) { UInt64($0(0)) << 32 | UInt64($0(1)) }
    } else {
      chunkOffsets = try Entries(try stbl.child("stco"), of: 1) { UInt64($0(0)) }
    }
  }

  /// The sample entries of a `stsd` (§8.5.2). They follow version, flags and entry count.
  static func entries(_ stsd: BoxView) -> BoxReader { stsd.boxes(behind: 8) }

  /// Number of samples of a `stbl` (`stsz` or `stz2`, §8.7.3).
  static func sampleCount(_ stbl: BoxView) throws(BoxError) -> Int {
    let box = if let box = stbl.first("stsz") { box } else { try stbl.child("stz2") }
    var fields = BoxFields(box)
    return try sizes(&fields).count
  }

  /// First fields of a `stsz` or `stz2`: sample_size, or the field in its place, and sample_count.
  private static func sizes(_ fields: inout BoxFields) throws(BoxError) -> (common: UInt32, count: Int) {
    _ = try fields.versionAndFlags()
    return (try fields.u32(), Int(try fields.u32()))
  }

  /// Table entries of a fixed number of 32-bit fields, read in place.
  struct Entries<Entry>: RandomAccessCollection {
    let startIndex = 0
    let endIndex: Int
    private let fields: Int
    private let buffer: ByteBuffer
    private let entry: ((_ field: Int) -> UInt32) -> Entry

    /// For a full box that holds an entry count and the entries. Throws if the box is shorter than the count demands.
    init(_ box: BoxView, of fields: Int, _ entry: @escaping ((Int) -> UInt32) -> Entry) throws(BoxError) {
      var values = BoxFields(box)
      _ = try values.versionAndFlags()
      let count = Int(try values.u32())
      try self.init(box, values.rest, count: count, of: fields, entry)
    }

    init(
      _ box: BoxView, _ buffer: ByteBuffer, count: Int, of fields: Int, _ entry: @escaping ((Int) -> UInt32) -> Entry
    ) throws(BoxError) {
      guard buffer.readableBytes / (4 * fields) >= count else { throw box.error(.truncated) }
      (endIndex, self.fields, self.buffer, self.entry) = (count, fields, buffer, entry)
    }

    subscript(index: Int) -> Entry {
      entry { buffer.getInteger(at: buffer.readerIndex + (index * fields + $0) * 4, as: UInt32.self) ?? 0 }
    }
  }
}
