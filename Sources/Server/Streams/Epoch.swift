internal import FMP4
internal import NIOCore
internal import Storage

/// One life of a stream's URLs: from its first publisher to its end. Reconnects and changes of parameters happen
/// within it; what a player was told stays true for as long as it lasts. A value: media events in, stored events out,
/// the bytes in its window.
struct Epoch: Sendable {
  /// Unique over restarts: the wall-clock millisecond of its birth, in base 36. One path segment.
  let id: String
  private(set) var window: LiveWindow
  private var segmenter: Segmenter
  private var splicer = Splicer()
  private let store: SegmentStore
  private let settings: StreamSettings
  /// The epoch began in another process.
  private let isResumed: Bool
  /// Where the current publication's media times lie on the wall clock.
  private(set) var anchor: WallClockAnchor?
  /// What they lie on from the next segment on: the publisher's clock has drifted.
  private var nextAnchor: WallClockAnchor?
  /// The current publication has not told its clock yet.
  private var awaitsClock = true
  /// Wall-clock time of media time 0, in nanoseconds since 1970 (DASH availabilityStartTime); fixed by the first
  /// publication.
  private(set) var availabilityStart: Int64?
  private(set) var longestGroup: MediaTime?
  /// Where the media ends on the epoch's timeline, counted in presentation time.
  private(set) var mediaEnd: MediaTime?
  private var breaksBeforeNextSegment = false
  /// Within so much media a new clock means that the first was wrong. Later it has drifted.
  private static let longestBeginning = MediaTime(milliseconds: 10_000)
  /// Nanoseconds by which times of day that players know may be wrong without being told anew.
  private static let worthPeriod: UInt64 = 20_000_000
  /// Somebody was told times of day.
  var isDated = false
  /// How often the timeline broke up to the beginning of the newest segment.
  private var breaks = 0
  private(set) var mediaBytes = 0
  var rungs: [TranscodedRendition] = []
  /// What manifests still list of the time before the last outage or restart.
  private var keptPeriods: [KeptPeriod] = []

  /// `store` is what the bytes are kept in, one of its own where none is given. `knownGroup` is how far apart the key frames
  /// of the name's last publisher were. `mayPromiseIndependence` is false
  /// for a name whose last epoch broke the promise that each segment starts with a key frame.
  init(
    id: String, settings: StreamSettings, store: SegmentStore? = nil, knownGroup: MediaTime? = nil,
    mayPromiseIndependence: Bool = true
  ) {
    let window = LiveWindow(
      length: settings.window,
      promisesIndependence: settings.targetDuration == .automatic && mayPromiseIndependence)
    self.init(id: id, settings: settings, store: store, window: window, resuming: nil)
    if case .seconds(let seconds) = settings.targetDuration {
      decideTarget(seconds: seconds)
    } else if let knownGroup {
      decideTarget(for: knownGroup)
    }
  }

  /// An epoch that another process began: its addresses go on, and what comes does not continue what there was.
  init(resuming record: EpochRecord, settings: StreamSettings, store: SegmentStore? = nil) {
    let window = LiveWindow(
      length: settings.window, promisesIndependence: record.promisesIndependence, resuming: record)
    self.init(id: record.epoch, settings: settings, store: store, window: window, resuming: record)
    segmenter.policy.wholeSecondLimit = record.targetDuration
    if let limit = record.partTarget { segmenter.policy.keep(partLimit: limit) }
    availabilityStart = record.availabilityStart
    longestGroup = record.longestGroup
    mediaEnd = MediaTime(milliseconds: record.mediaEnd)
    keptPeriods = record.periods
    breaks = record.breaks
    breaksBeforeNextSegment = true
  }

  /// All windows begin as `window` does.
  private init(
    id: String, settings: StreamSettings, store: SegmentStore?, window: LiveWindow, resuming record: EpochRecord?
  ) {
    self.id = id
    self.settings = settings
    var window = window
    window.segmentLimit = settings.segmentLimit
    self.window = window
    isResumed = record != nil
    let made = settings.ladder.map(TranscodedRendition.Kind.video) + (settings.audio.map { [.audio($0)] } ?? [])
    let store = store ?? SegmentStore(name: SegmentStore.ofStreams)
    self.store = store
    rungs = made.map { TranscodedRendition($0, window: window, store: store) }
    segmenter = Segmenter(
      policy: CutPolicy(
        partTarget: settings.partTarget, segmentTarget: settings.segmentTarget,
        fragmentsWaitForFollowers: settings.layout == .separate, startsEarly: true),
      lastInitVersion: record?.initVersion ?? 0)
  }

