package import FMP4
internal import NIOCore
package import Streams

/// Byte positions of a recording's segments, and the data for its playlists: 80 bytes for a segment of video and audio. Built
/// while the recording is written, or from its file. A value; it holds no media and no headers.
package struct RecordingIndex: Sendable {
  /// The parameters of consecutive segments.
  package struct Version: Sendable {
    /// As in the epoch that was recorded. A file does not tell which of its tracks go on with an earlier version.
    var initSegment: InitSegment
    /// Position of its `moov`, or of the `free` box that contains one.
    package var offset: UInt64
    /// Its first segment and that segment's first span: versions may differ in their number of tracks.
    var firstSegment = 0
    var firstSpan = 0

    package var number: Int { initSegment.version }
    package var tracks: [TrackDescription] { initSegment.tracks }

    /// The version with which the rendition's tracks came, as `LiveWindow.initVersion(_:in:)`.
    package func number(of rendition: Rendition) -> Int {
      guard rendition.kind != nil else { return initSegment.defaultsVersion }
      return rendition.track(in: tracks).map { initSegment.version(of: $0.id) } ?? number
    }
  }

  /// Times are in ticks of the leading track of its version. Offsets are bytes of the fragmented file.
  package struct Segment: Sendable, Hashable {
    /// Start of its first fragment; the `styp` before it is not in the file.
    package var offset: UInt64
    /// Earliest presentation time of the leading track.
    var start: Int64
    /// Wall-clock time of `start`.
    package var wallStart: WallTime
    var duration: UInt32
    package var length: UInt32
    /// Media sequence number in the epoch that was recorded.
    package var number: UInt32
    /// Bytes of its entry in an I-frame playlist; 0 if it does not start with a key frame.
    package var keyFrameLength: UInt32
    /// Index into `versions`.
    package var version: UInt16
    package var fragmentCount: UInt16
    package var flags: Flags
  }

  package struct Flags: OptionSet, Sendable, Hashable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) {
      self.rawValue = rawValue
    }
    package static let followsDiscontinuity = Flags(rawValue: 1)
    package static let isIndependent = Flags(rawValue: 2)
    /// As `LiveSegment.opensGroup`.
    package static let opensGroup = Flags(rawValue: 4)

    /// As `LiveSegment.standsAlone`.
    package var standAlone: Bool { contains(.isIndependent) && !contains(.opensGroup) }
  }

  /// The part of one track in a segment, in ticks of that track.
  package struct Span: Sendable, Hashable {
    /// Earliest presentation time.
    package var start: Int64
    /// 0 if the segment has nothing of the track.
    package var duration: UInt32
    package var mediaBytes: UInt32
  }

  package var versions: [Version] = []
  package var segments: [Segment] = []
  /// One for each track of each segment, in the order of the version's tracks.
  var spans: [Span] = []
  /// Clocks, each with the first segment for which it is valid.
  var anchors: [(segment: Int, anchor: WallClockAnchor)] = []
  /// Assumed start of a file without any wall-clock time.
  private var assumedStart: WallTime?
  /// EXT-X-TARGETDURATION of the recorded stream in seconds, which playlists keep; nil if it is not known.
  package var targetDuration: Int?
  /// Closed captions that playlists declare. Not part of the stored index: the metadata have them.
  package var captions = CaptionDeclarations()
  /// Number of discontinuities of the epoch so far, and of changes of its default tracks beside them, each with the first
  /// segment for which it is valid.
  private var breakCounts: [(segment: Int, count: Int, ofDefaults: Int)] = []
  /// For each segment written in this process: whether the file has all of it that viewers received.
  private var wholes: [Bool] = []
  /// Counts changes to segments that were there already.
  package private(set) var revision = 0
  /// The newest segment may still grow.
  private(set) var isGrowing = false
  private var breaksBeforeNext = false

  package init() {}

  /// Number of complete segments.
  package var completeCount: Int { segments.count - (isGrowing ? 1 : 0) }

  // MARK: Growing

  /// The following segments have these tracks; the first call begins the recording.
  package mutating func change(to initSegment: InitSegment, at offset: UInt64) {
    if initSegment.continues { isGrowing = false } else { breakTimeline() }
    guard versions.count < Int(UInt16.max) else { return }
    versions.append(
      Version(initSegment: initSegment, offset: offset, firstSegment: segments.count, firstSpan: spans.count))
  }

  /// Where the spans of a segment begin.
  private static func firstSpan(of segment: Int, _ version: Version) -> Int {
    version.firstSpan + (segment - version.firstSegment) * version.tracks.count
  }

  /// The next segment does not continue the one before.
  package mutating func breakTimeline() {
    isGrowing = false
    breaksBeforeNext = !segments.isEmpty
  }

  /// Nothing follows.
  package mutating func finish() { isGrowing = false }

  /// Sets the start of a file without any wall-clock time.
  package mutating func assume(start wall: WallTime) {
    guard !hasClock else { return }
    assumedStart = wall
    let clock = WallClockAnchor(mediaTime: origin, wallTime: wall)
    for index in segments.indices { segments[index].wallStart = clock.wallTime(at: start(of: segments[index])) }
  }

  /// Segment `number` of the epoch is complete with that many fragments. It is whole if the file has all of them.
  package mutating func complete(number: Int, fragmentCount: Int) {
    guard let newest = segments.indices.last, Int(segments[newest].number) == number,
      segments[newest].fragmentCount == UInt16(truncatingIfNeeded: fragmentCount), wholes.indices.contains(newest)
    else { return }
    wholes[newest] = true
    isGrowing = false
  }

  /// Corrects the wall-clock times of all segments so far. Allowed only before any of them was published. Their `prft` boxes keep
  /// the old times.
  package mutating func redate(by anchor: WallClockAnchor) {
    for index in segments.indices { segments[index].wallStart = anchor.wallTime(at: start(of: segments[index])) }
    revision += 1
  }

  /// The file was cut at that length.
  package mutating func cut(at length: UInt64) {
    isGrowing = false
    revision += 1
    for (index, segment) in segments.enumerated() where segment.offset &+ UInt64(segment.length) > length {
      if wholes.indices.contains(index) { wholes[index] = false }
    }
  }

  /// Adds a fragment at `range` of the file, in segment `number` of its epoch. `breaksBefore` counts the discontinuities of the
  /// epoch before it, `changesOfDefaultsBefore` the other places at which its default tracks changed.
  package mutating func add(
    _ fragment: Fragment, number: Int, range: Range<UInt64>, anchor: WallClockAnchor?, breaksBefore: Int = 0,
    changesOfDefaultsBefore: Int = 0
  ) {
    guard let version = versions.last else { return }
    let isNext = segments.last.map { Int($0.number) != number } ?? true
    if fragment.startsSegment || !isGrowing || isNext {
      let counts = (breaksBefore, changesOfDefaultsBefore)
      if breakCounts.last.map({ ($0.count, $0.ofDefaults) != counts }) ?? true {
        breakCounts.append((segments.count, counts.0, counts.1))
      }
      open(fragment, number, range, anchor, version)
    }
    guard let newest = segments.indices.last else { return }
    // From the first frame shown to the start of what follows.
    let timescale = version.tracks.leader?.timescale ?? fragment.start.timescale
    let length = fragment.end.rescaled(to: timescale) &- segments[newest].start
    segments[newest].duration = max(segments[newest].duration, UInt32(clamping: length))
    segments[newest].length = UInt32(clamping: range.upperBound &- segments[newest].offset)
    segments[newest].fragmentCount &+= 1
    for run in fragment.runs {
      guard let index = version.tracks.firstIndex(where: { $0.id == run.track }) else { continue }
      let leads = run.track == fragment.leader
      add(run, to: Self.firstSpan(of: newest, version) + index, end: leads ? segments[newest] : nil)
    }
  }

  private mutating func open(
    _ fragment: Fragment, _ number: Int, _ range: Range<UInt64>, _ anchor: WallClockAnchor?, _ version: Version
  ) {
    let timescale = version.tracks.leader?.timescale ?? fragment.start.timescale
    var flags: Flags = breaksBeforeNext ? [.followsDiscontinuity] : []
    // Something is missing between this segment and the one before.
    if let last = segments.last, number > 0, Int(last.number) + 1 != number { flags.insert(.followsDiscontinuity) }
    if fragment.isIndependent { flags.insert(.isIndependent) }
    if fragment.opensGroup { flags.insert(.opensGroup) }
    if let anchor, anchors.last?.anchor != anchor { anchors.append((segments.count, anchor)) }
    let start = fragment.start.rescaled(to: timescale)
    let before = segments.last.map { $0.wallStart &+ duration(of: $0).nanoseconds } ?? .zero
    segments.append(
      Segment(
        offset: range.lowerBound, start: start,
        wallStart: anchor?.wallTime(at: fragment.start) ?? before, duration: 0, length: 0,
        number: UInt32(clamping: number), keyFrameLength: Self.keyFrameLength(fragment, version, anchor),
        version: UInt16(clamping: versions.count - 1), fragmentCount: 0, flags: flags))
    spans += Array(repeating: Span(start: 0, duration: 0, mediaBytes: 0), count: version.tracks.count)
    wholes.append(false)
    isGrowing = true
    breaksBeforeNext = false
  }

  private mutating func add(_ run: TrackRun, to index: Int, end segment: Segment?) {
    guard spans.indices.contains(index) else { return }
    let start = run.earliestPresentationTime
    if spans[index].mediaBytes == 0 { spans[index].start = start }
    spans[index].start = min(spans[index].start, start)
    spans[index].mediaBytes &+= UInt32(clamping: run.byteCount)
    spans[index].duration =
      segment.map { max(1, $0.duration) } ?? spans[index].duration &+ UInt32(clamping: run.duration)
  }

  private static func keyFrameLength(
    _ fragment: Fragment, _ version: Version, _ anchor: WallClockAnchor?
  ) -> UInt32 {
    guard fragment.isIndependent, let track = version.tracks.first(.video),
      let size = fragment.run(of: track.id)?.samples.first?.size,
      let head = FragmentBoxes.singleHead(of: fragment, track: track.id, clock: anchor)
    else { return 0 }
    return UInt32(clamping: FragmentBoxes.singleSegmentType.readableBytes + head.readableBytes + Int(size))
  }
}

