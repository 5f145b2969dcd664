package import FMP4
package import NIOCore

/// The index as bytes. They stand in the `free` box between a finished movie's `moov` and its media, after the
/// `RecordingMetadata`. With them a recording can be opened without a look at every fragment. If they are invalid, they are
/// ignored and the file is walked.
///
/// | bytes | what |
/// |---|---|
/// | 8 | `weir-ix2` (`weir-ix1` without the last line) |
/// | 8 | FNV-1a of all that follows |
/// | 4 × 4 | numbers of tracks, versions, segments, clocks |
/// | 12 + 4 × tracks | each version: number, offset; ticks of a frame of each track |
/// | 24 | each clock: first segment, media time, timescale, wall-clock time |
/// | 45 + 16 × tracks | each segment, and what it holds of each track |
/// | 4 | EXT-X-TARGETDURATION in seconds; 0 if not known |
extension RecordingIndex {
  private static let magic: StaticString = "weir-ix2"
  private static let oldMagic: StaticString = "weir-ix1"
  private static let headSize = 16
  /// Upper limit of accepted indexes: 300 days of segments.
  static let maximumStoredBytes = 1 << 30
  /// Upper limit of tracks in a publication.
  private static let maximumTracks = 32

  /// Bytes of `stored`.
  package var storedSize: Int {
    let tracks = versions.first?.tracks.count ?? 0
    return Self.headSize + Self.size(tracks, versions.count, segments.count, anchors.count) + Self.tailSize
  }

  /// Bytes at the start of `stored` that give its size.
  package static let storedHeadSize = headSize + 16

  /// Total bytes of the index that begins with these; nil if they begin none.
  package static func size(ofStored head: ByteBuffer) -> Int? {
    var head = head
    guard let tail = head.readString(length: 8).flatMap(tailSize(of:)), head.readInteger(as: UInt64.self) != nil,
      let counts = head.readIntegers(4).map({ $0.map(Int.init) })
    else { return nil }
    // Cannot overflow: four numbers of 32 bits.
    return headSize + size(min(counts[0], maximumTracks), counts[1], counts[2], counts[3]) + tail
  }

  /// Bytes after the segments.
  private static let tailSize = 4

  private static func tailSize(of magic: String) -> Int? {
    switch magic {
    case "\(Self.magic)": tailSize
    case "\(oldMagic)": 0
    default: nil
    }
  }

  private static func size(_ tracks: Int, _ versions: Int, _ segments: Int, _ anchors: Int) -> Int {
    16 + versions * (12 + 4 * tracks) + anchors * 24 + segments * (45 + 16 * tracks)
  }

  package var stored: ByteBuffer {
    let tracks = versions.first?.tracks.count ?? 0
    var rest = ByteBuffer()
    rest.reserveCapacity(storedSize)
    for count in [tracks, versions.count, segments.count, anchors.count] { rest.writeInteger(UInt32(clamping: count)) }
    for version in versions {
      rest.writeInteger(UInt32(clamping: version.number))
      rest.writeInteger(version.offset)
      for track in version.tracks { rest.writeInteger(track.frameDuration ?? 0) }
    }
    for (segment, anchor) in anchors {
      rest.writeInteger(UInt32(clamping: segment))
      rest.writeInteger(anchor.mediaTime.ticks)
      rest.writeInteger(anchor.mediaTime.timescale)
      rest.writeInteger(anchor.wallTime.nanoseconds)
    }
    for (index, segment) in segments.enumerated() {
      rest.write(segment)
      for span in spans[index * tracks..<(index + 1) * tracks] {
        rest.writeInteger(span.start)
        rest.writeInteger(span.duration)
        rest.writeInteger(span.mediaBytes)
      }
    }
    rest.writeInteger(UInt32(clamping: targetDuration ?? 0))
    var bytes = ByteBuffer()
    bytes.reserveCapacity(Self.headSize + rest.readableBytes)
    bytes.writeStaticString(Self.magic)
    bytes.writeInteger(Self.checksum(rest))
    bytes.writeImmutableBuffer(rest)
    return bytes
  }

