extension OutputRawSpan {
  /// `stbl` of a finished movie (ISO/IEC 14496-12 §8.5.1). `shift` is what stands before the bytes that the table's
  /// offsets count from.
  mutating func sampleTable(_ table: SampleTable, descriptions: [TrackDescription], shift: UInt64) {
    box("stbl") { out in
      out.table("stsd", descriptions) { $1.writeSampleEntry(&$0) }
      // §8.6.1.2.
      out.table("stts", table.durations) {
        $0.u32($1.count)
        $0.u32($1.duration)
      }
      // §8.6.1.3; left out when every sample is shown when it is decoded. Version 1 has signed offsets.
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
      out.chunkRuns(table.chunks)
      out.sizes(table.sizes)
      // §8.7.5.
      if table.chunks.contains(where: { $0.offset &+ shift > UInt64(UInt32.max) }) {
        out.table("co64", table.chunks) { $0.u64($1.offset &+ shift) }
      } else {
        out.table("stco", table.chunks) { $0.u32(UInt32(truncatingIfNeeded: $1.offset &+ shift)) }
      }
      if let distance = descriptions.first?.codec.id.type.rollDistance {
        out.rollGroup(distance: distance, sampleCount: table.sampleCount)
      }
    }
  }

  /// `stsc`, §8.7.4: an entry for each change of the number of samples or of the description.
  private mutating func chunkRuns(_ chunks: [SampleTable.Chunk]) {
    fullBox("stsc") { out in
      let position = out.byteCount
      out.u32(0)
      var count: UInt32 = 0
      var previous: SampleTable.Chunk?
      for (index, chunk) in chunks.enumerated() {
        if let previous, previous.sampleCount == chunk.sampleCount, previous.description == chunk.description {
          continue
        }
        out.u32(UInt32(truncatingIfNeeded: index + 1))
        out.u32(chunk.sampleCount)
        out.u32(chunk.description)
        count &+= 1
        previous = chunk
      }
      out.patch(u32: count, at: position)
    }
  }

  /// `stsz`, §8.7.3.2.
  private mutating func sizes(_ sizes: [UInt32]) {
    fullBox("stsz") {
      let common = sizes.first.flatMap { first in sizes.allSatisfy { $0 == first } ? first : nil } ?? 0
      $0.u32(common)  // sample_size; 0 where each has its own
      $0.u32(UInt32(truncatingIfNeeded: sizes.count))
      if common == 0 { for size in sizes { $0.u32(size) } }
    }
  }

  /// `sgpd` and `sbgp` of type `roll` (§8.9.2, §8.9.3, §10.1): so many samples before the wanted one are to be decoded
  /// first.
  private mutating func rollGroup(distance: Int16, sampleCount: Int) {
    fullBox("sgpd", version: 1) {
      $0.fourCC("roll")
      $0.u32(2)  // default_length
      $0.u32(1)
      $0.i16(distance)
    }
    fullBox("sbgp") {
      $0.fourCC("roll")
      $0.u32(1)
      $0.u32(UInt32(truncatingIfNeeded: sampleCount))
      $0.u32(1)  // group_description_index
    }
  }
}