  /// What the next process has to know of it, but for the Periods; nil while players were told nothing that has to stay.
  var record: EpochRecord? {
    guard let target = window.targetDuration, let availabilityStart, let version = window.currentInit?.version else {
      return nil
    }
    let end = (mediaEnd.map { $0.converted(to: 1000) } ?? .zero).ticks &+ 1
    let newest = window.segments.last
    return EpochRecord(
      epoch: id, startedAt: availabilityStart, availabilityStart: availabilityStart, targetDuration: target,
      partTarget: window.partTarget, longestGroup: longestGroup, promisesIndependence: window.isIndependent,
      nextSequenceNumber: window.nextSequenceNumber, nextPeriod: window.nextPeriod, initVersion: version,
      breaks: breaks, mediaEnd: end, knownEnd: end,
      clockOffset: newest.map { $0.wallStart &- $0.start.nanoseconds } ?? 0, listedFrom: window.lastListedStart ?? 0)
  }

  /// What manifests of the next process are to list of this one's. Renders them.
  var periodsToKeep: [KeptPeriod] { settings.periodsToKeep(viewWithRungs, KeptPeriod.limit) }

  /// The newest init segment; nil before the tracks are known.
  var initSegment: InitSegment? { window.currentInit }

  /// What renderers and followers need of the source.
  var view: EpochView {
    EpochView(id: id, window: window, availabilityStart: availabilityStart ?? 0)
  }

  /// The same with the rungs.
  var viewWithRungs: EpochView {
    EpochView(
      id: id, window: window, availabilityStart: availabilityStart ?? 0, rungs: rungs, version: version,
      keptPeriods: keptPeriods, patience: settings.reconnectWindow, publicURL: settings.publicURL)
  }

  /// The next publication of this epoch begins: its timeline is laid behind what there is.
  mutating func startPublication() {
    splicer.startPublication(after: mediaEnd)
    awaitsClock = true
    nextAnchor = nil
  }

  /// The current publication is over, the epoch goes on: everything inside is brought out, and what follows does not
  /// continue it.
  mutating func interrupt() throws(StorageError) -> [StoredEvent] {
    let stored = try store(segmenter.receive(.discontinuity))
    window.interrupt()
    return stored
  }

  mutating func end(_ reason: EndReason) throws(StorageError) -> [StoredEvent] {
    try store(segmenter.receive(.end(reason)))
  }

  mutating func receive(_ event: MediaEvent) throws(StorageError) -> [StoredEvent] {
    try take(shift(event))
  }

  /// Bytes of media that it keeps in memory, and at which its growing segment is cut.
  var heldBytes: Int { rungs.reduce(window.residentBytes) { $0 + $1.window.residentBytes } }
  var segmentBytes: Int {
    get { segmenter.policy.segmentBytes }
    set { segmenter.policy.segmentBytes = newValue }
  }

  /// Forgets the oldest segments until it keeps no more bytes than that, but for the newest. Returns whether any went.
  mutating func shrink(to bytes: Int) -> Bool {
    var hasChanged = false
    while heldBytes > bytes, window.dropOldest() {
      hasChanged = true
      guard let first = window.segments.first?.sequenceNumber else { break }
      for index in rungs.indices { rungs[index].dropSegments(before: first) }
    }
    return hasChanged
  }

  /// The segments that end shortly before that media time or later end with all of their tracks together.
  mutating func alignTracks(at time: MediaTime?) { segmenter.alignsFrom = time }

  /// The publication's event on the epoch's timeline.
  mutating func shift(_ event: MediaEvent) -> MediaEvent { splicer.shift(event) }

  /// Takes an event on the epoch's timeline.
  mutating func take(_ event: MediaEvent) throws(StorageError) -> [StoredEvent] {
    try store(segmenter.receive(event))
  }

  // MARK: Storing

