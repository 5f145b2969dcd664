internal import Base
internal import FMP4
internal import NIOCore
internal import Storage

extension LiveWindow {
  /// Adds a fragment to the newest segment and stores its bytes in the segment's memory file. Of its heads only the interleaved
  /// one is stored there; the others stay in the segment, because all layouts share the media bytes. `anchor` maps media time
  /// to the wall clock.
  mutating func store(_ fragment: Fragment, anchor: WallClockAnchor?) throws(StorageError) -> PublishedFragment {
    let head = FragmentBoxes.interleavedHead(of: fragment, clock: anchor)
    // Heads for each track alone. Only the first fragment of a track in a segment has the wall clock.
    let singleHeads = fragment.runs.map { run in
      let begins = segments.last?.span(of: run.track) == nil
      return FragmentBoxes.singleHead(of: fragment, track: run.track, clock: begins ? anchor : nil) ?? ByteBuffer()
    }
    // The head for the first track of each kind, if there are further tracks.
    let defaultsHead = segments.last?.defaults.flatMap { tracks in
      let begins = segments.last?.partCount(of: nil) == 0
      return FragmentBoxes.head(of: fragment, tracks: tracks, clock: begins ? anchor : nil)
    }
    // Computed here while the bytes are in the processor's cache.
    var checksum = Checksum()
    checksum.add(head)
    for payload in fragment.payloads { checksum.add(payload) }
    let prefix = fragment.startsSegment ? [FragmentBoxes.interleavedSegmentType, head] : [head]
    let published = try withNewest { segment throws(StorageError) -> PublishedFragment in
      let start = try segment.memory.append(prefix + fragment.payloads)
      let offset = start + (fragment.startsSegment ? FragmentBoxes.interleavedSegmentType.readableBytes : 0)
      segment.add(
        fragment, at: offset, headLength: head.readableBytes, singleHeads: singleHeads, defaultsHead: defaultsHead)
      // The bytes are in the memory file, so they are not kept a second time.
      var stripped = fragment
      stripped.payloads = []
      let length = segment.memory.byteCount - offset
      var published = PublishedFragment(
        fragment: stripped, range: FileRange(file: segment.memory.file, offset: offset, length: length),
        shown: segment.fragments.last.map { segment.pieces(of: nil, in: $0) } ?? [], headLength: head.readableBytes,
        checksum: checksum.value, sequenceNumberOfSegment: segment.sequenceNumber)
      if segment.defaults != nil, let stored = segment.fragments.last {
        for run in stored.runs { published.alone[run.track] = segment.pieces(of: run.track, in: stored) }
      }
      return published
    }
    guard let published else { throw StorageError(operation: "store a fragment outside a segment", errno: 0) }
    return published
  }

  /// Adds a segment without media to the window of a rung that has none for `source`. So the rung keeps the numbers and times of
  /// the source's segments.
  mutating func addGap(like source: LiveSegment, duration: MediaTime, memory: SegmentMemory) {
    var segment = LiveSegment(
      sequenceNumber: nextSequenceNumber, initVersion: source.initVersion,
      followsDiscontinuity: source.followsDiscontinuity, isIndependent: true, start: source.start,
      wallStart: source.wallStart, memory: memory, expectedDuration: nil, expectedFollowersEnd: nil,
      duration: duration)
    segment.isOutage = source.isOutage
    append(segment)
    completeNewest()
  }

  /// Whether the newest complete segment outside an outage has media. Without such a segment: whether the newest one has a
  /// fragment.
  var endsWithMedia: Bool {
    guard let newest = segments.last(where: { $0.isComplete && !$0.isOutage }) else {
      return segments.last?.fragments.isEmpty == false
    }
    return !newest.fragments.isEmpty
  }
}
