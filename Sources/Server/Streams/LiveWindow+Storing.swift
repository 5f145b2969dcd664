internal import Basics
internal import FMP4
internal import NIOCore
internal import Storage

extension LiveWindow {
  /// Stores a fragment's bytes in the memory of the newest segment, which it belongs to. `anchor` maps media time to the wall
  /// clock.
  mutating func store(_ fragment: Fragment, anchor: WallClockAnchor?) throws(StorageError) -> PublishedFragment {
    let head = FragmentBoxes.interleavedHead(of: fragment, clock: anchor)
    let singleHeads = fragment.runs.map { run in
      let begins = segments.last?.span(of: run.track) == nil
      return FragmentBoxes.singleHead(of: fragment, track: run.track, clock: begins ? anchor : nil) ?? ByteBuffer()
    }
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
      var stripped = fragment
      stripped.payloads = []
      let length = segment.memory.byteCount - offset
      return PublishedFragment(
        fragment: stripped, range: FileRange(file: segment.memory.file, offset: offset, length: length),
        shown: segment.fragments.last.map { segment.pieces(of: nil, in: $0) } ?? [], headLength: head.readableBytes,
        checksum: checksum.value, sequenceNumberOfSegment: segment.sequenceNumber)
    }
    guard let published else { throw StorageError(operation: "store a fragment outside a segment", errno: 0) }
    return published
  }

  /// Adds a segment without media. It keeps the numbers and times of its presentation.
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

  /// The newest complete segment with a publisher has media.
  var endsWithMedia: Bool {
    guard let newest = segments.last(where: { $0.isComplete && !$0.isOutage }) else {
      return segments.last?.fragments.isEmpty == false
    }
    return !newest.fragments.isEmpty
  }
}
