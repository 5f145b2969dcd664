internal import FMP4
internal import NIOCore
internal import Storage

/// A part of a segment as one rendition delivers it: EXT-X-PART of LL-HLS, a chunk of LL-DASH.
struct LivePart: Sendable {
  /// Counts from 0 within the rendition's segment.
  var index: Int
  var duration: MediaTime
  /// It begins with a key frame, or is sound alone.
  var isIndependent: Bool
  /// Where its bytes lie in the rendition's segment.
  var bytes: Range<Int>
}

/// The segment as renditions see it. `track` is nil for the interleaved layout, whose segment is one range of the
/// memory; a track's own segment is `styp`, then head and media of each fragment in which the track has samples.
extension LiveSegment {
  /// The whole segment as far as it is there.
  func pieces(of track: TrackID?) -> [BodyPiece] {
    guard let track else { return [.file(FileRange(file: memory.file, offset: 0, length: memory.byteCount))] }
    var pieces: [BodyPiece] = [.bytes(FragmentBoxes.singleSegmentType)]
    for fragment in fragments {
      guard let run = fragment.runs.first(where: { $0.track == track }) else { continue }
      pieces += self.pieces(of: run)
    }
    return pieces
  }

  private func pieces(of run: StoredRun) -> [BodyPiece] {
    [.bytes(run.head), .file(FileRange(file: memory.file, offset: run.mediaOffset, length: run.mediaLength))]
  }

  /// What follows the first `count` fragments.
  func pieces(of track: TrackID?, fromFragment count: Int) -> [BodyPiece] {
    guard count > 0 else { return pieces(of: track) }
    guard count < fragments.count else { return [] }
    guard let track else {
      let start = fragments[count].offset
      return [.file(FileRange(file: memory.file, offset: start, length: memory.byteCount - start))]
    }
    return fragments[count...].flatMap { fragment in
      fragment.runs.first { $0.track == track }.map { self.pieces(of: $0) } ?? []
    }
  }

  func byteCount(of track: TrackID?) -> Int {
    guard let track else { return memory.byteCount }
    return fragments.reduce(FragmentBoxes.singleSegmentType.readableBytes) { sum, fragment in
      sum + (fragment.runs.first { $0.track == track }?.length ?? 0)
    }
  }

  func partCount(of track: TrackID?) -> Int {
    guard let track else { return fragments.count }
    return fragments.reduce(0) { $0 + ($1.runs.contains { $0.track == track } ? 1 : 0) }
  }

  /// All parts so far. `isSound`: each of them can be decoded alone.
  func parts(of track: TrackID?, isSound: Bool) -> [LivePart] {
    var parts: [LivePart] = []
    parts.reserveCapacity(fragments.count)
    var end = 0
    for fragment in fragments {
      let start = end
      var duration = fragment.duration
      if let track {
        guard let run = fragment.runs.first(where: { $0.track == track }) else { continue }
        end = (start == 0 ? FragmentBoxes.singleSegmentType.readableBytes : start) + run.length
        duration = run.duration
      } else {
        end = fragment.offset + fragment.length
      }
      parts.append(
        LivePart(
          index: parts.count, duration: duration, isIndependent: isSound || fragment.isIndependent,
          bytes: start..<end))
    }
    return parts
  }

  /// The bytes of one part; nil while it is not there.
  func pieces(ofPart index: Int, of track: TrackID?) -> [BodyPiece]? {
    if let track {
      var left = index
      for fragment in fragments {
        guard let run = fragment.runs.first(where: { $0.track == track }) else { continue }
        if left == 0 {
          return (index == 0 ? [.bytes(FragmentBoxes.singleSegmentType)] : []) + pieces(of: run)
        }
        left -= 1
      }
      return nil
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
    guard isIndependent, let run = fragments.first?.runs.first(where: { $0.track == track }),
      run.firstSampleLength > 0
    else { return nil }
    return FragmentBoxes.singleSegmentType.readableBytes + run.head.readableBytes + run.firstSampleLength
  }
}
