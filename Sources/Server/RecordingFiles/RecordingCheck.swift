internal import Base
internal import FMP4
internal import NIOCore
package import RecordingFormat

/// Checks which part of a recording is whole. Reads the header of every fragment and compares its checksum.
package struct RecordingCheck {
  package enum Depth: Sendable {
    /// Only headers are read.
    case heads
    case media
  }

  package enum Kind: String {
    /// A movie with weir's fragments inside.
    case finished
    /// Fragments without tables.
    case fragmented
    /// An ordinary movie of another program.
    case ordinary
  }

  package let path: String
  package private(set) var kind: Kind
  package private(set) var fragments = 0
  package private(set) var samples = 0
  /// Number of samples in the finished movie's tables.
  private(set) var tableSamples: Int?
  package private(set) var seconds: Double = 0
  package private(set) var wholeBytes: UInt64 = 0
  package private(set) var tornBytes: UInt64 = 0
  package private(set) var holes = 0
  /// Result of comparing fragments with their checksums; nil if none was compared.
  package private(set) var comparison: RecordingScanner.ComparedCounts?
  /// Position of the fragments in the file.
  private var contentStart: UInt64 = 0

  package init(path: String, depth: Depth, progress: (UInt64, UInt64) -> Void) throws {
    self.path = path
    let file = try LockedFile(path, .read)
    guard let outline = try file.reader.outline(size: file.size) else {
      guard let movie = try Self.tables(file) else { throw try FragmentedFile.objection(to: file) }
      (kind, tableSamples, samples, seconds) = (.ordinary, movie.samples, movie.samples, movie.seconds)
      wholeBytes = file.size
      return
    }
    kind = outline.form == .finished ? .finished : .fragmented
    if kind == .finished { tableSamples = try Self.tables(file)?.samples }
    let length = outline.content.upperBound - outline.content.lowerBound
    var ends: [TrackID: Int64] = [:]
    var first: MediaTime?
    var last = MediaTime.zero
    var wholeEnd: UInt64 = 0
    var (fragments, samples, holes) = (0, 0, 0)
    let reader = file.reader(from: outline.content.lowerBound)
    try reader.walk(0..<length) { step in
      guard case .fragment(let walked) = step else { return true }
      fragments += 1
      for run in walked.fragment.runs {
        samples += run.samples.count
        if let expected = ends[run.track], run.baseDecodeTime > expected { holes += 1 }
        ends[run.track] = run.endDecodeTime
      }
      if first == nil { first = walked.fragment.start }
      last = max(last, walked.fragment.end)
      wholeEnd = walked.end
      progress(walked.end, length)
      return true
    }
    guard fragments > 0 else {
      guard let movie = try Self.tables(file), movie.samples > 0 else { throw try FragmentedFile.objection(to: file) }
      (kind, tableSamples, self.samples, seconds) = (.ordinary, movie.samples, movie.samples, movie.seconds)
      wholeBytes = file.size
      return
    }
    (self.fragments, self.samples, self.holes) = (fragments, samples, holes)
    seconds = (last - (first ?? .zero)).seconds
    (wholeBytes, tornBytes) = (wholeEnd, length - (try FileOutline.endOfTrailers(in: wholeEnd..<length, reader.read)))
    guard case .media = depth else { return }
    contentStart = outline.content.lowerBound
    comparison = try RecordingScan(
      file.descriptor, path: path, from: contentStart, size: length, seals: .heeded(.all)
    ) { progress($0, length) }.compared
  }

  /// The tables of a movie at the front or the end of the file; nil if there are none.
  private static func tables(_ file: LockedFile) throws -> MovieSummary? {
    if case .mixed = try FragmentedFile.scan(file).content { throw try FragmentedFile.objection(to: file) }
    let movie = try FileOutline.movie(size: file.size, atMost: maximumMovieBytes, file.reader.read)
    return movie.flatMap { try? MovieSummary($0) }
  }

  private static let maximumMovieBytes: UInt64 = 1 << 30

  private var damagedFragments: Int { comparison?.different ?? 0 }

  package var isGood: Bool {
    tornBytes == 0 && damagedFragments == 0 && (tableSamples.map { $0 == samples } ?? true)
  }

  package var text: String {
    let length = "\(Decimals.fixed(seconds: seconds, digits: 3)) s"
    let name = LogText.escaped(path)
    switch kind {
    case .ordinary:
      return "\(name): an ordinary movie of another program, \(samples) samples, \(length); its tables fit"
    case .finished where !isGood && tornBytes == 0 && damagedFragments == 0:
      return "\(name): damaged: its tables list \(tableSamples ?? 0) samples, its fragments \(samples)"
    case .finished, .fragmented:
      var words = [
        kind == .finished ? "a finished recording" : "fragmented, not finished", "\(fragments) fragments",
        "\(samples) samples", length,
      ]
      if holes > 0 { words.append("\(holes) holes in its timeline") }
      switch (comparison?.compared, damagedFragments) {
      case (nil, _): words.append("checksums not compared")
      case (0?, _): words.append("no checksums")
      case (_?, 0): words.append("all checksums right")
      case (let count?, let damaged):
        let place = contentStart + (comparison?.firstDifferent ?? 0)
        words.append("damaged: \(damaged) of \(count) checksums are wrong, the first of the fragment at byte \(place)")
      }
      if tornBytes > 0 { words.append("damaged: the last \(tornBytes) bytes are not whole") }
      return "\(name): \(words.joined(separator: ", "))"
    }
  }
}
