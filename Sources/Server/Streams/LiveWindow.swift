package import FMP4
internal import Storage

/// The segments of one epoch in memory: a bounded log. Playlists, manifests and byte ranges are functions of a copy; a copy
/// costs a reference.
///
/// Playlists list the newer half. The older half stays available for players with an older playlist. A segment stays
/// available after its listing for its own length plus that of the longest playlist that listed it (RFC 8216bis §6.2.2).
package struct LiveWindow: Sendable {
  /// The length of the media in memory.
  let length: MediaTime
  /// The most segments in memory, however short: breaks of the timeline make segments, too.
  var segmentLimit = Int.max
  /// All segments in memory, oldest first; the last may be growing.
  package private(set) var segments = SegmentLog()
  package private(set) var inits: [Int: InitSegment] = [:]
  package private(set) var periods: [Period] = []
  /// EXT-X-TARGETDURATION, in seconds. Nil until it is decided; never changes after that.
  package private(set) var targetDuration: Int?
  /// PART-TARGET: no part is longer. Nil until the first tracks are known; never changes after that.
  package private(set) var partTarget: MediaTime?
  /// The same for renditions of one track, if they came after the interleaved layout.
  private var partTargetOfTracks: MediaTime?
  package private(set) var isEnded = false
  /// The target duration was decided before the first media: the distance of key frames was known, or a target is configured.
  package private(set) var isForeseen = false
  /// The times of day of what it has are about to be set back, and no list has told them.
  var awaitsClock = false
  /// There is no publisher: the next segment does not continue the newest one.
  package private(set) var isInterrupted = false
  /// Discontinuities before the oldest segment in memory.
  private var forgottenDiscontinuities = 0
  /// Further ones of the interleaved layout.
  private var forgottenChangesOfDefaults = 0
  package private(set) var nextSequenceNumber = 1
  /// The ordinal of the first Period.
  private var firstPeriod = 0
  /// The first media sequence number of this process; above 1 when it resumed the epoch.
  package private(set) var firstSequenceNumber = 1
  /// The wall-clock start of one of the last segments that the previous process listed; nil when
  /// unknown.
  package private(set) var lostStart: WallTime?
  /// The last version of an init segment of the previous process.
  package private(set) var lastLostInit = 0
  /// Further videos of which a segment begins without a key frame, or elsewhere than the segment of the first video.
  private(set) var unaligned: Set<TrackID> = []
  /// Each segment so far can be decoded without another one, and so will the next.
  private(set) var keepsIndependence = true
  /// Bits per second, peak and average over all segments, for BANDWIDTH.
  package private(set) var bandwidth = Bandwidth()
  /// The listed length of the longest segment so far of any track.
  package private(set) var longestSegment = MediaTime.zero
  /// Closed captions that playlists declare.
  package private(set) var captions = CaptionDeclarations()
  /// Rises with each change that a playlist can show.
  package private(set) var version = 0
  /// The bytes of complete segments in memory, and their length in milliseconds.
  private var completeBytes = 0
  /// How media of the growing segment arrives. Stays empty in a rung and a recording.
  var arrival = MediaArrival()
  /// Those bytes of complete segments that came too slowly.
  private(set) var completeSlowBytes = 0
  private var completeMilliseconds: Int64 = 0

  /// Whether playlists may promise that every segment starts with a key frame. Only a measured target duration allows for
  /// every GOP.
  private var promisesIndependence: Bool

  init(length: MediaTime, promisesIndependence: Bool = true) {
    self.length = length
    self.promisesIndependence = promisesIndependence
  }

  /// The window of a resumed epoch. It has no segments; new ones get unused numbers.
  init(length: MediaTime, promisesIndependence: Bool, resuming record: EpochRecord) {
    self.init(length: length, promisesIndependence: promisesIndependence)
    nextSequenceNumber = record.nextSequenceNumber
    firstSequenceNumber = record.nextSequenceNumber
    lastLostInit = record.initVersion
    lostStart = record.listedFrom > .zero ? record.listedFrom : nil
    firstPeriod = record.nextPeriod
    forgottenDiscontinuities = record.breaks
    targetDuration = record.targetDuration
    partTarget = record.partTarget
  }

  /// A recording, for renderers: all of its segments, which are complete, with their numbers. `isEnded`: no segment follows.
  package init(
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
    for index in segments.indices { noteUnaligned(at: index) }
    for segment in segments where beginsPeriod(segment) {
      openPeriod(with: segment, continuing: segment.followsDiscontinuity ? nil : periods.last?.ordinal)
    }
  }

  /// The epoch was resumed: another process had segments before those of this one.
  package var isResumed: Bool { firstSequenceNumber > 1 }

  /// The epoch was resumed, and ended without media of this process: nothing of what playlists listed is here any more.
  package var endedUnresumed: Bool { isResumed && isEnded && segments.isEmpty && targetDuration != nil }

  /// The ordinal of the next Period.
  var nextPeriod: Int { periods.last.map { $0.ordinal + 1 } ?? firstPeriod }

  /// Records that a segment that is not in memory starts without a key frame, or that the next one will. Playlists never promise
  /// again that all do: tags of a list neither come nor go but for that (RFC 8216bis §6.2.1).
  package mutating func breakIndependence() {
    guard keepsIndependence else { return }
    keepsIndependence = false
    version += 1
  }

  /// Playlists never promise that segments begin with key frames: how far those are apart is not known.
  mutating func promiseNoIndependence() {
    guard promisesIndependence else { return }
    promisesIndependence = false
    version += 1
  }

  /// Nanoseconds. The times of day of a Period may be off by this much before a new Period corrects them. Players show media
  /// later or earlier than announced by that error.
  private static let clockTolerance: Int64 = 100_000_000
  /// The same for media that are older than announced. A Period that begins earlier would lie over the one before, and players would
  /// drop pictures. Those that are shown late are shown.
  private static let latenessTolerance = ListedClock.soon + clockTolerance

  private func beginsPeriod(_ segment: LiveSegment) -> Bool {
    guard let period = periods.last, !segment.followsDiscontinuity, segment.initVersion == period.initVersion else {
      return true
    }
    let expected = period.wallStart &+ (segment.start - period.mediaStart).nanoseconds
    let later = segment.wallStart &- expected
    return later >= Self.clockTolerance || later <= -Self.latenessTolerance
  }

  /// The most by which the timeline may begin before the first video frame is shown. Audio may begin earlier. B-frames delay the
  /// first frame.
  private static let longestLead = MediaTime(milliseconds: 1000)

  /// The first Period begins with the timeline, not with the first video frame. Shaka Player 5.2.7 starts at 0 and does not use
  /// audio from before its Period: it would wait for ever.
  private mutating func openPeriod(with segment: LiveSegment, continuing last: Int? = nil) {
    let lead = nextPeriod == 0 && segment.start <= Self.longestLead ? segment.start : .zero
    periods.append(
      Period(
        ordinal: nextPeriod, mediaStart: segment.start - lead, wallStart: segment.wallStart &- lead.nanoseconds,
        initVersion: segment.initVersion,
        changesTracks: last != nil && periods.last?.initVersion != segment.initVersion,
        firstSequenceNumber: segment.sequenceNumber, continued: last))
  }

  /// Changes all times of day. Call only before any were published.
  mutating func redate(by anchor: WallClockAnchor) {
    for index in segments.indices { segments[index].wallStart = anchor.wallTime(at: segments[index].start) }
    for index in periods.indices { periods[index].wallStart = anchor.wallTime(at: periods[index].mediaStart) }
    version += 1
  }

  /// A segment started without a key frame.
  var isCutWithoutKeyFrame: Bool { !keepsIndependence || segments.last?.isIndependent == false }

  /// EXT-X-INDEPENDENT-SEGMENTS.
  package var isIndependent: Bool { promisesIndependence && keepsIndependence }

  // MARK: What playlists show

  /// The complete segments in playlists, oldest first.
  package var listed: Slice<SegmentLog> {
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
    // Time that the previous process listed stays listed until new media fills the playlist: players find their place by it.
    if first < complete.endIndex, let firstMediaNumber, complete[first].sequenceNumber <= firstMediaNumber {
      return complete
    }
    // Any other gap must follow a listed segment.
    while first < complete.endIndex, complete[first].isOutage { first += 1 }
    return complete[first...]
  }

  /// The media sequence number of this process's first segment with media. Nil after that segment was dropped.
  private var firstMediaNumber: Int? {
    periods.first.flatMap { $0.ordinal == firstPeriod ? $0.firstSequenceNumber : nil }
  }

  /// Playlists list playable media; otherwise only gaps, or nothing.
  package var listsMedia: Bool {
    // The newest complete segment is listed.
    segments.suffix(2).last(where: \.isComplete)?.isOutage == false || listed.contains { !$0.isOutage }
  }

  /// Requests for parts can be served: the target duration is decided and a part exists, whose date holds.
  package var hasBegun: Bool { targetDuration != nil && partTarget != nil && !segments.isEmpty && !awaitsClock }

  /// Playlists that begin with parts (`?start=parts`) have something to list, and all others wait for a whole segment.
  package var listsPartsAlone: Bool { isForeseen && hasBegun && !listsMedia && !isEnded }

  /// What is rendered of it tells times of day that must hold. Not of the first fragment alone, which is one frame or two: whether it
  /// begins a burst is known with the next ones.
  var tellsDates: Bool {
    guard targetDuration != nil, !awaitsClock, let first = segments.first else { return false }
    return segments.count > 1 || first.isComplete || first.duration > CutPolicy.firstFragmentTarget + Self.frame
  }

  /// At 25 frames a second.
  private static let frame = MediaTime(milliseconds: 40)

  /// The first part of this process.
  package var firstPart: PartPosition { PartPosition(segment: firstSequenceNumber, part: 0) }

  /// All requests for playlists can be served: a segment is complete as well. Players without support for parts take a playlist
  /// without segments for a broken one (libavformat, GStreamer).
  package var isReleased: Bool { targetDuration != nil && (listsMedia || isEnded) }

  /// The length of the media in playlists. It leaves time for segments to stay available after their listing, and is at least
  /// three target durations.
  package var listedLength: MediaTime {
    let target = MediaTime(milliseconds: Int64(targetDuration ?? 2) * 1000)
    let half = MediaTime(milliseconds: max(0, (length - target).rescaled(to: 1000) / 2))
    return max(half, minimumListedLength)
  }

  private var minimumListedLength: MediaTime {
    // Segments may be half a second longer than the target, which is rounded.
    MediaTime(milliseconds: 3 * (Int64(targetDuration ?? 2) * 1000 + 500))
  }

  /// The first media sequence number of playlists (EXT-X-MEDIA-SEQUENCE). Before the first segment is complete, that of the
  /// growing one, whose parts are listed.
  package var firstListedNumber: Int {
    listed.first?.sequenceNumber ?? segments.last?.sequenceNumber ?? nextSequenceNumber
  }

  /// Discontinuities of a rendition before the first listed segment (EXT-X-DISCONTINUITY-SEQUENCE).
  package func discontinuitySequence(of rendition: Rendition) -> Int {
    let firstListed = firstListedNumber
    let forgotten = forgottenDiscontinuities + (rendition.kind == nil ? forgottenChangesOfDefaults : 0)
    return segments.reduce(forgotten) {
      $0 + (breaks(rendition, before: $1) && $1.sequenceNumber < firstListed ? 1 : 0)
    }
  }

  /// The same before the next segment, in the rendition with the most.
  var discontinuities: Int {
    segments.reduce(forgottenDiscontinuities + forgottenChangesOfDefaults) {
      $0 + (breaks(.interleaved, before: $1) ? 1 : 0)
    }
  }

  package func segment(_ sequenceNumber: Int) -> LiveSegment? {
    guard let first = segments.first?.sequenceNumber, sequenceNumber >= first else { return nil }
    let index = sequenceNumber - first
    return index < segments.count ? segments[index] : nil
  }

  /// The layout of a segment for a rendition. Nil when the stream had no media for it.
  package func layout(_ rendition: Rendition, of segment: LiveSegment) -> SegmentLayout? {
    guard rendition.kind != nil else { return .interleaved }
    return (inits[segment.initVersion]?.tracks).flatMap(rendition.track).map { .track($0) }
  }

  var residentBytes: Int {
    guard let newest = segments.last, !newest.isComplete else { return completeBytes }
    return completeBytes + newest.residentBytes
  }

  /// The init segment for the newest fragments.
  package var currentInit: InitSegment? { inits[inits.keys.max() ?? 0] }

  // MARK: Changes

  mutating func setTargetDuration(_ seconds: Int) {
    guard targetDuration == nil else { return }
    targetDuration = max(1, seconds)
    version += 1
  }

  /// Sets the target duration before the first media of a new epoch.
  mutating func foresee(targetDuration seconds: Int) {
    guard segments.isEmpty, !isResumed else { return }
    setTargetDuration(seconds)
    isForeseen = true
  }

  /// Sets which closed captions are declared. Call before media comes.
  mutating func declare(_ rule: CaptionDeclarations.Rule) { captions = CaptionDeclarations(rule) }

  /// Sets what a recording declares. Call before it is rendered.
  package mutating func declare(recorded declarations: CaptionDeclarations) { captions = declarations }

  /// Declares closed captions that were found in a track. False if they were declared before.
  mutating func note(_ services: CaptionServices, of track: TrackID) -> Bool {
    guard captions.note(services, of: track) else { return false }
    version += 1
    return true
  }

  mutating func setPartTarget(_ target: MediaTime) {
    if partTarget == nil { partTarget = target }
  }

  mutating func setPartTargetOfTracks(_ target: MediaTime) {
    partTargetOfTracks = target
    version += 1
  }

  /// PART-TARGET of a rendition in this window.
  package func partTarget(of rendition: Rendition) -> MediaTime? {
    rendition.kind == nil ? partTarget : partTargetOfTracks ?? partTarget
  }

  /// Removes PART-TARGET: the parts of this window have another bound than those of the window that it was copied from.
  mutating func forgetPartTarget() { partTarget = nil }

  mutating func add(_ initSegment: InitSegment) {
    inits[initSegment.version] = initSegment.following(currentInit)
  }

  /// Opens the next segment.
  mutating func open(
    _ fragment: Fragment, initVersion: Int, followsDiscontinuity: Bool, wallStart: WallTime, memory: SegmentMemory
  ) {
    var segment = LiveSegment(
      sequenceNumber: nextSequenceNumber, initVersion: initVersion, followsDiscontinuity: followsDiscontinuity,
      isIndependent: fragment.beginsIndependently, start: fragment.start, wallStart: wallStart, memory: memory,
      expectedDuration: fragment.expectedSegmentDuration, expectedFollowersEnd: fragment.expectedFollowersEnd,
      duration: MediaTime(ticks: 0, timescale: fragment.duration.timescale))
    segment.opensGroup = fragment.opensGroup
    let tracks = inits[initVersion]?.tracks ?? []
    if tracks.hasFurther { segment.defaults = tracks.defaults.map(\.id) }
    segment.furtherVideos = tracks.filter { $0.kind == .video && $0.id != fragment.leader }.map(\.id)
    segment.changesInit = segments.last.map { $0.initVersion != initVersion } ?? false
    segment.changesDefaults =
      segment.changesInit && !followsDiscontinuity && inits[initVersion]?.defaultsVersion == initVersion
    append(segment)
  }

  /// Opens a segment that was made elsewhere.
  mutating func append(_ segment: LiveSegment) {
    if beginsPeriod(segment) || segments.last?.brokeItsAnnouncement == true {
      openPeriod(with: segment, continuing: segment.followsDiscontinuity ? nil : periods.last?.ordinal)
    }
    // Its parts are listed while it grows.
    if !segment.standsAlone { breakIndependence() }
    nextSequenceNumber += 1
    segments.append(segment)
    isInterrupted = false
  }

  /// Appends an outage. `start` is the media time that continues after it, `memory`
  /// that of the segment after it.
  mutating func addOutage(
    before start: MediaTime, wallStart: WallTime, lasting duration: MediaTime, memory: SegmentMemory
  ) {
    var segment = LiveSegment(
      sequenceNumber: nextSequenceNumber, initVersion: currentInit?.version ?? 1, followsDiscontinuity: false,
      isIndependent: true, start: start, wallStart: wallStart, memory: SegmentMemory(recorded: 0, in: memory.file),
      expectedDuration: nil, expectedFollowersEnd: nil, duration: duration)
    segment.isOutage = true
    segment.isComplete = true
    segment.arrivedAt = arrival.newest
    nextSequenceNumber += 1
    segments.append(segment)
    completeMilliseconds += duration.rescaled(to: 1000)
    version += 1
    evict()
  }

  /// Marks the newest segment as not continued.
  mutating func interrupt() {
    guard !isInterrupted, !segments.isEmpty else { return }
    isInterrupted = true
    version += 1
  }

  /// Changes the growing segment.
  mutating func withNewest<R>(_ body: (inout LiveSegment) throws(StorageError) -> R) throws(StorageError) -> R? {
    guard let index = segments.indices.last, !segments[index].isComplete else { return nil }
    version += 1
    defer {
      noteLength(of: segments[index])
      noteUnaligned(at: index)
    }
    return try body(&segments[index])
  }

  private mutating func noteLength(of segment: LiveSegment) {
    for span in segment.spans {
      let length = segment.isComplete ? max(span.duration, span.listed.duration) : span.listed.duration
      longestSegment = max(longestSegment, MediaTime(ticks: length, timescale: span.timescale))
    }
  }

  /// Completes the growing segment and drops what no longer fits. `length` is its length when some media is missing; nil when
  /// it is as long as its media.
  mutating func completeNewest(lasting length: MediaTime? = nil) {
    guard let index = segments.indices.last, !segments[index].isComplete else { return }
    if let length { segments[index].lengthen(to: length) }
    segments[index].isComplete = true
    noteLength(of: segments[index])
    let video = layout(.video, of: segments[index])?.trackID
    if !segments[index].fragments.isEmpty {
      bandwidth.add(
        segments[index], keyFrameLength: video.flatMap { segments[index].keyFrameLength(of: $0) },
        fragmentCount: segments[index].fragments.count)
    }
    version += 1
    segments[index].arrivedAt = arrival.newest
    segments[index].slowBytes = arrival.slowBytes(of: segments[index].residentBytes)
    arrival.endSegment()
    completeBytes += segments[index].residentBytes
    completeSlowBytes += segments[index].slowBytes
    completeMilliseconds += segments[index].duration.rescaled(to: 1000)
    evict()
  }

  /// How far apart, in nanoseconds, key frames of two videos may be shown and count as one place: more than clocks in
  /// milliseconds round.
  private static let alignment: UInt64 = 5_000_000

  private mutating func noteUnaligned(at index: Int) {
    guard !segments[index].furtherVideos.isEmpty else { return }
    let (segment, before) = (segments[index], index > 0 ? segments[index - 1] : nil)
    for span in segment.spans where segment.furtherVideos.contains(span.track) && !unaligned.contains(span.track) {
      // A track that joins begins with any frame.
      if let before, !segment.followsDiscontinuity, before.span(of: span.track) == nil { continue }
      let distance = (MediaTime(ticks: span.start, timescale: span.timescale) - segment.start).nanoseconds.magnitude
      if !span.isIndependent || distance > Self.alignment { unaligned.insert(span.track) }
    }
  }

  mutating func end() {
    isEnded = true
    version += 1
  }

  /// The most media in memory, but at least one segment is kept.
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

  /// Drops the oldest segment to free memory. False when it is the newest complete one.
  mutating func dropOldest() -> Bool {
    guard segments.dropFirst().first?.isComplete == true else { return false }
    drop()
    version += 1
    return true
  }

  /// Drops all complete segments before this number, except for the newest.
  mutating func dropSegments(before number: Int) {
    while let oldest = segments.first, oldest.sequenceNumber < number, dropOldest() {}
  }

  private mutating func drop() {
    let gone = segments[0]
    if gone.followsDiscontinuity { forgottenDiscontinuities += 1 }
    if gone.changesDefaults { forgottenChangesOfDefaults += 1 }
    completeBytes -= gone.residentBytes
    completeSlowBytes -= gone.slowBytes
    completeMilliseconds -= gone.duration.rescaled(to: 1000)
    segments.removeFirst(1)
    guard let oldest = segments.first else { return }
    while periods.count > 1, periods[1].firstSequenceNumber <= oldest.sequenceNumber { periods.removeFirst() }
    inits = Self.needed(inits, from: oldest.initVersion)
  }
}
