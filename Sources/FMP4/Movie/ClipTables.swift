package import NIOCore

/// Collects the fragments of a section of a recording and makes a movie header for it. The movie has the first
/// track of each kind; the media stays where it is in the file. It begins with a key frame. An edit list hides what
/// comes before the first frame to show.
package struct ClipTables: Sendable {
  /// Requested media time.
  private let wanted: Range<MediaTime>
  private var tracks: [TrackDescription]
  private let audio: TrackID?
  private var entries: [Entry] = []
  /// Runs of the other tracks in the newest fragment. Audio from the time of the key frame may be in the fragment
  /// before it.
  private var followers: [Entry] = []
  /// End of the collected fragments.
  private var end: MediaTime?

  private enum Entry {
    case run(TrackRun, offset: UInt64)
    case tracks([TrackDescription])
  }

  /// Audio may come in a fragment this much later than the video's.
  private static let lag = MediaTime(milliseconds: 500)

  /// Times in requests have milliseconds: a frame that begins within the requested millisecond counts.
  private static let precision = MediaTime(ticks: 999, timescale: 1_000_000)

  /// `audio`: the audio track that is taken instead of the first one.
  package init(_ wanted: Range<MediaTime>, tracks: [TrackDescription], audio: TrackID? = nil) {
    let start = wanted.lowerBound.converted(to: 1_000_000_000) + Self.precision
    self.wanted = min(start, wanted.upperBound)..<wanted.upperBound
    self.audio = audio
    self.tracks = tracks.defaults(withAudio: audio)
  }

  /// Changes the tracks of the fragments that follow.
  package mutating func change(to tracks: [TrackDescription]) {
    self.tracks = tracks.defaults(withAudio: audio)
    followers = []
    if !entries.isEmpty { entries.append(.tracks(self.tracks)) }
  }

  /// Takes the next fragment. False if no later fragment is needed.
  package mutating func append(_ walked: WalkedFragment) -> Bool {
    let fragment = walked.fragment
    if fragment.isIndependent, fragment.start <= wanted.lowerBound { entries = [.tracks(tracks)] + followers }
    if entries.isEmpty { entries = [.tracks(tracks)] }
    followers = []
    for (run, offset) in zip(fragment.runs, walked.mediaOffsets) where tracks.contains(where: { $0.id == run.track }) {
      entries.append(.run(run, offset: offset))
      if run.track != fragment.leader { followers.append(.run(run, offset: offset)) }
    }
    return fragment.start < wanted.upperBound + Self.lag
  }

  /// A clip: a new movie header, and a byte range of the file.
  package struct Clip: Sendable {
    /// `ftyp`, `moov` and the header of one `mdat`. The bytes of `media` follow it.
    package var movieHeader: ByteBuffer
    /// Byte range of the file.
    package var media: Range<UInt64>
    /// Media time that the clip shows, as it was requested.
    package var shown: Range<MediaTime>
    /// The length of the movie: shorter where the media ends before.
    package var duration: MediaTime
  }

  /// Makes the clip. Nil if nothing of the requested time is there.
  package func make(metadata: MovieMetadata) -> Clip? {
    let runs = entries.compactMap { entry -> (run: TrackRun, offset: UInt64)? in
      if case .run(let run, let offset) = entry { (run, offset) } else { nil }
    }
    guard let leader = tracks.leader,
      let start = startOfFirstShown(runs.map(\.run).filter { $0.track == leader.id }),
      let first = runs.map(\.offset).min()
    else { return nil }
    var left = kept(runs.map(\.run))
    var tables: MovieTables?
    var end = first
    for entry in entries {
      switch entry {
      case .tracks(let tracks):
        if tables == nil { tables = MovieTables(tracks: tracks) } else { tables?.change(to: tracks) }
      case .run(let run, let offset):
        let count = min(run.samples.count, left[run.track] ?? 0)
        left[run.track] = (left[run.track] ?? 0) - count
        guard count > 0 else { continue }
        let run = run.prefix(count)
        tables?.append(run, at: offset - first)
        end = max(end, offset + UInt64(run.byteCount))
      }
    }
    let shown = start..<max(start, wanted.upperBound)
    guard let tables, end > first, let builder = MovieBuilder(tables, metadata: metadata, showing: shown) else {
      return nil
    }
    return Clip(
      movieHeader: builder.movieHeader(contentLength: end - first, blockSize: 1), media: first..<end, shown: shown,
      duration: builder.duration)
  }

  /// Start of the first sample to play. Nil if all samples end before the requested time or begin after it.
  private func startOfFirstShown(_ runs: [TrackRun]) -> MediaTime? {
    var latest: MediaTime?
    var earliest: MediaTime?
    for run in runs {
      for (time, end) in run.presentation {
        let start = MediaTime(ticks: time, timescale: run.timescale)
        guard MediaTime(ticks: end, timescale: run.timescale) > wanted.lowerBound, start < wanted.upperBound else {
          continue
        }
        if start <= wanted.lowerBound { latest = max(latest ?? start, start) }
        earliest = min(earliest ?? start, start)
      }
    }
    return latest ?? earliest
  }

  /// Number of samples per track that are needed: up to the last one in decode order that is shown.
  private func kept(_ runs: [TrackRun]) -> [TrackID: Int] {
    var counts: [TrackID: Int] = [:]
    var kept: [TrackID: Int] = [:]
    for run in runs {
      for (time, _) in run.presentation {
        counts[run.track, default: 0] += 1
        if MediaTime(ticks: time, timescale: run.timescale) < wanted.upperBound {
          kept[run.track] = counts[run.track]
        }
      }
    }
    return kept
  }
}

extension TrackRun {
  /// Start and end of presentation of each sample, in ticks and in decode order.
  fileprivate var presentation: [(start: Int64, end: Int64)] {
    var decodeTime = baseDecodeTime
    return samples.map { sample in
      let start = decodeTime &+ Int64(sample.compositionOffset)
      decodeTime &+= Int64(sample.duration)
      return (start, start &+ Int64(sample.duration))
    }
  }

  /// The first `count` samples.
  fileprivate func prefix(_ count: Int) -> TrackRun {
    guard count < samples.count else { return self }
    var run = self
    run.samples = Array(samples.prefix(count))
    run.byteCount = run.samples.reduce(0) { $0 + Int($1.size) }
    run.duration = run.samples.reduce(0) { $0 &+ Int64($1.duration) }
    return run
  }
}
