internal import FMP4
internal import NIOCore
internal import Playlists
internal import RecordingFiles
internal import Streams

/// The media playlist of one rendition of a recording, with its complete segments. Viewers of the live stream get only the
/// segments that are whole. The text only grows, so each segment of a ten-hour playlist costs one more line.
struct RecordedMediaPlaylist: Sendable {
  /// How segments are numbered.
  enum Numbering: Sendable, Hashable {
    /// From 1 within the recording.
    case ofRecording
    /// As in the live stream, where the files of an epoch are joined.
    case ofEpoch
  }

  /// A place where a playlist can begin.
  struct Start: Sendable {
    /// Media sequence number of the segment that follows.
    var number: Int
    /// Media time at which it begins.
    var time: MediaTime
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
  /// Length of the longest segment, in rounded seconds.
  private(set) var target = 1
  private(set) var isIndependent = true
  private var lines = HLSSegmentLines()
  /// Segments of the index that have been processed.
  private var count = 0
  /// Revision of the index when processing began.
  private var revision = 0
  private var listCount = 0
  /// Indices of the first and the last listed segment.
  private(set) var listed: ClosedRange<Int>?
  /// Media sequence number of the newest listed segment.
  private(set) var lastNumber = 0
  /// Offset of each line in the text, including lines of missing segments.
  private var places: [(number: UInt32, offset: UInt32)] = []
  /// Discontinuities between the listed segments.
  private(set) var discontinuities = 0
  /// Wall-clock time of the next segment, as a player derives it from the text so far.
  private var wall: WallTime?

  /// Number of segments after which all tags are repeated, so that a playlist can begin there.
  static let startInterval = 64
  /// At most this many missing segments are listed. A longer outage of the disk is the limit of rewinding.
  static let maximumMissing = 20_000

  init(_ rendition: Rendition, _ numbering: Numbering) {
    self.rendition = rendition
    self.numbering = numbering
  }

  mutating func extend(_ index: RecordingIndex) {
    if revision != index.revision {
      self = RecordedMediaPlaylist(rendition, numbering)
      revision = index.revision
    }
    while count < index.completeCount {
      if numbering == .ofRecording || index.isWhole(count) {
        append(index.segments[count], index)
        listed = (listed?.lowerBound ?? count)...count
        lastNumber = number(of: index.segments[count], at: count)
      }
      count += 1
    }
  }

  /// Bytes of the text before the segment of that number. Another file contains that segment and the following ones.
  func length(before number: Int) -> Int {
    let next = places.lastIndex { Int($0.number) < number }.map { $0 + 1 } ?? 0
    return next < places.count ? Int(places[next].offset) : text.readableBytes
  }

  func number(of segment: RecordingIndex.Segment, at index: Int) -> Int {
    numbering == .ofRecording ? index + 1 : Int(segment.number)
  }

  private mutating func append(_ segment: RecordingIndex.Segment, _ index: RecordingIndex) {
    let number = number(of: segment, at: count)
    let follows = listed.map { $0.upperBound + 1 == count } ?? true
    if numbering == .ofEpoch, let last = listed?.upperBound { appendMissing(between: last, segment, index) }
    note(number)
    if listCount % Self.startInterval == 0 {
      lines.startOver()
      wall = nil
      starts.append(
        Start(
          number: number, time: index.start(of: segment), offset: text.readableBytes,
          discontinuities: discontinuities))
    }
    listCount += 1
    let duration = index.duration(of: segment)
    // The joint before the first segment is written where the files are joined.
    let isJoined = numbering == .ofEpoch && listed == nil
    let breaks =
      !isJoined
      && (segment.flags.contains(.followsDiscontinuity) || !follows && numbering == .ofEpoch
        || changesDefaults(index, segment))
    if breaks { discontinuities += 1 }
    // Players continue from the last wall-clock time they received. An error of less than a millisecond is not corrected.
    let date = date(index, segment)
    let isToldAlready = wall.map { !breaks && ($0 &- date).magnitude < 1_000_000 } ?? false
    let shown = shown(index, duration)
    lines.writeHead(
      followsDiscontinuity: breaks, initVersion: shown == nil ? nil : initVersion(index, segment),
      wallStart: isToldAlready ? nil : date, &text)
    wall = (isToldAlready ? wall ?? .zero : date) &+ (shown ?? duration).nanoseconds
    HLSSegmentLines.write(name(index, number), duration: shown ?? duration, isGap: shown == nil, &text)
    hasGaps = hasGaps || shown == nil
    target = max(target, Int(duration.rescaled(to: 1)))
    isIndependent = isIndependent && segment.flags.standAlone
  }

