package import Base
package import FMP4
internal import NIOCore
package import Storage

/// A fragment in the window: its byte range in the segment's memory, and the heads of the one-track layouts for the same
/// media.
package struct StoredFragment: Sendable {
  /// `moof` + `mdat`, head and media, as a range of the segment's memory.
  var offset: Int
  var length: Int
  var runs: [StoredRun]
  /// The first track of each kind as one run, when the stream has more tracks. Nil when the fragment has only those.
  var defaults: StoredRun?
  /// Earliest presentation time of the leading track.
  var start: MediaTime
  /// On the leading track: from the end of the previous fragment (or the segment's start) to its own end. These lengths add up
  /// to that of the segment.
  var duration: MediaTime
  /// Decoding can start with it.
  var isIndependent: Bool
  /// The segment is expected to end with it.
  var isExpectedLast: Bool
  /// In the interleaved layout it belongs to the part of the fragment before. It would be a part without length.
  var joinsPart = false

  /// The run of a track; with nil, that of the first tracks of each kind.
  func run(of track: TrackID?) -> StoredRun? {
    guard let track else { return defaults }
    return runs.first { $0.track == track }
  }
}

/// The part of a fragment in another layout: one track, or the first track of each kind.
struct StoredRun: Sendable {
  /// The first track in it.
  var track: TrackID
  /// `moof` + `mdat` header of that layout.
  var head: ByteBuffer
  /// The run's media within the segment's memory.
  var mediaOffset: Int
  var mediaLength: Int
  /// Bytes of the first sample, at the start of the media.
  var firstSampleLength: Int
  /// The length that it adds to its track in the segment; for the leading track as in `StoredFragment.duration`.
  var duration: MediaTime
  /// Decoding of the track can start with it.
  var isIndependent: Bool

  /// Bytes of the run in that layout.
  var length: Int { head.readableBytes + mediaLength }
}