// MARK: Lookup

extension RecordingIndex {
  package func version(of segment: Segment) -> Version? {
    versions.indices.contains(Int(segment.version)) ? versions[Int(segment.version)] : nil
  }

  private func timescale(of segment: Segment) -> UInt32 {
    version(of: segment)?.tracks.leader?.timescale ?? 1000
  }

  package func start(of segment: Segment) -> MediaTime {
    MediaTime(ticks: segment.start, timescale: timescale(of: segment))
  }

  package func duration(of segment: Segment) -> MediaTime {
    MediaTime(ticks: Int64(segment.duration), timescale: timescale(of: segment))
  }

  /// The tracks that a segment has media of, each with its span.
  package func spans(at index: Int) -> [(track: TrackDescription, span: Span)] {
    guard segments.indices.contains(index), let version = version(of: segments[index]) else { return [] }
    let first = Self.firstSpan(of: index, version)
    return zip(version.tracks, spans.dropFirst(max(0, first))).filter { $1.mediaBytes > 0 }.map { ($0, $1) }
  }

  /// The track shown by a rendition in a segment, with its span; nil if the segment has nothing of it.
  package func span(_ rendition: Rendition, at index: Int) -> (track: TrackDescription, span: Span)? {
    guard segments.indices.contains(index),
      let shown = (version(of: segments[index])?.tracks).flatMap(rendition.track)
    else { return nil }
    return spans(at: index).first { $0.track.id == shown.id }
  }

