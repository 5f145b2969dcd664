package import FMP4
package import NIOCore
internal import RecordingFiles
internal import RecordingFormat
package import Storage

/// A range of a recording as a movie: a new moov, and the media in place.
package struct RecordingClip: Sendable {
  package var movieHeader: ByteBuffer
  package var media: FileRange
  /// Its length, as the movie states it.
  package var seconds: Double
}

extension ReplaySource {
  /// Start or end of a clip.
  package enum Moment: Sendable, Hashable {
    /// Since the recording's beginning.
    case media(MediaTime)
    case wall(WallTime)
  }

  package enum ClipFailure: Error, Equatable {
    /// The recording has nothing of that range. `length` is its length in seconds.
    case outside(length: Double)
    /// The range ends before it begins.
    case empty
    /// The range is longer than the limit.
    case tooLong
    /// The recording has no such audio track.
    case noAudio
    /// Neither the recording nor its name contains a wall-clock time.
    case noClock
  }

  /// Upper bound of the length of a clip; nil stands for the recording's start or end.
  package func length(from: Moment?, to: Moment?) -> MediaTime {
    withIndex { index in
      let start = from.map { index.time(of: $0) } ?? index.origin
      return min(to.map { index.time(of: $0) } ?? index.end, index.end) - max(start, index.origin)
    }
  }

  /// The range from one moment to another; nil stands for the recording's start or end. `audio` names the audio track; nil
  /// for the first. Waits for the disk.
  package func clip(
    from: Moment?, to: Moment?, audio: String? = nil, atMost limit: MediaTime? = nil, metadata: MovieMetadata
  ) throws -> RecordingClip {
    let index = withIndex { index in copy index }
    if !index.hasClock, [from, to].contains(where: \.isWall) { throw ClipFailure.noClock }
    let start = from.map { index.time(of: $0) } ?? index.origin
    let end = to.map { index.time(of: $0) } ?? index.end
    let failure = ClipFailure.outside(length: (index.end - index.origin).seconds)
    guard start < index.end else { throw failure }
    guard start < end else { throw ClipFailure.empty }
    if let limit, min(end, index.end) - start > limit { throw ClipFailure.tooLong }
    guard end > index.origin, let last = index.segments.last else { throw failure }
    var first = index.independent(at: index.index(at: start) ?? 0)
    // Audio for the time of the first frame may lie in the segment before it.
    if first > 0, index.segments[first - 1].version == index.segments[first].version { first -= 1 }
    guard let version = index.version(of: index.segments[first]) else { throw failure }
    let chosen = try audio.map { asked in
      guard let track = version.tracks.audio(asked) else { throw ClipFailure.noAudio }
      return track.id
    }
    var tables = ClipTables(max(start, index.origin)..<end, tracks: version.tracks, audio: chosen)
    let stretch = index.segments[first].offset..<last.offset + UInt64(last.length)
    try reader.walk(stretch, movie: version.offset) { step in
      switch step {
      case .tracks(let tracks, _): tables.change(to: tracks)
      case .fragment(let walked): return tables.append(walked)
      case .read, .finished: break
      }
      return true
    }
    guard let clip = tables.make(metadata: metadata) else { throw failure }
    return RecordingClip(
      movieHeader: clip.movieHeader,
      media: range(clip.media.lowerBound, Int(clamping: clip.media.upperBound - clip.media.lowerBound)),
      seconds: clip.duration.seconds)
  }
}

extension ReplaySource.Moment? {
  fileprivate var isWall: Bool {
    if case .wall = self { return true }
    return false
  }
}

extension RecordingIndex {
  /// How much media there has to come until a moment is written; not above zero once it is.
  package func missing(until moment: ReplaySource.Moment) -> MediaTime {
    guard let last = segments.last else { return .zero }
    return switch moment {
    case .media(let time): origin + time - end
    case .wall(let time): MediaTime(nanoseconds: time &- last.wallStart) - duration(of: last)
    }
  }

  /// The media time of a moment.
  fileprivate func time(of moment: ReplaySource.Moment) -> MediaTime {
    switch moment {
    case .media(let time): return origin + time
    case .wall(let time):
      guard let at = index(atWall: time) else { return origin }
      // A moment during an outage maps to the end of the media before it.
      let since = MediaTime(nanoseconds: time &- segments[at].wallStart)
      return start(of: segments[at]) + min(since, duration(of: segments[at]))
    }
  }

  /// The last segment up to `index` with which decoding can begin, otherwise the first.
  fileprivate func independent(at index: Int) -> Int {
    segments.indices.prefix(index + 1).last { segments[$0].flags.contains(.isIndependent) } ?? 0
  }
}
