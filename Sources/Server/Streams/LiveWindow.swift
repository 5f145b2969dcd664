internal import FMP4
internal import Storage

/// The segments of one epoch that are in memory: a bounded log. Playlists, manifests and byte ranges are functions
/// of a copy of it; copying costs a reference.
///
/// The newer half is listed in playlists. The older half stays downloadable for players that still follow an older
/// playlist: a segment outlives its listing by its own length and that of the longest playlist it was in
/// (RFC 8216bis §6.2.2).
struct LiveWindow: Sendable {
  /// How much media is kept in memory.
  let length: MediaTime
  /// How many segments are kept, however short they are: breaks of the timeline make segments, too.
  var segmentLimit = Int.max
  /// All segments in memory, oldest first; the last may be growing.
  private(set) var segments = SegmentLog()
  private(set) var inits: [Int: InitSegment] = [:]
  private(set) var periods: [Period] = []
  /// EXT-X-TARGETDURATION, in seconds; nil until it is decided, and never changed afterwards.
  private(set) var targetDuration: Int?
  /// PART-TARGET: no part is longer. Nil until the first tracks are known, and never changed afterwards.
  private(set) var partTarget: MediaTime?
  private(set) var isEnded = false
  /// Nobody publishes: what comes next does not continue what there is.
  private(set) var isInterrupted = false
  /// Discontinuities before the oldest segment in memory.
  private var forgottenDiscontinuities = 0
  private(set) var nextSequenceNumber = 1
  /// The ordinal of the next Period where there is none yet.
  private var firstPeriod = 0
  /// The first number of this process; above 1 where another process had those before.
  private(set) var firstSequenceNumber = 1
  /// Wall-clock time at which one of the last segments starts that another process listed, in nanoseconds since 1970; nil
  /// where none is known.
  private(set) var lostStart: Int64?
  /// Versions of init segments up to this one were another process's.
  private(set) var lastLostInit = 0
  /// Every complete segment so far can be decoded without another.
  private(set) var keepsIndependence = true
  /// Bits a second of the segment that needed most, and what all of them held, for BANDWIDTH.
  private(set) var bandwidth = Bandwidth()
  /// The length of the longest segment so far of any track, as it is listed.
  private(set) var longestSegment = MediaTime.zero
  /// Rises with each change that a playlist can show.
  private(set) var version = 0
  /// Bytes that complete segments keep in memory, and how long they are, in milliseconds.
  private var completeBytes = 0
  private var completeMilliseconds: Int64 = 0

  /// A stretch of segments on one clock, without a discontinuity inside and without one that came to something else than
  /// manifests had announced: a DASH Period.
  struct Period: Sendable, Hashable {
    /// Counts from 0 within the epoch.
    let ordinal: Int
    /// Media time at which it starts.
    let mediaStart: MediaTime
    /// Wall-clock time of that, in nanoseconds since 1970.
    fileprivate(set) var wallStart: Int64
    let initVersion: Int
    let firstSequenceNumber: Int
    /// The ordinal of the Period whose media and parameters go on in this one.
    let continued: Int?
  }

  /// Whether playlists may promise that every segment starts with a key frame: only a measured target duration lets
  /// every group of pictures through.
  private let promisesIndependence: Bool

  init(length: MediaTime, promisesIndependence: Bool = true) {
    self.length = length
    self.promisesIndependence = promisesIndependence
  }

  /// The window of an epoch that goes on in this process. It has no segment, and those to come have new numbers.
  init(length: MediaTime, promisesIndependence: Bool, resuming record: EpochRecord) {
    self.init(length: length, promisesIndependence: promisesIndependence)
    nextSequenceNumber = record.nextSequenceNumber
    firstSequenceNumber = record.nextSequenceNumber
    lastLostInit = record.initVersion
    lostStart = record.listedFrom > 0 ? record.listedFrom : nil
    firstPeriod = record.nextPeriod
    forgottenDiscontinuities = record.breaks
    targetDuration = record.targetDuration
    partTarget = record.partTarget
  }

