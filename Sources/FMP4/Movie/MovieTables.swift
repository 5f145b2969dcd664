/// Tables for the `moov` of a recording that still grows: tracks, sample descriptions and sample tables.
public struct MovieTables: Sendable {
  /// One track. Each parameter change adds a sample description.
  struct Track: Sendable {
    /// Never empty. The first one sets what a track has only once: timescale, language, rotation, size.
    var descriptions: [TrackDescription]
    var table: SampleTable
    /// Index of the description for the samples to come. The first is 1.
    var current: UInt32 = 1
  }

  private(set) var tracks: [Track]

  /// Empty tables of these tracks.
  public init(tracks: [TrackDescription]) {
    self.tracks = tracks.map { Track(descriptions: [$0], table: SampleTable(timescale: $0.timescale)) }
  }

  /// Whether the recording can continue in the same file with these tracks.
  public func canContinue(with descriptions: [TrackDescription]) -> Bool {
    Self.canHold(tracks.compactMap(\.descriptions.first), and: descriptions)
  }

  /// Whether one file can hold the tracks `first` and then the tracks `next`. A file's tracks are fixed when it begins.
  /// Players follow a change of size or frame rate within a codec, but not a change of codec or rotation.
  package static func canHold(_ first: [TrackDescription], and next: [TrackDescription]) -> Bool {
    first.count == next.count
      && next.allSatisfy { new in
        first.contains {
          $0.id == new.id && $0.codec.id == new.codec.id && $0.rotation == new.rotation
        }
      }
  }

  /// Changes the descriptions for the samples to come. Ignores unknown tracks.
  public mutating func change(to descriptions: [TrackDescription]) {
    for new in descriptions {
      guard let index = tracks.firstIndex(where: { $0.descriptions.first?.id == new.id }) else { continue }
      // Only values that are part of a sample entry need another description.
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

  /// Appends a fragment's runs, whose media is contiguous in the file from `mediaOffset` on.
  public mutating func append(_ runs: [TrackRun], mediaOffset: UInt64) {
    var offset = mediaOffset
    for run in runs {
      append(run, at: offset)
      offset &+= UInt64(run.byteCount)
    }
  }

  package mutating func append(_ run: TrackRun, at offset: UInt64) {
    guard let index = tracks.firstIndex(where: { $0.descriptions.first?.id == run.track }) else { return }
    tracks[index].table.append(run, at: offset, description: tracks[index].current)
  }

  /// Longest pause of a track: its sample before it lasts until the one behind it, and a duration has 32 bits, of which readers
  /// take 31 (ISO/IEC 14496-12 §8.6.1.2). That is 12 hours at 48 kHz. A minute is left for what comes before the next file.
  private static func longestPause(_ timescale: UInt32) -> Int64 { Int64(Int32.max) &- 60 &* Int64(timescale) }

  /// Whether a track has paused for so long at that time that another file has to begin.
  package func areFull(at time: MediaTime) -> Bool {
    tracks.contains { $0.table.pause(until: time) > Self.longestPause($0.table.timescale) }
  }

  /// RFC 6381 codec strings, one per track.
  package var codecs: [String] { tracks.compactMap { $0.descriptions.first?.codec.codecString } }

  /// Upper bound for the bytes of a movie head with these tables, without its metadata and rounding.
  package var headSize: Int {
    tracks.reduce(0) { sum, track in
      sum + 1024 + track.table.byteCount + track.descriptions.reduce(0) { $0 + $1.sampleEntryCapacity }
    }
  }

  /// Number of samples of all tracks.
  public var sampleCount: Int { tracks.reduce(0) { $0 + $1.table.sampleCount } }

  /// Presentation duration of the longest track, in seconds. For display.
  package var seconds: Double {
    tracks.filter { $0.table.sampleCount > 0 }.map {
      Double($0.table.presentationEnd &- $0.table.presentationStart) / Double($0.table.timescale)
    }.max() ?? 0
  }
}
