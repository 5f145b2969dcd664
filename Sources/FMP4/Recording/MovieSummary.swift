/// What the tables of a movie say in all, whoever wrote it.
package struct MovieSummary: Sendable, Hashable {
  /// Of all tracks.
  package let samples: Int
  package let seconds: Double

  /// From a `moov`.
  package init(_ movie: BoxView) throws(BoxError) {
    samples = try Self.samples(movie)
    seconds = movie.first("mvhd").flatMap { try? MovieReader.duration($0) }?.seconds ?? 0
  }

  /// Samples that the tables of a `moov` tell of (`stsz` or `stz2`, ISO/IEC 14496-12 §8.7.3).
  static func samples(_ movie: BoxView) throws(BoxError) -> Int {
    var samples = 0
    for track in movie.boxes() where track.type == "trak" {
      let table = try track.child("mdia", "minf", "stbl")
      let sizes = if let box = table.first("stsz") { box } else { try table.child("stz2") }
      var fields = BoxFields(sizes)
      _ = try fields.versionAndFlags()
      _ = try fields.u32()  // sample_size, or reserved and field_size
      samples += Int(try fields.u32())
    }
    return samples
  }
}