  /// Reads what `stored` wrote. `tracks` returns the tracks described at an offset. Nil if anything does not fit, or lies beyond
  /// `length` bytes of the fragmented file.
  package init?(stored bytes: ByteBuffer, length: UInt64, tracks: (UInt64) -> [TrackDescription]?) {
    var bytes = bytes
    guard let tail = bytes.readString(length: 8).flatMap(Self.tailSize(of:)),
      let sum = bytes.readInteger(as: UInt64.self)
    else { return nil }
    var rest = bytes
    guard let numbers = rest.readIntegers(4).map({ $0.map(Int.init) }) else { return nil }
    let (trackCount, versionCount, segmentCount, anchorCount) = (numbers[0], numbers[1], numbers[2], numbers[3])
    guard (1...Self.maximumTracks).contains(trackCount), versionCount <= Int(UInt16.max),
      segmentCount <= rest.readableBytes / 45, anchorCount <= rest.readableBytes / 24
    else { return nil }
    let size = Self.size(trackCount, versionCount, segmentCount, anchorCount) + tail
    guard let covered = bytes.getSlice(at: bytes.readerIndex, length: size), Self.checksum(covered) == sum else {
      return nil
    }
    for _ in 0..<versionCount {
      guard let number = rest.readInteger(as: UInt32.self), let offset = rest.readInteger(as: UInt64.self),
        let durations = rest.readIntegers(trackCount), offset < length, var found = tracks(offset),
        found.count == trackCount
      else { return nil }
      for (index, duration) in durations.enumerated() { found[index].frameDuration = duration > 0 ? duration : nil }
      versions.append(Version(initSegment: InitSegment(version: Int(number), tracks: found), offset: offset))
    }
    for _ in 0..<anchorCount {
      guard let segment = rest.readInteger(as: UInt32.self), let ticks = rest.readInteger(as: Int64.self),
        let timescale = rest.readInteger(as: UInt32.self), let wall = rest.readInteger(as: Int64.self)
      else { return nil }
      let time = MediaTime(ticks: ticks, timescale: timescale)
      anchors.append((Int(segment), WallClockAnchor(mediaTime: time, wallTime: WallTime(nanoseconds: wall))))
    }
    segments.reserveCapacity(segmentCount)
    spans.reserveCapacity(segmentCount * trackCount)
    var end: UInt64 = 0
    for _ in 0..<segmentCount {
      // Requests read ranges from the start of one segment to the end of a later one, so segments must be in order.
      guard let segment = rest.readSegment(), Int(segment.version) < versionCount, segment.offset >= end,
        versions[Int(segment.version)].offset <= segment.offset,
        segment.offset <= length, UInt64(segment.length) <= length - segment.offset
      else { return nil }
      end = segment.offset + UInt64(segment.length)
      segments.append(segment)
      for _ in 0..<trackCount {
        guard let (start, duration, mediaBytes) = rest.readMultipleIntegers(as: (Int64, UInt32, UInt32).self) else {
          return nil
        }
        spans.append(Span(start: start, duration: duration, mediaBytes: mediaBytes))
      }
    }
    if tail > 0, let target = rest.readInteger(as: UInt32.self), target > 0 { targetDuration = Int(target) }
  }

  private static func checksum(_ bytes: ByteBuffer) -> UInt64 {
    bytes.readableBytesView.withContiguousStorageIfAvailable { bytes in
      bytes.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    } ?? 0
  }
}

extension ByteBuffer {
  fileprivate mutating func write(_ segment: RecordingIndex.Segment) {
    writeInteger(segment.offset)
    writeInteger(segment.start)
    writeInteger(segment.wallStart.nanoseconds)
    for value in [segment.duration, segment.length, segment.number, segment.keyFrameLength] { writeInteger(value) }
    writeInteger(segment.version)
    writeInteger(segment.fragmentCount)
    writeInteger(segment.flags.rawValue)
  }

  fileprivate mutating func readSegment() -> RecordingIndex.Segment? {
    // Ten hours have 18,000 segments: one length check for each, and no array.
    typealias Fields = (UInt64, Int64, Int64, UInt32, UInt32, UInt32, UInt32, UInt16, UInt16, UInt8)
    guard
      let (offset, start, wall, duration, length, number, keyFrame, version, count, flags) = readMultipleIntegers(
        as: Fields.self)
    else { return nil }
    return RecordingIndex.Segment(
      offset: offset, start: start, wallStart: WallTime(nanoseconds: wall), duration: duration, length: length,
      number: number,
      keyFrameLength: keyFrame, version: version, fragmentCount: count, flags: RecordingIndex.Flags(rawValue: flags))
  }

  fileprivate mutating func readIntegers(_ count: Int) -> [UInt32]? {
    var result: [UInt32] = []
    for _ in 0..<count {
      guard let value = readInteger(as: UInt32.self) else { return nil }
      result.append(value)
    }
    return result
  }
}
