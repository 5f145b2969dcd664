package import NIOCore

/// What the tables of a movie say in all, whoever wrote it.
package enum MovieSummary {
  /// From a whole `moov` with its header: samples of all tracks (`stsz` or `stz2`, ISO/IEC 14496-12 §8.7.3), and the
  /// movie's length in seconds. Nil when it is none.
  package static func read(_ box: ByteBuffer) -> (samples: Int, seconds: Double)? {
    guard let movie = box.firstBox("moov"), let samples = samples(movie) else { return nil }
    return (samples, movie.firstBox("mvhd").flatMap(MovieReader.duration)?.seconds ?? 0)
  }

  /// Samples that the tables of a `moov`, given without its header, tell of. Nil when it is none.
  static func samples(_ movie: ByteBuffer) -> Int? {
    var samples = 0
    for track in BoxReader(movie) where track.type == "trak" {
      guard let table = track.payload.firstBox("mdia")?.firstBox("minf")?.firstBox("stbl"),
        var sizes = table.firstBox("stsz") ?? table.firstBox("stz2"), sizes.skip(8),
        let count = sizes.readInteger(as: UInt32.self)
      else { return nil }
      samples += Int(count)
    }
    return samples
  }
}