  private mutating func store(_ events: [FragmentEvent]) throws(StorageError) -> [StoredEvent] {
    guard !events.isEmpty else { return [] }
    var stored: [StoredEvent] = []
    if let limit = segmenter.policy.partLimit { window.setPartTarget(limit) }
    for event in events {
      switch event {
      case .initialization(let initSegment):
        window.add(initSegment)
        if !initSegment.tracks.contains(where: { $0.kind == .video }) { decideTarget(for: settings.segmentTarget) }
        stored.append(.initialization(initSegment))
      case .fragment(let fragment):
        if fragment.startsSegment { takeNextAnchor(&stored) }
        stored.append(.fragment(try store(fragment)))
      case .segmentEnd:
        if window.targetDuration == nil { decideTargetWithoutGroup() }
        window.completeNewest()
        for index in rungs.indices { try? rungs[index].completeSegment(in: window) }
        stored.append(.segmentEnd(view))
      case .clock(let anchor):
        if !awaitsClock {
          // Within a segment all times follow one clock.
          guard !isDated, !isResumed, breaks == 0, !breaksBeforeNextSegment,
            mediaEnd.map({ $0 < Self.longestBeginning }) ?? true
          else {
            if isWorthPeriod(anchor) { nextAnchor = anchor }
            continue
          }
          window.redate(by: anchor)
          for index in rungs.indices { rungs[index].redate(by: anchor) }
          availabilityStart = nil
        }
        stored.append(awaitsClock ? .clock(anchor) : .redated(anchor))
        awaitsClock = false
        self.anchor = anchor
        if availabilityStart == nil { availabilityStart = anchor.wallNanoseconds(at: .zero) }
      case .discontinuity:
        breaksBeforeNextSegment = isResumed || !window.segments.isEmpty
        stored.append(.discontinuity)
      case .groupOfPictures(let length):
        longestGroup = length
        decideTarget(for: length)
      case .end(let reason):
        window.end()
        stored.append(.end(reason))
      }
    }
    return stored
  }

  /// Whether players are told that the clock moved, which costs them a Period.
  private func isWorthPeriod(_ next: WallClockAnchor) -> Bool {
    guard let known = (nextAnchor ?? anchor)?.wallNanoseconds(at: next.mediaTime) else { return true }
    return (known &- next.wallNanoseconds).magnitude >= Self.worthPeriod
  }

  private mutating func takeNextAnchor(_ stored: inout [StoredEvent]) {
    guard let next = nextAnchor else { return }
    nextAnchor = nil
    anchor = next
    stored.append(.clock(next))
  }

  private mutating func store(_ fragment: Fragment) throws(StorageError) -> PublishedFragment {
    if fragment.startsSegment { try openSegment(fragment) }
    var published = try window.store(fragment, anchor: anchor)
    published.breaksBefore = breaks
    // What becomes of the rungs is no matter of the source.
    for index in rungs.indices { try? rungs[index].follow(fragment, in: window, anchor: anchor) }
    for run in fragment.runs {
      let end = MediaTime(ticks: run.presentationEnd, timescale: run.timescale)
      mediaEnd = mediaEnd.map { max($0, end) } ?? end
    }
    mediaBytes += fragment.mediaByteCount
    return published
  }

  private mutating func openSegment(_ fragment: Fragment) throws(StorageError) {
    let wallStart = anchor?.wallNanoseconds(at: fragment.start) ?? 0
    let memory = try SegmentMemory(in: store)
    if breaksBeforeNextSegment, window.outage(before: wallStart) != nil {
      keptPeriods = settings.periodsToKeep(viewWithRungs, 1)
      window.passOutage(before: fragment.start, until: wallStart, memory: memory)
      for index in rungs.indices { rungs[index].followOutage(in: window) }
    }
    window.open(
      fragment, initVersion: window.currentInit?.version ?? 1, followsDiscontinuity: breaksBeforeNextSegment,
      wallStart: wallStart, memory: memory)
    if window.segments.last?.followsDiscontinuity == true { breaks += 1 }
    breaksBeforeNextSegment = false
  }

  // MARK: Target duration

  /// No second key frame has come, within the longest first segment or within any of several short publications: the
  /// longest segment so far is the target.
  private mutating func decideTargetWithoutGroup() {
    let lengths = window.segments.filter { !$0.isOutage }.map(\.duration)
    guard let newest = lengths.last else { return }
    if newest >= settings.segmentTarget {
      decideTarget(for: newest)
    } else if lengths.reduce(MediaTime.zero, { $0 + $1 }) >= Self.longestBeginning {
      decideTarget(for: max(settings.segmentTarget, lengths.max() ?? .zero))
    }
  }

  /// The target that lets every segment of groups of this length through, once: it never changes within an epoch.
  private mutating func decideTarget(for group: MediaTime) {
    decideTarget(seconds: segmenter.policy.wholeSecondLimit ?? segmenter.policy.wholeSeconds(for: group))
  }

  /// EXTINF rounded to the nearest integer must not exceed the target (RFC 8216bis §4.4.3.1), so a segment may be
  /// just short of half a second longer.
  private mutating func decideTarget(seconds: Int) {
    window.setTargetDuration(seconds)
    segmenter.policy.wholeSecondLimit = window.targetDuration
  }
}
