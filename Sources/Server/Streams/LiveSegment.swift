internal import FMP4
internal import NIOCore
internal import Storage

/// A fragment in the window: where its bytes lie in its segment's memory, and the heads that the one-track layouts
/// put before the same media.
struct StoredFragment: Sendable {
  /// `moof` + `mdat`, head and media, as ranges of the segment's memory.
  var offset: Int
  var length: Int
  var runs: [StoredRun]
  /// The first tracks of each kind as one run, where the stream has further ones; else all of it is theirs.
  var defaults: StoredRun?
  /// Earliest presentation time of the leading track.
  var start: MediaTime
  /// From the end of the fragment before (of the first: from the segment's start) to its own, on the leading track:
  /// these lengths add up to the segment's.
  var duration: MediaTime
  /// Decoding may start with it.
  var isIndependent: Bool
  /// No further fragment is expected in its segment.
  var isExpectedLast: Bool

  /// A track's run, or where that is nil the first tracks'.
  func run(of track: TrackID?) -> StoredRun? {
    guard let track else { return defaults }
    return runs.first { $0.track == track }
  }
}

/// What a layout has of a stored fragment that is not all of it: one track's part, or that of the first tracks.
struct StoredRun: Sendable {
  /// The first of those in it.
  var track: TrackID
  /// `moof` + `mdat` header of that layout.
  var head: ByteBuffer
  /// The run's media within the segment's memory.
  var mediaOffset: Int
  var mediaLength: Int
  /// Bytes of the first sample, where media begin.
  var firstSampleLength: Int
  /// What it adds to its track in the segment; of the leading track as `StoredFragment.duration` counts.
  var duration: MediaTime

  /// Bytes of the run in that layout.
  var length: Int { head.readableBytes + mediaLength }
}

/// A segment of the window: fragments from one independent start to the next.
struct LiveSegment: Sendable {
  /// Media sequence number; the first of an epoch is 1.
  let sequenceNumber: Int
  /// Which init segment its fragments belong to.
  let initVersion: Int
  /// The timeline breaks before it.
  let followsDiscontinuity: Bool
  let isIndependent: Bool
  /// Earliest presentation time of the leading track.
  let start: MediaTime
  /// Wall-clock time of `start`, in nanoseconds since 1970.
  var wallStart: Int64
  /// Pictures behind its key frame are shown before it.
  var opensGroup = false
  /// The segment before it in memory has another init segment.
  var changesInit = false
  /// The first tracks of each kind, which the interleaved layout shows, where the stream has further ones; else it shows all.
  var defaults: [TrackID]?
  /// All of its samples can be decoded without another segment (EXT-X-INDEPENDENT-SEGMENTS, RFC 8216bis §4.4.2.1).
  var standsAlone: Bool { isIndependent && !opensGroup }
  /// Nobody published then: it has no media, and none of its renditions has.
  var isOutage = false
  var memory: SegmentMemory
  var fragments: [StoredFragment] = []
  /// One entry a track that has samples here.
  var spans: [TrackSpan] = []
  var isComplete = false
  /// Of a recorded segment, whose fragments are not listed: what an I-frame playlist takes of it.
  var recordedKeyFrameLength: Int?
  /// How long it will be if the sync samples keep their distance; nil where they have none. Known with its first
  /// fragment, and not promised.
  let expectedDuration: MediaTime?
  /// The presentation time before which its samples of the other tracks begin then.
  let expectedFollowersEnd: MediaTime?
  /// Length on the leading track.
  var duration: MediaTime

  /// What the fragments so far hold of one track, in its ticks.
  struct TrackSpan: Sendable {
    let track: TrackID
    let timescale: UInt32
    /// Earliest presentation time.
    var start: Int64
    var duration: Int64
    var mediaBytes: Int
    /// What manifests list of it since its first samples are here; nil where nothing could be foretold.
    var announced: Listing?
  }

  /// Wall-clock time of its end, in nanoseconds since 1970.
  var wallEnd: Int64 { wallStart &+ duration.nanoseconds }

