internal import FMP4
internal import NIOCore
internal import Storage

/// A part of a segment as one rendition delivers it: EXT-X-PART of LL-HLS, a chunk of LL-DASH.
struct LivePart: Sendable {
  /// Counts from 0 within the rendition's segment.
  var index: Int
  var duration: MediaTime
  /// It begins with a key frame, or is audio alone.
  var isIndependent: Bool
  /// Where its bytes lie in the rendition's segment.
  var bytes: Range<Int>
}

/// The segment as renditions see it. `track` is nil for the interleaved layout, whose segment is one range of the
/// memory where the stream has one track of a kind. Any other is `styp`, then head and media of each fragment in which the
/// track, or one of the first of each kind, has samples.
extension LiveSegment {
  /// The whole segment as far as it is there.
  func pieces(of track: TrackID?) -> [BodyPiece] {
    if isStored(track) { return [.file(FileRange(file: memory.file, offset: 0, length: memory.byteCount))] }
    return fragments.reduce(into: [.bytes(segmentType(track))]) { $0 += pieces(of: track, in: $1) }
  }

  /// What the layout shows of a fragment.
  func pieces(of track: TrackID?, in fragment: StoredFragment) -> [BodyPiece] {
    if isStored(track) {
      return [.file(FileRange(file: memory.file, offset: fragment.offset, length: fragment.length))]
    }
    return fragment.run(of: track).map { run in
      [.bytes(run.head), .file(FileRange(file: memory.file, offset: run.mediaOffset, length: run.mediaLength))]
    } ?? []
  }

  /// The layout is what lies in memory.
  private func isStored(_ track: TrackID?) -> Bool { track == nil && defaults == nil }

  private func segmentType(_ track: TrackID?) -> ByteBuffer {
    track == nil ? FragmentBoxes.interleavedSegmentType : FragmentBoxes.singleSegmentType
  }

  /// What follows the first `count` fragments.
  func pieces(of track: TrackID?, fromFragment count: Int) -> [BodyPiece] {
    guard count > 0 else { return pieces(of: track) }
    guard count < fragments.count else { return [] }
    if isStored(track) {
      let start = fragments[count].offset
      return [.file(FileRange(file: memory.file, offset: start, length: memory.byteCount - start))]
    }
    return fragments[count...].flatMap { pieces(of: track, in: $0) }
  }

  func byteCount(of track: TrackID?) -> Int {
    if isStored(track) { return memory.byteCount }
    return fragments.reduce(segmentType(track).readableBytes) { $0 + ($1.run(of: track)?.length ?? 0) }
  }

  func partCount(of track: TrackID?) -> Int {
    isStored(track) ? fragments.count : fragments.count { $0.run(of: track) != nil }
  }

  /// All parts so far. `isAudio`: each of them can be decoded alone.
  func parts(of track: TrackID?, isAudio: Bool) -> [LivePart] {
    var parts: [LivePart] = []
    parts.reserveCapacity(fragments.count)
    var end = 0
    for fragment in fragments {
      let start = end
      var duration = fragment.duration
      if isStored(track) {
        end = fragment.offset + fragment.length
      } else {
        guard let run = fragment.run(of: track) else { continue }
        end = (start == 0 ? segmentType(track).readableBytes : start) + run.length
        duration = run.duration
      }
      parts.append(
        LivePart(
          index: parts.count, duration: duration, isIndependent: isAudio || fragment.isIndependent,
          bytes: start..<end))
    }
    return parts
  }

  /// The bytes of one part; nil while it is not there.
  func pieces(ofPart index: Int, of track: TrackID?) -> [BodyPiece]? {
    guard isStored(track) else {
      let found = fragments.lazy.filter { $0.run(of: track) != nil }.dropFirst(index).first
      return found.map { (index == 0 ? [.bytes(segmentType(track))] : []) + pieces(of: track, in: $0) }
    }
    guard fragments.indices.contains(index) else { return nil }
    // The first part has the segment type before it.
    let start = index == 0 ? 0 : fragments[index].offset
    let end = fragments[index].offset + fragments[index].length
    return [.file(FileRange(file: memory.file, offset: start, length: end - start))]
  }

  /// Where the key frame with which the segment starts ends in the track's own segment: all that an I-frame playlist
  /// needs of it (RFC 8216bis §4.4.3.6). Nil where it starts with none.
  func keyFrameLength(of track: TrackID) -> Int? {
    if let recordedKeyFrameLength { return recordedKeyFrameLength }
    guard isIndependent, let run = fragments.first?.run(of: track), run.firstSampleLength > 0 else { return nil }
    return FragmentBoxes.singleSegmentType.readableBytes + run.head.readableBytes + run.firstSampleLength
  }
}