  /// A recording as renderers see it: all of its segments, which are complete, each with its number. `isEnded`: none
  /// follows.
  init(
    recorded segments: [LiveSegment], inits: [Int: InitSegment], targetDuration: Int, bandwidth: Bandwidth,
    isEnded: Bool
  ) {
    self.init(length: MediaTime(milliseconds: Int64(Int32.max) * 1000))
    self.segments = SegmentLog(segments)
    self.inits = inits
    self.targetDuration = targetDuration
    self.bandwidth = bandwidth
    self.isEnded = isEnded
    keepsIndependence = segments.allSatisfy(\.standsAlone)
    nextSequenceNumber = (segments.last?.sequenceNumber ?? 0) + 1
    for segment in segments { noteLength(of: segment) }
    for segment in segments where beginsPeriod(segment) {
      openPeriod(with: segment, continuing: segment.followsDiscontinuity ? nil : periods.last?.ordinal)
    }
  }

  /// Another process had segments before the first of this.
  var isResumed: Bool { firstSequenceNumber > 1 }

  /// The ordinal of the Period that is opened next.
  var nextPeriod: Int { periods.last.map { $0.ordinal + 1 } ?? firstPeriod }

  /// Some segment that is not in memory starts without a key frame.
  mutating func breakIndependence() { keepsIndependence = false }

  /// Nanoseconds that a Period's times of day may be wrong before another one tells them anew. Players see media so much
  /// later or sooner than announced.
  private static let clockTolerance: UInt64 = 100_000_000

  private func beginsPeriod(_ segment: LiveSegment) -> Bool {
    guard let period = periods.last, !segment.followsDiscontinuity else { return true }
    let expected = period.wallStart &+ (segment.start - period.mediaStart).nanoseconds
    return (segment.wallStart &- expected).magnitude >= Self.clockTolerance
  }

  private mutating func openPeriod(with segment: LiveSegment, continuing last: Int? = nil) {
    periods.append(
      Period(
        ordinal: nextPeriod, mediaStart: segment.start, wallStart: segment.wallStart,
        initVersion: segment.initVersion, firstSequenceNumber: segment.sequenceNumber, continued: last))
  }

  /// Tells all times of day anew. Only before anybody was told of them.
  mutating func redate(by anchor: WallClockAnchor) {
    for index in segments.indices { segments[index].wallStart = anchor.wallNanoseconds(at: segments[index].start) }
    for index in periods.indices { periods[index].wallStart = anchor.wallNanoseconds(at: periods[index].mediaStart) }
    version += 1
  }

  /// A segment began without a key frame.
  var isCutWithoutKeyFrame: Bool { !keepsIndependence || segments.last?.isIndependent == false }

  /// EXT-X-INDEPENDENT-SEGMENTS.
  var isIndependent: Bool { promisesIndependence && keepsIndependence }

  // MARK: What playlists show

  /// The complete segments that playlists list, oldest first.
  var listed: Slice<SegmentLog> {
    let complete = segments.last?.isComplete == false ? segments.dropLast() : segments[...]
    var first = complete.endIndex
    var total = MediaTime.zero
    let limit = listedLength
    while first > complete.startIndex {
      let longer = total + complete[first - 1].duration
      if longer > limit, first < complete.endIndex { break }
      total = longer
      first -= 1
    }
    // What another process listed is accounted for until this one's media fill the list: by it players find their place.
    if first < complete.endIndex, let firstMediaNumber, complete[first].sequenceNumber <= firstMediaNumber {
      return complete
    }
    // Any other gap leads on from what is listed before it.
    while first < complete.endIndex, complete[first].isOutage { first += 1 }
    return complete[first...]
  }

  /// The media sequence number of this process's first segment with media; nil once that is forgotten.
  private var firstMediaNumber: Int? {
    periods.first.flatMap { $0.ordinal == firstPeriod ? $0.firstSequenceNumber : nil }
  }

  /// Playlists list something that can be played; else only gaps, or nothing.
  var listsMedia: Bool {
    // The newest complete segment is listed.
    segments.suffix(2).last(where: \.isComplete)?.isOutage == false || listed.contains { !$0.isOutage }
  }

  /// Who asks for parts can have a playlist: the target duration is decided and a part is there.
  var hasBegun: Bool { targetDuration != nil && partTarget != nil && !segments.isEmpty }