  /// Wall-clock time of the track's first sample in it, in nanoseconds since 1970; without a track, or a sample of it, of its
  /// start.
  func wallStart(of track: TrackID?) -> Int64 {
    guard let span = track.flatMap(span) else { return wallStart }
    return wallStart &+ (MediaTime(ticks: span.listed.start, timescale: span.timescale) - start).nanoseconds
  }

  func span(of track: TrackID) -> TrackSpan? {
    spans.first { $0.track == track }
  }

  /// Bytes that this segment keeps in memory: its media with the interleaved heads, and the one-track heads.
  var residentBytes: Int {
    memory.byteCount
      + fragments.reduce(0) {
        $1.runs.reduce($0 + ($1.defaults?.head.readableBytes ?? 0)) { $0 + $1.head.readableBytes }
      }
  }

  /// Makes it last as long as its presentation's segment does, although its media end before.
  mutating func lengthen(to length: MediaTime) {
    guard length > duration else { return }
    duration = length.converted(to: duration.timescale)
    guard let index = spans.indices.first else { return }
    spans[index].duration = max(spans[index].duration, length.rescaled(to: spans[index].timescale))
  }

  /// No part is shorter, though its media may reach no further than the part before: a last frame of audio beside complete
  /// video. Shaka Player leaves out a part whose start and end are within 2 ms of the last one's. It gives a hinted part
  /// the length of PART-TARGET, so that the part behind one without length looks like it.
  private static let leastPart = MediaTime(milliseconds: 3)

  /// `defaultsHead` is that of the first tracks of each kind, where they have something in it and there are further ones.
  mutating func add(
    _ fragment: Fragment, at offset: Int, headLength: Int, singleHeads: [ByteBuffer], defaultsHead: ByteBuffer? = nil
  ) {
    let before = duration
    // From the first picture shown to the first of what follows.
    duration = max(before + Self.leastPart, fragment.end - start)
    let added = duration - before
    var mediaOffset = offset + headLength
    var runs: [StoredRun] = []
    for (run, head) in zip(fragment.runs, singleHeads) {
      runs.append(
        StoredRun(
          track: run.track, head: head, mediaOffset: mediaOffset, mediaLength: run.byteCount,
          firstSampleLength: Int(run.samples.first?.size ?? 0),
          duration: run.track == fragment.leader ? added : MediaTime(ticks: run.duration, timescale: run.timescale)))
      mediaOffset += run.byteCount
      if let index = spans.firstIndex(where: { $0.track == run.track }) {
        spans[index].start = min(spans[index].start, run.earliestPresentationTime)
        spans[index].duration &+= run.duration
        spans[index].mediaBytes += run.byteCount
      } else {
        let leads = run.track == fragment.leader
        let first = run.earliestPresentationTime
        // In an open group of pictures the first to be shown may come with a later fragment.
        let start = leads ? min(first, fragment.start.rescaled(to: run.timescale)) : first
        spans.append(
          TrackSpan(
            track: run.track, timescale: run.timescale, start: start, duration: run.duration,
            mediaBytes: run.byteCount, announced: announcement(of: run, from: start, leads: leads)))
      }
    }
    if fragment.run(of: fragment.leader) != nil,
      let index = spans.firstIndex(where: { $0.track == fragment.leader })
    {
      spans[index].duration = max(1, fragment.end.rescaled(to: spans[index].timescale) &- spans[index].start)
    }
    let first = defaultsHead.flatMap { head in
      runs.first.map { first in
        // Theirs come before the others'.
        let length = runs.reduce(0) { $0 + (defaults?.contains($1.track) == true ? $1.mediaLength : 0) }
        return StoredRun(
          track: first.track, head: head, mediaOffset: first.mediaOffset, mediaLength: length,
          firstSampleLength: first.firstSampleLength, duration: added)
      }
    }
    fragments.append(
      StoredFragment(
        offset: offset, length: mediaOffset - offset, runs: runs, defaults: first, start: fragment.start,
        duration: added,
        isIndependent: fragment.isIndependent, isExpectedLast: fragment.isExpectedLast))
  }
}