  /// Bytes of a segment without the media of tracks that are not shown by default.
  package func shownLength(at index: Int) -> Int {
    let shown = version(of: segments[index])?.tracks.defaults.map(\.id) ?? []
    return spans(at: index).reduce(Int(segments[index].length)) {
      $0 - (shown.contains($1.track.id) ? 0 : Int($1.span.mediaBytes))
    }
  }

  /// The segment with that number in its epoch.
  package func index(ofNumber number: Int) -> Int? {
    let at = partition { Int($0.number) >= number }
    return at < segments.count && Int(segments[at].number) == number ? at : nil
  }

  /// The samples of a track in a segment begin fewer than this many segments away from those of the leading track.
  private static let trackSpread = 8

  /// The segment with which a rendition's samples begin at a time, in ticks of its track, for an init segment's version.
  package func index(ofTime time: Int64, _ rendition: Rendition, initVersion: Int) -> Int? {
    // A track that stays the same keeps the version with which it came, also in files that begin with a later one.
    let asked =
      versions.last { $0.number == initVersion } ?? versions.first.flatMap { $0.number > initVersion ? $0 : nil }
    guard let track = (asked?.tracks).flatMap(rendition.track) else { return nil }
    let nearest = index(at: MediaTime(ticks: time, timescale: track.timescale)) ?? 0
    return (nearest - Self.trackSpread...nearest + Self.trackSpread).last { at in
      guard segments.indices.contains(at), let own = version(of: segments[at]), own.number >= initVersion,
        let span = span(rendition, at: at)
      else { return false }
      return span.span.start == time && span.track == track
    }
  }

