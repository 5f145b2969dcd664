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

  /// Samples that the tables of a `moov` tell of.
  static func samples(_ movie: BoxView) throws(BoxError) -> Int {
    var samples = 0
    for track in movie.boxes() where track.type == "trak" {
      samples += try SampleTableReader.sampleCount(try track.child("mdia", "minf", "stbl"))
    }
    return samples
  }
}
