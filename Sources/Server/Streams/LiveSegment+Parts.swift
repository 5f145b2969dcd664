package import FMP4
internal import NIOCore
package import Storage

/// A part of a segment in one rendition: EXT-X-PART of LL-HLS, a chunk of LL-DASH.
package struct LivePart: Sendable {
  /// Counts from 0 within the rendition's segment.
  package var index: Int
  package var duration: MediaTime
  /// It begins with a key frame, or contains only audio.
  package var isIndependent: Bool
  /// The byte range in the rendition's segment.
  package var bytes: Range<Int>
}

/// The segment in the layouts of the renditions. `track` is nil for the interleaved layout: one range of the memory when the
/// stream has one track of each kind. Any other layout is `styp`, then head and media of each fragment with samples of the
/// track, or of the first track of each kind.
extension LiveSegment {
  /// The whole segment, as far as it exists.
  package func pieces(of track: TrackID?) -> [BodyPiece] {
    if isStored(track) { return [.file(FileRange(file: memory.file, offset: 0, length: memory.byteCount))] }
    return fragments.reduce(into: [.bytes(segmentType(track))]) { $0 += pieces(of: track, in: $1) }
  }

  /// A fragment in this layout.
  func pieces(of track: TrackID?, in fragment: StoredFragment) -> [BodyPiece] {
    if isStored(track) {
      return [.file(FileRange(file: memory.file, offset: fragment.offset, length: fragment.length))]
    }
    return fragment.run(of: track).map { run in
      [.bytes(run.head), .file(FileRange(file: memory.file, offset: run.mediaOffset, length: run.mediaLength))]
    } ?? []
  }

  /// The layout is identical to the bytes in memory.
  private func isStored(_ track: TrackID?) -> Bool { track == nil && defaults == nil }

  private func segmentType(_ track: TrackID?) -> ByteBuffer {
    track == nil ? FragmentBoxes.interleavedSegmentType : FragmentBoxes.singleSegmentType
  }

  /// The bytes after the first `count` fragments.
  func pieces(of track: TrackID?, fromFragment count: Int) -> [BodyPiece] {
    guard count > 0 else { return pieces(of: track) }
    guard count < fragments.count else { return [] }
    if isStored(track) {
      let start = fragments[count].offset
      return [.file(FileRange(file: memory.file, offset: start, length: memory.byteCount - start))]
    }
    return fragments[count...].flatMap { pieces(of: track, in: $0) }
  }

  package func byteCount(of track: TrackID?) -> Int {
    if isStored(track) { return memory.byteCount }
    return fragments.reduce(segmentType(track).readableBytes) { $0 + ($1.run(of: track)?.length ?? 0) }
  }

  func partCount(of track: TrackID?) -> Int {
    let count = isStored(track) ? fragments.count : fragments.count { $0.run(of: track) != nil }
    return track == nil ? count - joinedCount : count
  }

  /// All parts so far. `isAudio`: each part can be decoded by itself.
  package func parts(of track: TrackID?, isAudio: Bool) -> [LivePart] {
    var parts: [LivePart] = []
    parts.reserveCapacity(fragments.count)
    var end = 0
    for fragment in fragments {
      let start = end
      var (duration, isIndependent) = (fragment.duration, fragment.isIndependent)
      if isStored(track) {
        end = fragment.offset + fragment.length
      } else {
        guard let run = fragment.run(of: track) else { continue }
        end = (start == 0 ? segmentType(track).readableBytes : start) + run.length
        (duration, isIndependent) = (run.duration, run.isIndependent)
      }
      if track == nil, fragment.joinsPart, let last = parts.indices.last {
        parts[last].bytes = parts[last].bytes.lowerBound..<end
        continue
      }
      parts.append(
        LivePart(
          index: parts.count, duration: duration, isIndependent: isAudio || isIndependent,
          bytes: start..<end))
    }
    return parts
  }

  /// The bytes of one part; nil when it does not exist yet.
  package func pieces(ofPart index: Int, of track: TrackID?) -> [BodyPiece]? {
    guard let found = content(ofPart: index, of: track), let first = found.first, let last = found.last else {
      return nil
    }
    // The segment type box belongs to the first part.
    guard isStored(track) else {
      var pieces: [BodyPiece] = index == 0 ? [.bytes(segmentType(track))] : []
      for fragment in found { pieces += self.pieces(of: track, in: fragment) }
      return pieces
    }
    let start = index == 0 ? 0 : first.offset
    return [.file(FileRange(file: memory.file, offset: start, length: last.offset + last.length - start))]
  }

  /// The fragments of one part; those between them have nothing in this layout.
  private func content(ofPart index: Int, of track: TrackID?) -> ArraySlice<StoredFragment>? {
    if isStored(track), joinedCount == 0 {
      return fragments.indices.contains(index) ? fragments[index...index] : nil
    }
    var part = -1
    var found: Range<Int>?
    for (place, fragment) in fragments.enumerated() where isStored(track) || fragment.run(of: track) != nil {
      if track != nil || !fragment.joinsPart { part += 1 }
      if part > index { break }
      if part == index { found = (found?.lowerBound ?? place)..<(place + 1) }
    }
    return found.map { fragments[$0] }
  }

  /// Bytes from the start of the track's segment to the end of its first key frame, for an I-frame playlist
  /// (RFC 8216bis §4.4.3.6). Nil when the segment does not start with a key frame.
  package func keyFrameLength(of track: TrackID) -> Int? {
    if let recordedKeyFrameLength { return recordedKeyFrameLength }
    guard let run = fragments.first?.run(of: track), run.isIndependent, run.firstSampleLength > 0 else { return nil }
    return FragmentBoxes.singleSegmentType.readableBytes + run.head.readableBytes + run.firstSampleLength
  }
}