  /// The last segment that starts at a time or before it; nil before the first.
  package func index(at time: MediaTime) -> Int? {
    let after = partition { start(of: $0) > time }
    return after > 0 ? after - 1 : nil
  }

  /// The same by wall-clock time.
  package func index(atWall time: WallTime) -> Int? {
    let after = partition { $0.wallStart > time }
    return after > 0 ? after - 1 : nil
  }

  /// The first segment for which the condition is true. The condition must be true for all later segments as well.
  private func partition(_ isBehind: (Segment) -> Bool) -> Int {
    var (low, high) = (0, segments.count)
    while low < high {
      let middle = (low + high) / 2
      if isBehind(segments[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }

  /// Whether the file has everything that viewers of the live stream received of a segment.
  package func isWhole(_ index: Int) -> Bool { wholes.indices.contains(index) && wholes[index] }

  /// Number of discontinuities of the epoch before a segment.
  package func breaks(before index: Int) -> Int { breakCounts.last { $0.segment <= index }?.count ?? 0 }

  /// Number of places before a segment at which the default tracks changed without one.
  package func changesOfDefaults(before index: Int) -> Int { breakCounts.last { $0.segment <= index }?.ofDefaults ?? 0 }

  /// The wall-clock time is known.
  package var hasClock: Bool { !anchors.isEmpty || assumedStart != nil }

  /// The clock of a segment's `prft`.
  package func anchor(at index: Int) -> WallClockAnchor? { anchors.last { $0.segment <= index }?.anchor }

  /// Start of the presentation, by the timeline of the finished movie.
  package var origin: MediaTime {
    guard let first = segments.first else { return .zero }
    let start = start(of: first)
    let earliest = spans(at: 0).map { MediaTime(ticks: $1.start, timescale: $0.timescale) }.min() ?? start
    return earliest < start - MovieTimeline.trimmedLead ? earliest : start
  }

  /// End of the presentation so far.
  package var end: MediaTime { segments.last.map { start(of: $0) + duration(of: $0) } ?? .zero }
}
