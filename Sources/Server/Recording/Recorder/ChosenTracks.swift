internal import FMP4
internal import Glibc
internal import NIOCore
internal import Storage
internal import Streams

/// Takes the chosen tracks out of the fragments of a stream. The media of a fragment lies run by run, so those of the chosen
/// tracks are copied behind a head of their own. A value; it reads memory files.
struct ChosenTracks {
  private let choice: TrackChoice
  private var leader: TrackID?
  /// Whether video leads them.
  private(set) var hasVideo = true
  private var tracks: [TrackID] = []
  /// Where the media of the chosen leading track ended.
  private var leaderEnd = MediaTime.zero
  /// The beginning of a segment is still to be marked: its first fragments had nothing of the chosen tracks.
  private var startsSegment = false
  /// Viewers of the stream get another first video or audio, so none of its segments is one of the stream.
  private var hasOtherDefaults = false
  /// Fragments of the newest segment that were left out.
  private var leftOut: (segment: Int, count: Int) = (-1, 0)

  /// Nil where all tracks are recorded, as they are.
  init?(_ choice: TrackChoice) {
    if choice == .all { return nil }
    self.choice = choice
  }

  /// For a file that goes on with those of its tracks that `initSegment` has unchanged. Nil if none of them leads.
  init?(keeping tracks: [TrackDescription], of initSegment: InitSegment) {
    let kept = tracks.filter(initSegment.tracks.contains)
    guard let leader = initSegment.tracks.leader, kept.leader == leader else { return nil }
    choice = .numbers(Set(kept.map(\.id)))
    _ = change(to: initSegment)
    hasOtherDefaults = initSegment.tracks.defaults != tracks.defaults
  }

  /// A fragment of the chosen tracks alone, and its bytes.
  struct Cut {
    var published: PublishedFragment
    var bytes: ByteBuffer
  }

  /// The init segment of the chosen tracks; nil if there is none of them.
  mutating func change(to initSegment: InitSegment) -> InitSegment? {
    let chosen = choice.choose(from: initSegment.tracks)
    (leader, tracks) = (chosen.leader?.id, chosen.map(\.id))
    hasVideo = chosen.leader?.kind == .video
    return chosen.isEmpty ? nil : initSegment.with(chosen)
  }

  /// Nil if the fragment has nothing of the chosen tracks.
  mutating func cut(_ published: PublishedFragment, anchor: WallClockAnchor?) throws(StorageError) -> Cut? {
    if published.fragment.startsSegment { startsSegment = true }
    var fragment = published.fragment
    fragment.runs = fragment.runs.filter { tracks.contains($0.track) }
    fragment.startsSegment = startsSegment
    guard let leader, let head = FragmentBoxes.head(of: fragment, tracks: tracks, clock: startsSegment ? anchor : nil)
    else {
      if leftOut.segment != published.sequenceNumberOfSegment { leftOut = (published.sequenceNumberOfSegment, 0) }
      leftOut.count += 1
      return nil
    }
    if leader != fragment.leader { lead(&fragment, by: leader) }
    startsSegment = false
    var cut = Cut(published: published, bytes: head)
    var offset = published.range.offset + published.headLength
    for run in published.fragment.runs {
      if tracks.contains(run.track) {
        let media = FileRange(file: published.range.file, offset: offset, length: run.byteCount)
        guard media.copy(into: &cut.bytes) else { throw StorageError(operation: "read", errno: EIO) }
      }
      offset += run.byteCount
    }
    (cut.published.fragment, cut.published.shown) = (fragment, [])
    cut.published.headLength = head.readableBytes
    return cut
  }

  /// The times of the fragment by another leading track, as `FragmentAssembler` reads them from a file.
  private mutating func lead(_ fragment: inout Fragment, by leader: TrackID) {
    fragment.leader = leader
    (fragment.start, fragment.end) = (leaderEnd, leaderEnd)
    if let run = fragment.run(of: leader) {
      fragment.start = MediaTime(ticks: run.earliestPresentationTime, timescale: run.timescale)
      fragment.end = MediaTime(ticks: run.presentationEnd, timescale: run.timescale)
    }
    fragment.isIndependent = fragment.run(of: leader)?.samples.first?.isSync ?? false
    fragment.duration = fragment.end - fragment.start
    leaderEnd = fragment.end
  }

  /// The end of a segment, without the fragments that were left out. Of a file with other default tracks than the stream it
  /// counts as incomplete, so that rewinding does not lead there.
  func end(_ end: SegmentEnd) -> SegmentEnd {
    var end = end
    if hasOtherDefaults { end.fragmentCount = 0 }
    if leftOut.segment == end.number { end.fragmentCount = max(0, end.fragmentCount - leftOut.count) }
    return end
  }
}