  /// Everybody can have a playlist: a segment is complete as well. Players that know no parts take a playlist without a
  /// segment for a broken one (libavformat, GStreamer).
  var isReleased: Bool { targetDuration != nil && (listsMedia || isEnded) }

  /// How much media playlists list: what leaves room for segments to outlive their listing, and never less than
  /// three target durations.
  var listedLength: MediaTime {
    let target = MediaTime(milliseconds: Int64(targetDuration ?? 2) * 1000)
    let half = MediaTime(milliseconds: max(0, (length - target).rescaled(to: 1000) / 2))
    return max(half, minimumListedLength)
  }

  private var minimumListedLength: MediaTime {
    // Segments may be half a second longer than the target, which is a rounded figure.
    MediaTime(milliseconds: 3 * (Int64(targetDuration ?? 2) * 1000 + 500))
  }

  /// The media sequence number that playlists begin with (EXT-X-MEDIA-SEQUENCE): before the first segment is complete, that
  /// of the one in the making, whose parts are listed.
  var firstListedNumber: Int { listed.first?.sequenceNumber ?? segments.last?.sequenceNumber ?? nextSequenceNumber }

  /// Discontinuities before the first listed segment (EXT-X-DISCONTINUITY-SEQUENCE).
  var discontinuitySequence: Int {
    let firstListed = firstListedNumber
    return segments.reduce(forgottenDiscontinuities) {
      $0 + ($1.followsDiscontinuity && $1.sequenceNumber < firstListed ? 1 : 0)
    }
  }

  func segment(_ sequenceNumber: Int) -> LiveSegment? {
    guard let first = segments.first?.sequenceNumber, sequenceNumber >= first else { return nil }
    let index = sequenceNumber - first
    return index < segments.count ? segments[index] : nil
  }

  /// How a rendition shows a segment; nil where the stream had nothing for it then.
  func layout(_ rendition: Rendition, of segment: LiveSegment) -> SegmentLayout? {
    guard let kind = rendition.kind else { return .interleaved }
    return inits[segment.initVersion]?.tracks.first(kind).map { .track($0) }
  }

  var residentBytes: Int {
    guard let newest = segments.last, !newest.isComplete else { return completeBytes }
    return completeBytes + newest.residentBytes
  }

  /// The init segment that the newest fragments belong to.
  var currentInit: InitSegment? { inits[inits.keys.max() ?? 0] }

  // MARK: How it grows

  mutating func setTargetDuration(_ seconds: Int) {
    guard targetDuration == nil else { return }
    targetDuration = max(1, seconds)
    version += 1
  }

  mutating func setPartTarget(_ target: MediaTime) {
    if partTarget == nil { partTarget = target }
  }

  /// Its parts have another bound than those of the window that it was made like.
  mutating func forgetPartTarget() { partTarget = nil }

  mutating func add(_ initSegment: InitSegment) {
    inits[initSegment.version] = initSegment
  }

  /// Opens the next segment. `wallStart` in nanoseconds since 1970.
  mutating func open(
    _ fragment: Fragment, initVersion: Int, followsDiscontinuity: Bool, wallStart: Int64, memory: SegmentMemory
  ) {
    var segment = LiveSegment(
      sequenceNumber: nextSequenceNumber, initVersion: initVersion, followsDiscontinuity: followsDiscontinuity,
      isIndependent: fragment.isIndependent, start: fragment.start, wallStart: wallStart, memory: memory,
      expectedDuration: fragment.expectedSegmentDuration, expectedFollowersEnd: fragment.expectedFollowersEnd,
      duration: MediaTime(ticks: 0, timescale: fragment.duration.timescale))
    segment.opensGroup = fragment.opensGroup
    let tracks = inits[initVersion]?.tracks ?? []
    if tracks.defaults.count < tracks.count { segment.defaults = tracks.defaults.map(\.id) }
    segment.changesInit = segments.last.map { $0.initVersion != initVersion } ?? false
    append(segment)
  }

  /// Opens a segment that is made already.
  mutating func append(_ segment: LiveSegment) {
    if beginsPeriod(segment) || segments.last?.brokeItsAnnouncement == true {
      openPeriod(with: segment, continuing: segment.followsDiscontinuity ? nil : periods.last?.ordinal)
    }
    nextSequenceNumber += 1
    segments.append(segment)
    isInterrupted = false
  }

