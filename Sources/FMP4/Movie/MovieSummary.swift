/// Totals of a movie's tables, for movies of any program.
package struct MovieSummary: Sendable, Hashable {
  /// Number of samples of all tracks.
  package let samples: Int
  package let seconds: Double

  /// Reads a `moov`.
  package init(_ movie: BoxView) throws(BoxError) {
    samples = try Self.samples(movie)
    seconds = movie.first("mvhd").flatMap { try? MovieReader.duration($0) }?.seconds ?? 0
  }

  /// Number of samples in the tables of a `moov`.
  package static func samples(_ movie: BoxView) throws(BoxError) -> Int {
    var samples = 0
    for track in movie.boxes() where track.type == "trak" {
      samples += try SampleTableReader.sampleCount(try track.child("mdia", "minf", "stbl"))
    }
    return samples
  }
}
