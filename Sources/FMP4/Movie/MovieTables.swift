/// What a finished movie's `moov` will say of a recording that is still growing: tracks, their sample descriptions
/// and tables.
package struct MovieTables: Sendable {
  /// One track: every parameter change adds a sample description.
  struct Track: Sendable {
    /// Never empty; the first decides what a track can only say once: timescale, language, rotation, size.
    var descriptions: [TrackDescription]
    var table: SampleTable
    /// Which description the samples to come have; 1 is the first.
    var current: UInt32 = 1
  }

  private(set) var tracks: [Track]

  package init(tracks: [TrackDescription]) {
    self.tracks = tracks.map { Track(descriptions: [$0], table: SampleTable(timescale: $0.timescale)) }
  }

  /// Whether a recording can go on in the same file with these tracks.
  package func canContinue(with descriptions: [TrackDescription]) -> Bool {
    Self.canHold(tracks.compactMap(\.descriptions.first), and: descriptions)
  }

  /// Whether one file can hold what has the first of these tracks, and then the others. A file's tracks are fixed when it
  /// begins, and players follow a change of size or rate within a codec, but not one of codec or rotation.
  package static func canHold(_ first: [TrackDescription], and next: [TrackDescription]) -> Bool {
    first.count == next.count
      && next.allSatisfy { new in
        first.contains {
          $0.id == new.id && $0.codec.id == new.codec.id && $0.rotation == new.rotation
        }
      }
  }

  /// The samples to come have these descriptions; those of unknown tracks are passed over.
  package mutating func change(to descriptions: [TrackDescription]) {
    for new in descriptions {
      guard let index = tracks.firstIndex(where: { $0.descriptions.first?.id == new.id }) else { continue }
      // Only what a sample entry says makes another description.
      if let known = tracks[index].descriptions.firstIndex(where: {
        $0.codec == new.codec && $0.statedColor == new.statedColor
      }) {
        tracks[index].current = UInt32(known + 1)
      } else {
        tracks[index].descriptions.append(new)
        tracks[index].current = UInt32(tracks[index].descriptions.count)
      }
    }
  }

  /// A fragment's runs, whose media lies one after another from `mediaOffset` of the file on.
  package mutating func append(_ runs: [TrackRun], mediaOffset: UInt64) {
    var offset = mediaOffset
    for run in runs {
      append(run, at: offset)
      offset &+= UInt64(run.byteCount)
    }
  }

  mutating func append(_ run: TrackRun, at offset: UInt64) {
    guard let index = tracks.firstIndex(where: { $0.descriptions.first?.id == run.track }) else { return }
    tracks[index].table.append(run, at: offset, description: tracks[index].current)
  }

  /// RFC 6381, one a track.
  package var codecs: [String] { tracks.compactMap { $0.descriptions.first?.codec.codecString } }

  /// The head of a movie with these tables has no more bytes than this, but for its metadata and for rounding.
  package var headSize: Int {
    tracks.reduce(0) { sum, track in
      sum + 1024 + track.table.byteCount + track.descriptions.reduce(0) { $0 + $1.sampleEntryCapacity }
    }
  }

  /// Samples of all tracks.
  package var sampleCount: Int { tracks.reduce(0) { $0 + $1.table.sampleCount } }

  /// How long the longest track is shown, in seconds; for display.
  package var seconds: Double {
    tracks.filter { $0.table.sampleCount > 0 }.map {
      Double($0.table.presentationEnd &- $0.table.presentationStart) / Double($0.table.timescale)
    }.max() ?? 0
  }
}