  /// The version of the segment's init segment. In an epoch, a track that stays the same keeps that with which it came.
  private func initVersion(_ index: RecordingIndex, _ segment: RecordingIndex.Segment) -> Int? {
    index.version(of: segment).map { numbering == .ofEpoch ? $0.number(of: rendition) : $0.number }
  }

  /// The interleaved layout has other tracks than in the segment before: as `LiveWindow.breaks(_:before:)`.
  private func changesDefaults(_ index: RecordingIndex, _ segment: RecordingIndex.Segment) -> Bool {
    guard rendition.kind == nil, let last = listed?.upperBound, index.segments[last].version != segment.version else {
      return false
    }
    return index.version(of: index.segments[last])?.tracks.defaults != index.version(of: segment)?.tracks.defaults
  }

  /// Wall-clock time of the rendition's first sample in the newest segment.
  private func date(_ index: RecordingIndex, _ segment: RecordingIndex.Segment) -> WallTime {
    guard let (track, span) = index.span(rendition, at: count) else { return segment.wallStart }
    let start = MediaTime(ticks: span.start, timescale: track.timescale)
    return segment.wallStart &+ (start - index.start(of: segment)).nanoseconds
  }

  /// Duration of the rendition's samples; nil if there are none.
  private func shown(_ index: RecordingIndex, _ duration: MediaTime) -> MediaTime? {
    guard rendition.kind != nil else { return duration }
    return index.span(rendition, at: count).map {
      MediaTime(ticks: Int64($0.span.duration), timescale: $0.track.timescale)
    }
  }

  /// Names segments as the live stream does, for the same reasons.
  private func name(_ index: RecordingIndex, _ number: Int) -> SegmentName {
    guard let span = index.span(rendition, at: count)?.span,
      let version = initVersion(index, index.segments[count])
    else { return .number(number) }
    return .time(span.start, initVersion: version)
  }

  /// Segments that the disk did not take keep their numbers.
  private mutating func appendMissing(between last: Int, _ segment: RecordingIndex.Segment, _ index: RecordingIndex) {
    let before = index.segments[last]
    let numbers = Int(before.number) + 1..<max(Int(before.number) + 1, Int(segment.number))
    guard !numbers.isEmpty else { return }
    let end = index.start(of: before) + index.duration(of: before)
    // After a discontinuity the media time continues, so the wall clock shows how long the interruption was.
    let hole =
      segment.flags.contains(.followsDiscontinuity)
      ? MediaTime(nanoseconds: segment.wallStart &- (before.wallStart &+ index.duration(of: before).nanoseconds))
      : index.start(of: segment) - end
    for number in numbers.prefix(Self.maximumMissing) { note(number) }
    Self.writeMissing(numbers, lasting: hole, &text)
    target = max(target, Int(Self.duration(of: numbers, lasting: hole).rescaled(to: 1)))
    hasGaps = true
  }

  private mutating func note(_ number: Int) {
    places.append((UInt32(clamping: number), UInt32(clamping: text.readableBytes)))
  }

  /// Writes missing segments, all with the same duration. `breaks` of them follow a discontinuity.
  static func writeMissing(
    _ numbers: Range<Int>, lasting hole: MediaTime, breaks: Int = 0, _ text: inout ByteBuffer
  ) {
    let each = duration(of: numbers, lasting: hole)
    for (index, number) in numbers.prefix(maximumMissing).enumerated() {
      if index < breaks { text.writeStaticString("#EXT-X-DISCONTINUITY\n") }
      HLSSegmentLines.write(.number(number), duration: each, isGap: true, &text)
    }
  }

  private static func duration(of numbers: Range<Int>, lasting hole: MediaTime) -> MediaTime {
    MediaTime(nanoseconds: max(1_000_000, hole.nanoseconds / Int64(max(1, numbers.count))))
  }
}

/// The tags before the segments of a playlist that begins at the start of the recording or of the rewindable range (RFC 8216bis
/// §4.4.3).
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
