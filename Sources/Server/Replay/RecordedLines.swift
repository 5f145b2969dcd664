internal import FMP4
internal import NIOCore

/// The complete segments of a recording as one rendition's media playlist lists them. The text only ever grows, so that
/// a playlist of ten hours costs one more line with each segment.
struct RecordedLines: Sendable {
  /// How segments are numbered.
  enum Numbering: Sendable, Hashable {
    /// From 1 within the recording.
    case ofRecording
    /// As the live stream numbered them.
    case ofEpoch
  }

  /// Where a playlist can begin.
  struct Start: Sendable {
    /// Media sequence number of what follows.
    var number: Int
    /// Index of the segment.
    var segment: Int
    /// Bytes of `text` before it.
    var offset: Int
    /// Discontinuities before it.
    var discontinuities: Int
  }

  let rendition: Rendition
  let numbering: Numbering
  private(set) var text = ByteBuffer()
  private(set) var starts: [Start] = []
  private(set) var hasGaps = false
  /// Seconds, rounded: no segment is longer.
  private(set) var target = 1
  private(set) var isIndependent = true
  private var lines = HLSSegmentLines()
  private var count = 0
  /// Media sequence number of the newest.
  private(set) var lastNumber = 0
  private var discontinuities = 0
  /// The wall-clock time that what was told so far leads to.
  private var wall: Int64?

  /// Every so many segments everything is told again, so that a playlist can begin there.
  static let startInterval = 64
  /// More missing segments than this are not listed one by one.
  private static let maximumMissing = 1000

  init(_ rendition: Rendition, _ numbering: Numbering) {
    self.rendition = rendition
    self.numbering = numbering
  }

  mutating func extend(_ index: RecordingIndex) {
    while count < index.completeCount {
      append(index.segments[count], index)
      lastNumber = number(of: index.segments[count], at: count)
      count += 1
    }
  }

  func number(of segment: RecordingIndex.Segment, at index: Int) -> Int {
    numbering == .ofRecording ? index + 1 : Int(segment.number)
  }

  private mutating func append(_ segment: RecordingIndex.Segment, _ index: RecordingIndex) {
    if numbering == .ofEpoch { appendMissing(before: segment, index) }
    if count % Self.startInterval == 0 {
      lines.startOver()
      wall = nil
      starts.append(
        Start(
          number: number(of: segment, at: count), segment: count, offset: text.readableBytes,
          discontinuities: discontinuities))
    }
    let duration = index.duration(of: segment)
    let breaks = segment.flags.contains(.followsDiscontinuity)
    if breaks { discontinuities += 1 }
    // Players count on from the last time they were told; what they get wrong by less than a millisecond stays so.
    let isToldAlready = wall.map { !breaks && ($0 &- segment.wallStart).magnitude < 1_000_000 } ?? false
    let shown = shown(index, duration)
    lines.writeHead(
      followsDiscontinuity: breaks, initVersion: shown == nil ? nil : index.version(of: segment)?.number,
      wallStart: isToldAlready ? nil : segment.wallStart, &text)
    wall = (isToldAlready ? wall ?? 0 : segment.wallStart) &+ duration.nanoseconds
    HLSSegmentLines.write(
      number(of: segment, at: count), duration: shown ?? duration, isGap: shown == nil, &text)
    hasGaps = hasGaps || shown == nil
    target = max(target, Int(duration.rescaled(to: 1)))
    isIndependent = isIndependent && segment.flags.contains(.isIndependent)
  }

  /// How long the rendition's samples last; nil where there are none.
  private func shown(_ index: RecordingIndex, _ duration: MediaTime) -> MediaTime? {
    guard let kind = rendition.kind else { return duration }
    return index.span(kind, at: count).map { MediaTime(ticks: Int64($0.span.duration), timescale: $0.track.timescale) }
  }

  /// What the disk did not take of the stream keeps its numbers.
  private mutating func appendMissing(before segment: RecordingIndex.Segment, _ index: RecordingIndex) {
    guard count > 0 else { return }
    let last = index.segments[count - 1]
    let missing = Int(segment.number) - Int(last.number) - 1
    guard (1...Self.maximumMissing).contains(missing) else { return }
    let hole = index.start(of: segment) - (index.start(of: last) + index.duration(of: last))
    let each = MediaTime(nanoseconds: max(1_000_000, hole.nanoseconds / Int64(missing)))
    for number in Int(last.number) + 1..<Int(segment.number) {
      HLSSegmentLines.write(number, duration: each, isGap: true, &text)
      target = max(target, Int(each.rescaled(to: 1)))
    }
    hasGaps = true
  }
}

/// The tags before the segments of a playlist that goes back to its beginning (RFC 8216bis §4.4.3).
struct RecordedPlaylistHead {
  var target: Int
  var firstNumber: Int
  var discontinuities = 0
  /// EXT-X-PLAYLIST-TYPE; nil where older segments leave the list.
  var type: String?
  var isIndependent: Bool
  var hasGaps: Bool

  func write(_ out: inout ByteBuffer) {
    // EXT-X-GAP needs version 8, EXT-X-MAP 6 (§8).
    out.writeString("#EXTM3U\n#EXT-X-VERSION:\(hasGaps ? 8 : 6)\n#EXT-X-TARGETDURATION:\(target)\n")
    out.writeString("#EXT-X-MEDIA-SEQUENCE:\(firstNumber)\n")
    if discontinuities > 0 { out.writeString("#EXT-X-DISCONTINUITY-SEQUENCE:\(discontinuities)\n") }
    if let type { out.writeString("#EXT-X-PLAYLIST-TYPE:\(type)\n") }
    if isIndependent { out.writeStaticString("#EXT-X-INDEPENDENT-SEGMENTS\n") }
  }
}