  /// Appends time in which nobody published. `start` is the media time that goes on behind it, `wallStart` in nanoseconds
  /// since 1970, `memory` that of the segment behind it.
  mutating func addOutage(
    before start: MediaTime, wallStart: Int64, lasting duration: MediaTime, memory: SegmentMemory
  ) {
    var segment = LiveSegment(
      sequenceNumber: nextSequenceNumber, initVersion: currentInit?.version ?? 1, followsDiscontinuity: false,
      isIndependent: true, start: start, wallStart: wallStart, memory: SegmentMemory(recorded: 0, in: memory.file),
      expectedDuration: nil, expectedFollowersEnd: nil, duration: duration)
    segment.isOutage = true
    segment.isComplete = true
    nextSequenceNumber += 1
    segments.append(segment)
    completeMilliseconds += duration.rescaled(to: 1000)
    version += 1
    evict()
  }

  /// Nothing continues the newest segment.
  mutating func interrupt() {
    guard !isInterrupted, !segments.isEmpty else { return }
    isInterrupted = true
    version += 1
  }

  /// Changes the growing segment.
  mutating func withNewest<R>(_ body: (inout LiveSegment) throws(StorageError) -> R) throws(StorageError) -> R? {
    guard let index = segments.indices.last, !segments[index].isComplete else { return nil }
    version += 1
    defer { noteLength(of: segments[index]) }
    return try body(&segments[index])
  }

  private mutating func noteLength(of segment: LiveSegment) {
    for span in segment.spans {
      let length = segment.isComplete ? max(span.duration, span.listed.duration) : span.listed.duration
      longestSegment = max(longestSegment, MediaTime(ticks: length, timescale: span.timescale))
    }
  }

  /// Completes the growing segment and forgets what no longer fits. `length` is how long it is although some of it is
  /// missing; nil where it is as long as its media.
  mutating func completeNewest(lasting length: MediaTime? = nil) {
    guard let index = segments.indices.last, !segments[index].isComplete else { return }
    if let length { segments[index].lengthen(to: length) }
    segments[index].isComplete = true
    noteLength(of: segments[index])
    keepsIndependence = keepsIndependence && segments[index].standsAlone
    let picture = layout(.video, of: segments[index])?.trackID
    if !segments[index].fragments.isEmpty {
      bandwidth.add(
        segments[index], keyFrameLength: picture.flatMap { segments[index].keyFrameLength(of: $0) },
        fragmentCount: segments[index].fragments.count)
    }
    version += 1
    completeBytes += segments[index].residentBytes
    completeMilliseconds += segments[index].duration.rescaled(to: 1000)
    evict()
  }

  mutating func end() {
    isEnded = true
    version += 1
  }

  /// No more than this is kept, but for a segment.
  var longestKept: MediaTime {
    let target = MediaTime(milliseconds: Int64(targetDuration ?? 10) * 1000 + 500)
    return max(length, listedLength + listedLength + target)
  }

  private mutating func evict() {
    let keep = longestKept
    while segments.count > 1, MediaTime(milliseconds: completeMilliseconds) > keep || segments.count > segmentLimit {
      drop()
    }
  }

  /// Forgets the oldest segment to make room. False where that is the newest complete one.
  mutating func dropOldest() -> Bool {
    guard segments.dropFirst().first?.isComplete == true else { return false }
    drop()
    version += 1
    return true
  }

  /// Forgets all complete segments before that number, but the newest.
  mutating func dropSegments(before number: Int) {
    while let oldest = segments.first, oldest.sequenceNumber < number, dropOldest() {}
  }

  private mutating func drop() {
    let gone = segments[0]
    if gone.followsDiscontinuity { forgottenDiscontinuities += 1 }
    completeBytes -= gone.residentBytes
    completeMilliseconds -= gone.duration.rescaled(to: 1000)
    segments.removeFirst(1)
    guard let oldest = segments.first else { return }
    while periods.count > 1, periods[1].firstSequenceNumber <= oldest.sequenceNumber { periods.removeFirst() }
    inits = inits.filter { $0.key >= oldest.initVersion }
  }
}