/// A segment of the window: fragments from one independent start to the next.
package struct LiveSegment: Sendable {
  /// Media sequence number; the first of an epoch is 1.
  package let sequenceNumber: Int
  /// The version of the init segment for its fragments.
  package let initVersion: Int
  /// The timeline breaks before it.
  package let followsDiscontinuity: Bool
  /// Decoding can start with it: with a key frame, or with audio alone.
  package let isIndependent: Bool
  /// Earliest presentation time of the leading track.
  package let start: MediaTime
  /// Wall-clock time of `start`.
  package var wallStart: WallTime
  /// Some frames after its key frame are shown before it.
  package var opensGroup = false
  /// The previous segment in memory has another init segment, for some of the tracks at least.
  var changesInit = false
  /// The default tracks have changed without a discontinuity of the others.
  var changesDefaults = false
  /// The first track of each kind, for the interleaved layout, when the stream has more tracks. Nil: it contains all tracks.
  var defaults: [TrackID]?
  /// The video tracks that follow the leading one.
  package var furtherVideos: [TrackID] = []
  /// All samples can be decoded without another segment (EXT-X-INDEPENDENT-SEGMENTS, RFC 8216bis §4.4.2.1).
  var standsAlone: Bool { isIndependent && !opensGroup }
  /// An outage: no media in any rendition.
  package var isOutage = false
  package var memory: SegmentMemory
  package var fragments: [StoredFragment] = []
  /// Fragments of the interleaved layout that begin no part.
  var joinedCount = 0
  /// One entry for each track with samples here.
  package var spans: [TrackSpan] = []
  package var isComplete = false
  /// When its newest media came; nil for a recorded one.
  var arrivedAt: MonotonicTime?
  /// Bytes that came too slowly for its length (`MediaArrival`).
  var slowBytes = 0
  /// For a recorded segment, whose fragments are not listed: bytes to the end of its first key frame.
  package var recordedKeyFrameLength: Int?
  /// The length if key frames keep their interval; nil without one. Known with the first fragment; not guaranteed.
  package let expectedDuration: MediaTime?
  /// The presentation time before which samples of the other tracks begin in that case.
  package let expectedFollowersEnd: MediaTime?
  /// The length of the leading track.
  package var duration: MediaTime

  package init(
    sequenceNumber: Int, initVersion: Int, followsDiscontinuity: Bool, isIndependent: Bool, start: MediaTime,
    wallStart: WallTime, opensGroup: Bool = false, changesInit: Bool = false, changesDefaults: Bool = false,
    defaults: [TrackID]? = nil, furtherVideos: [TrackID] = [], isOutage: Bool = false, memory: SegmentMemory,
    fragments: [StoredFragment] = [], joinedCount: Int = 0, spans: [TrackSpan] = [], isComplete: Bool = false,
    arrivedAt: MonotonicTime? = nil, slowBytes: Int = 0, recordedKeyFrameLength: Int? = nil,
    expectedDuration: MediaTime?, expectedFollowersEnd: MediaTime?, duration: MediaTime
  ) {
    (self.sequenceNumber, self.initVersion, self.followsDiscontinuity, self.isIndependent, self.start) = (
      sequenceNumber, initVersion, followsDiscontinuity, isIndependent, start
    )
    (self.wallStart, self.opensGroup, self.changesInit, self.changesDefaults, self.defaults) = (
      wallStart, opensGroup, changesInit, changesDefaults, defaults
    )
    (self.furtherVideos, self.isOutage, self.memory, self.fragments, self.joinedCount) = (
      furtherVideos, isOutage, memory, fragments, joinedCount
    )
    (self.spans, self.isComplete, self.arrivedAt, self.slowBytes, self.recordedKeyFrameLength) = (
      spans, isComplete, arrivedAt, slowBytes, recordedKeyFrameLength
    )
    (self.expectedDuration, self.expectedFollowersEnd, self.duration) = (
      expectedDuration, expectedFollowersEnd, duration
    )
  }

  /// The samples of one track in the fragments so far, in its ticks.
  package struct TrackSpan: Sendable {
    package let track: TrackID
    package let timescale: UInt32
    /// Earliest presentation time.
    package var start: Int64
    package var duration: Int64
    package var mediaBytes: Int
    /// The listing in manifests since its first samples; nil when no length could be given.
    package var announced: Listing?
    /// Decoding can start with its first sample.
    package var isIndependent = true
    /// By how much playlists list it longer: up to the end of another track, at the end of a publication.
    package var addition: Int64 = 0

    package init(
      track: TrackID, timescale: UInt32, start: Int64, duration: Int64, mediaBytes: Int, announced: Listing? = nil,
      isIndependent: Bool = true, addition: Int64 = 0
    ) {
      (self.track, self.timescale, self.start, self.duration, self.mediaBytes) = (
        track, timescale, start, duration, mediaBytes
      )
      (self.announced, self.isIndependent, self.addition) = (announced, isIndependent, addition)
    }
  }

  package var wallEnd: WallTime { wallStart &+ duration.nanoseconds }

  /// Wall-clock time of the track's first sample. Without a track, or without samples of it, that of the segment's start.
  package func wallStart(of track: TrackID?) -> WallTime {
    guard let span = track.flatMap(span) else { return wallStart }
    return wallStart &+ (MediaTime(ticks: span.listed.start, timescale: span.timescale) - start).nanoseconds
  }

  package func span(of track: TrackID) -> TrackSpan? {
    spans.first { $0.track == track }
  }

  /// Bytes in memory: the media with the interleaved heads, and the one-track heads.
  var residentBytes: Int {
    memory.byteCount
      + fragments.reduce(0) {
        $1.runs.reduce($0 + ($1.defaults?.head.readableBytes ?? 0)) { $0 + $1.head.readableBytes }
      }
  }

  /// Extends the segment to `length`, the length in its presentation, when its media ends earlier.
  mutating func lengthen(to length: MediaTime) {
    guard length > duration else { return }
    duration = length.converted(to: duration.timescale)
    guard let index = spans.indices.first else { return }
    spans[index].duration = max(spans[index].duration, length.rescaled(to: spans[index].timescale))
  }

  private func isIndependent(_ run: TrackRun, in fragment: Fragment) -> Bool {
    run.track == fragment.leader ? fragment.isIndependent : run.samples.first?.isSync ?? false
  }

  /// The shortest part. The media of a part may end where the previous part ends, like a last audio frame beside complete
  /// video. Shaka Player skips a part whose start and end are within 2 ms of those of the previous one. It also gives a hinted
  /// part the length PART-TARGET, so that a following part without length looks the same.
  private static let leastPart = MediaTime(milliseconds: 3)

  /// `defaultsHead` is the head for the first track of each kind. Nil when the stream has no more tracks, or none has samples.
  mutating func add(
    _ fragment: Fragment, at offset: Int, headLength: Int, singleHeads: [ByteBuffer], defaultsHead: ByteBuffer? = nil
  ) {
    let before = duration
    // From the first frame shown to the first frame of the next fragment.
    let end = fragment.longestEnd ?? fragment.end
    if !fragment.isAside { duration = max(before + Self.leastPart, end - start) }
    let added = max(duration - before, Self.leastPart)
    var mediaOffset = offset + headLength
    var runs: [StoredRun] = []
    for (run, head) in zip(fragment.runs, singleHeads) {
      runs.append(
        StoredRun(
          track: run.track, head: head, mediaOffset: mediaOffset, mediaLength: run.byteCount,
          firstSampleLength: Int(run.samples.first?.size ?? 0),
          duration: run.track == fragment.leader ? added : MediaTime(ticks: run.duration, timescale: run.timescale),
          isIndependent: isIndependent(run, in: fragment)))
      mediaOffset += run.byteCount
      if let index = spans.firstIndex(where: { $0.track == run.track }) {
        spans[index].start = min(spans[index].start, run.earliestPresentationTime)
        spans[index].duration &+= run.duration
        spans[index].mediaBytes += run.byteCount
      } else {
        let leads = run.track == fragment.leader
        let first = run.earliestPresentationTime
        // In an open GOP the first frame to be shown may come with a later fragment.
        let start = leads ? min(first, fragment.start.rescaled(to: run.timescale)) : first
        spans.append(
          TrackSpan(
            track: run.track, timescale: run.timescale, start: start, duration: run.duration,
            mediaBytes: run.byteCount, announced: announcement(of: run, from: start, leads: leads),
            isIndependent: isIndependent(run, in: fragment)))
      }
    }
    if fragment.run(of: fragment.leader) != nil,
      let index = spans.firstIndex(where: { $0.track == fragment.leader })
    {
      let last = fragment.end.rescaled(to: spans[index].timescale)
      spans[index].duration = max(1, last &- spans[index].start)
      spans[index].addition = end.rescaled(to: spans[index].timescale) &- last
    }
    let first = defaultsHead.flatMap { head in
      runs.first.map { first in
        // The media of the first tracks comes before that of the others.
        let length = runs.reduce(0) { $0 + (defaults?.contains($1.track) == true ? $1.mediaLength : 0) }
        return StoredRun(
          track: first.track, head: head, mediaOffset: first.mediaOffset, mediaLength: length,
          firstSampleLength: first.firstSampleLength, duration: added, isIndependent: fragment.isIndependent)
      }
    }
    let joins = fragment.joinsPart && (defaults == nil || first != nil) && partCount(of: nil) > 0
    if joins { joinedCount += 1 }
    fragments.append(
      StoredFragment(
        offset: offset, length: mediaOffset - offset, runs: runs, defaults: first, start: fragment.start,
        duration: added,
        isIndependent: fragment.isIndependent, isExpectedLast: fragment.isExpectedLast, joinsPart: joins))
  }
}
