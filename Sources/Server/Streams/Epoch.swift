internal import Base
package import FMP4
internal import NIOCore
internal import Publishing
package import Storage
internal import Transcode

/// The life of a stream under one address: from its first publisher to its end. It continues across reconnects and changes
/// of parameters; what players were told stays true within it. A value type: media events go in, stored events come out, and
/// the bytes are in its window.
package struct Epoch: Sendable {
  /// Unique across restarts: the wall-clock millisecond of its start, in base 36. One path segment.
  package let id: String
  package private(set) var window: LiveWindow
  private var segmenter: Segmenter
  private var splicer: Splicer
  private let store: SegmentStore
  let settings: StreamSettings
  /// Separate by the settings, or because the epoch has had several tracks of a kind.
  private(set) var layout: StreamSettings.HLSLayout
  /// The audio in another codec: as the settings say, or added to audio that most browsers cannot play.
  private(set) var audio: AudioSpecification?
  private var addsNoAudio = false
  /// Another process began the epoch.
  private let isResumed: Bool
  private var clock = ListedClock()
  /// Maps media times of the current publication to the wall clock.
  var anchor: WallClockAnchor? { clock.anchor }
  /// First media of the current publication that wait for its clock.
  private var burst: HeldBurst?
  /// The current publication goes on where another one was.
  private(set) var isContinued = false
  /// The current publication has not given its clock yet.
  private var awaitsClock = true
  /// Wall-clock time of media time 0 (DASH availabilityStartTime). Set by the first publication.
  private(set) var availabilityStart: WallTime?
  private(set) var longestGroup: MediaTime?
  /// The end of the media on the epoch's timeline, in presentation time.
  private(set) var mediaEnd: MediaTime?
  private var breaksBeforeNextSegment = false
  /// What the event that is being taken breaks the timeline for.
  private var cause = TimelineBreak.tracks
  /// Frames of its publications that came and could not be used.
  var lost = LostFrames()
  /// A new clock within this much media corrects the first one; later it means drift. Publications without a second key frame are
  /// waited for no longer.
  private static let longestBeginning = MediaTime(milliseconds: 10_000)
  /// Times of day have been published.
  var isDated = false
  /// Breaks of the timeline before the newest segment.
  private var breaks = 0
  private var changesOfDefaults = 0
  private(set) var mediaBytes = 0
  var rungs: [TranscodedRendition] = []
  /// The newest segment that was cut because of its arrival.
  private var cutSegment = 0
  /// Periods before the last outage or restart that manifests still list.
  private var keptPeriods: [KeptPeriod] = []
  /// Init segments that those, and playlists of that time, name.
  private var keptInits: [KeptInit] = []

  /// `store` holds the bytes; nil for a new store. `knownGroup` is the key frame interval of the last publisher with this name.
  /// `mayPromiseIndependence` is false when the name's last epoch broke the promise that each segment starts with a key frame.
  package init(
    id: String, settings: StreamSettings, store: SegmentStore? = nil, knownGroup: MediaTime? = nil,
    mayPromiseIndependence: Bool = true
  ) {
    let window = LiveWindow(
      length: settings.window,
      promisesIndependence: settings.targetDuration == .automatic && mayPromiseIndependence)
    self.init(id: id, settings: settings, store: store, window: window, resuming: nil)
    if case .seconds(let seconds) = settings.targetDuration {
      foresee(seconds: seconds)
    } else if let knownGroup {
      foresee(group: knownGroup)
    }
  }

  /// Resumes an epoch of another process. Its addresses stay valid; new media does not continue the old.
  init(resuming record: EpochRecord, settings: StreamSettings, store: SegmentStore? = nil) {
    let window = LiveWindow(
      length: settings.window, promisesIndependence: record.promisesIndependence, resuming: record)
    self.init(id: record.epoch, settings: settings, store: store, window: window, resuming: record)
    segmenter.policy.wholeSecondLimit = record.targetDuration
    if let limit = record.partTarget { segmenter.policy.keep(partLimit: limit) }
    availabilityStart = record.availabilityStart
    longestGroup = record.longestGroup
    mediaEnd = MediaTime(milliseconds: record.mediaEnd)
    (keptPeriods, keptInits) = (record.periods, record.inits)
    breaks = record.breaks
    breaksBeforeNextSegment = true
  }

  /// All windows start as copies of `window`.
  private init(
    id: String, settings: StreamSettings, store: SegmentStore?, window: LiveWindow, resuming record: EpochRecord?
  ) {
    self.id = id
    self.settings = settings
    layout = settings.layout
    audio = settings.audio
    splicer = Splicer(preferring: settings.audioDefault)
    var window = window
    window.segmentLimit = settings.segmentLimit
    window.declare(settings.captions)
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

  /// The record for the next process, without Periods and init segments. Nil while players know nothing that must stay true.
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
      breaks: max(breaks, window.discontinuities), mediaEnd: end, knownEnd: end,
      clockOffset: newest.map { $0.wallStart &- $0.start.nanoseconds } ?? .zero,
      listedFrom: window.lastListedStart ?? .zero)
  }

  /// The Periods of this process that manifests of the next one must list. Renders them.
  var periodsToKeep: [KeptPeriod] { settings.periodsToKeep(viewWithRungs, KeptPeriod.limit) }

  /// The init segments that players of this process may still ask the next one for, oldest first.
  var initsToKeep: [KeptInit] {
    guard let newest = window.segments.last(where: { !$0.isOutage }) else { return keptInits }
    let tracks = window.inits[newest.initVersion]?.tracks ?? []
    let own =
      window.keptInits(of: newest.initVersion, [.interleaved] + tracks.map { Rendition($0) })
      + rungs.flatMap { $0.window.keptInits(of: newest.initVersion, [$0.rendition]) }
    let older = keptInits.filter { kept in
      !own.contains { $0.rendition == kept.rendition && $0.version == kept.version }
    }
    return (older + own).suffix(KeptInit.limit)
  }

  /// The newest init segment; nil before the tracks are known.
  package var initSegment: InitSegment? { window.currentInit }

  /// The source's view, for renderers and followers.
  var view: EpochView {
    EpochView(id: id, window: window, availabilityStart: availabilityStart ?? .zero, layout: layout)
  }

  /// What manifests state as the longest time without a publisher, of a stream that waits however long.
  private static let longestPatience = MediaTime(milliseconds: 86_400_000)

  /// The view with the rungs.
  var viewWithRungs: EpochView {
    var view = EpochView(
      id: id, window: window, availabilityStart: availabilityStart ?? .zero, rungs: rungs, version: version,
      keptPeriods: keptPeriods, patience: settings.patience() ?? Self.longestPatience, publicURL: settings.publicURL,
      layout: layout)
    view.presentation = EpochView.Presentation(
      layout: settings.layout, addressing: settings.partAddressing, rewind: settings.rewind,
      audioNames: settings.audioNames)
    view.keptInits = keptInits
    return view
  }

  /// Begins the next publication of this epoch; its timeline follows the existing media.
  mutating func startPublication(_ keyFrames: PublishRequest.KeyFrames = .asItsEncoderHasThem) {
    // A key frame that is asked for comes before the segment reaches its target.
    segmenter.policy.syncTolerance =
      keyFrames == .asAsked ? CutPolicy.syncTolerance(ofTarget: settings.segmentTarget) : CutPolicy.segmentTolerance
    segmenter.policy.syncDistance = if case .every(let distance) = keyFrames { distance } else { nil }
    splicer.startPublication(after: mediaEnd)
    isContinued = initSegment != nil || isResumed
    awaitsClock = true
    clock.startPublication()
  }

  /// Ends the current publication; the epoch continues. Stores all pending media. Later media does not continue it.
  package mutating func interrupt() throws(StorageError) -> [StoredEvent] {
    var stored = try releaseBurst()
    cause = .publisher
    stored += try store(segmenter.interrupt())
    window.interrupt()
    return stored
  }

  /// Lists that the publisher has been away for a while. False where nothing has changed.
  mutating func beginOutage() -> Bool {
    let first = window.nextSequenceNumber
    guard window.beginOutage() else { return false }
    followOutage(from: first)
    return true
  }

  private mutating func followOutage(from first: Int) {
    for index in rungs.indices { rungs[index].followOutage(in: window, from: first) }
  }

  mutating func end(_ reason: EndReason) throws(StorageError) -> [StoredEvent] {
    try releaseBurst() + store(segmenter.receive(.end(reason)))
  }

  package mutating func receive(_ event: MediaEvent) throws(StorageError) -> [StoredEvent] {
    try take(shift(event))
  }

  /// Notes when a sample arrives that is about to be taken, and by how many nanoseconds it moves the end of the media on.
  mutating func noteArrival(of media: Int64, now: MonotonicTime) { window.arrival.saw(media, now: now) }

  /// Bytes of media in memory, and the bytes at which the growing segment is cut.
  var heldBytes: Int {
    rungs.reduce(window.residentBytes + segmenter.pendingBytes + (burst?.byteCount ?? 0)) {
      $0 + $1.window.residentBytes
    }
  }
  var segmentBytes: Int {
    get { segmenter.policy.segmentBytes }
    set { segmenter.policy.segmentBytes = newValue }
  }

  /// Drops the oldest segments, but not the newest, until at most `bytes` are in memory. Returns whether any was dropped.
  mutating func shrink(to bytes: Int) -> Bool {
    var hasChanged = false
    while heldBytes > bytes, window.dropOldest() {
      hasChanged = true
      dropOldInRungs()
    }
    return hasChanged
  }

  /// Drops segments that came too long ago, and those beyond so many bytes that came too slowly for their length; a growing
  /// segment of that kind is cut. Returns whether any was dropped.
  mutating func dropLate(slowBytes most: Int) -> Bool {
    if let number = window.segmentToCut(slowBytes: most), number != cutSegment {
      // Its end may wait for other tracks.
      cutSegment = number
      segmenter.endSegmentSoon()
    }
    guard window.dropLate(slowBytes: most) else { return false }
    dropOldInRungs()
    return true
  }

  private mutating func dropOldInRungs() {
    guard let first = window.segments.first?.sequenceNumber else { return }
    for index in rungs.indices { rungs[index].dropSegments(before: first) }
  }

  /// Segments that end shortly before this media time, or later, end with all tracks together.
  package mutating func alignTracks(at time: MediaTime?) { segmenter.alignsFrom = time }

  /// Moves the publication's event to the epoch's timeline. The settings turn its video, and state languages.
  mutating func shift(_ event: MediaEvent) -> MediaEvent {
    let shifted = splicer.shift(event)
    guard case .tracks(let tracks) = shifted else { return shifted }
    return .tracks(
      tracks.map { track in
        var track = track.turned(by: settings.rotation)
        if track.kind == .audio, let language = settings.audioLanguages[track.number] { track.language = language }
        return track
      })
  }

  /// A time of the publication on the epoch's timeline.
  func shift(_ time: MediaTime) -> MediaTime { time + splicer.offset }

  /// Takes the closed captions that were found in a track of the publication. False if playlists declare them already.
  package mutating func note(_ services: CaptionServices, of track: TrackID) -> Bool {
    window.note(services, of: splicer.place(of: track))
  }

  /// Takes an event on the epoch's timeline. Behind a provisional clock it waits for the next one.
  mutating func take(_ event: MediaEvent) throws(StorageError) -> [StoredEvent] {
    if case .clock(let clock) = event {
      guard clock.isProvisional, !awaitsClock else { return try cut(event) + releaseBurst() }
      burst = burst ?? HeldBurst()
      window.awaitsClock = !isDated
      return []
    }
    guard burst != nil else { return try cut(event) }
    burst?.append(event)
    return burst?.isFull == true ? try releaseBurst() : []
  }

  /// Takes the media that wait, by the clock that is known.
  private mutating func releaseBurst() throws(StorageError) -> [StoredEvent] {
    window.awaitsClock = false
    guard let waiting = burst?.events else { return [] }
    burst = nil
    var stored: [StoredEvent] = []
    // A recording that splits within it cannot say so in time.
    let aligned = segmenter.alignsFrom
    segmenter.alignsFrom = .zero
    defer { segmenter.alignsFrom = aligned }
    for event in waiting { stored += try cut(event) }
    return stored
  }

  private mutating func cut(_ event: MediaEvent) throws(StorageError) -> [StoredEvent] {
    if case .tracks(let tracks) = event, tracks.hasFurther, layout == .interleaved { separate(tracks) }
    cause = if case .discontinuity = event { .timestamps } else { .tracks }
    return try store(segmenter.receive(event))
  }

  /// Whether AAC can be added. What players were told before the first media must stay true.
  var mayAddAudio: Bool { audio == nil && settings.addsPlayableAudio && window.currentInit == nil && !addsNoAudio }

  /// AAC is not added: there is no worker that makes it.
  mutating func addNoAudio() { addsNoAudio = true }

  /// Offers the audio in another codec as well, before the first media.
  mutating func add(_ audio: AudioSpecification, beside tracks: [TrackDescription]) {
    self.audio = audio
    rungs.append(TranscodedRendition(.audio(audio), window: window, store: store))
    if layout == .interleaved { separate(tracks) }
  }

  /// Serves each track by itself from here on. Parts of all tracks are then equally long.
  private mutating func separate(_ tracks: [TrackDescription]) {
    layout = .separate
    segmenter.policy.waitForFollowers(tracks)
    // PART-TARGET was told for the interleaved layout.
    if window.partTarget != nil, let limit = segmenter.policy.partLimit { window.setPartTargetOfTracks(limit) }
  }

  // MARK: Storing

  private mutating func store(_ events: [FragmentEvent]) throws(StorageError) -> [StoredEvent] {
    guard !events.isEmpty else { return [] }
    var stored: [StoredEvent] = []
    // The segment that ends here may be the first that is listed.
    if segmenter.cutsWithoutSync { window.breakIndependence() }
    if let limit = segmenter.policy.partLimit { window.setPartTarget(limit) }
    for event in events {
      switch event {
      case .initialization(let initSegment):
        window.add(initSegment)
        if !initSegment.tracks.contains(where: { $0.kind == .video }) {
          // Any frame of audio may begin a segment.
          foresee(group: settings.segmentTarget)
          decideTarget(for: settings.segmentTarget)
        }
        // With the versions of tracks that go on.
        stored.append(.initialization(window.currentInit ?? initSegment))
      case .fragment(let fragment):
        if fragment.startsSegment { takeClock(of: fragment, &stored) }
        stored.append(.fragment(try store(fragment)))
      case .segmentEnd:
        if window.targetDuration == nil { decideTargetWithoutGroup() }
        window.completeNewest()
        for index in rungs.indices { try? rungs[index].completeSegment(in: window) }
        stored.append(.segmentEnd(view))
      case .clock(let anchor):
        if !awaitsClock {
          // All times of a segment use one clock.
          guard !isDated, !isResumed, breaks == 0, !breaksBeforeNextSegment,
            mediaEnd.map({ $0 < Self.longestBeginning }) ?? true
          else {
            clock.follow(anchor)
            continue
          }
          window.redate(by: anchor)
          for index in rungs.indices { rungs[index].redate(by: anchor) }
          availabilityStart = nil
        }
        stored.append(awaitsClock ? .clock(anchor) : .redated(anchor))
        awaitsClock = false
        clock.set(anchor)
        if availabilityStart == nil { availabilityStart = anchor.wallTime(at: .zero) }
      case .discontinuity:
        breaksBeforeNextSegment = isResumed || !window.segments.isEmpty
        stored.append(.discontinuity(cause))
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

  /// Takes the clock of the segment that a fragment begins. Where dates step, its list begins anew there, so it is one that players
  /// can begin with.
  private mutating func takeClock(of fragment: Fragment, _ stored: inout [StoredEvent]) {
    if clock.steps, fragment.isIndependent, !breaksBeforeNextSegment {
      breaksBeforeNextSegment = true
      stored.append(.discontinuity(.clock))
    }
    let next =
      breaksBeforeNextSegment
      ? clock.breaks(at: fragment.start, behind: window.segments.last?.wallEnd) : clock.goesOn(at: fragment.start)
    if let next { stored.append(.clock(next)) }
  }

  private mutating func store(_ fragment: Fragment) throws(StorageError) -> PublishedFragment {
    if fragment.startsSegment { try openSegment(fragment) }
    var published = try window.store(fragment, anchor: anchor)
    (published.breaksBefore, published.changesOfDefaultsBefore) = (breaks, changesOfDefaults)
    published.lostBefore = lost
    // A failure of a rung does not affect the source.
    if !fragment.isAside {
      for index in rungs.indices { try? rungs[index].follow(fragment, in: window, anchor: anchor) }
    }
    for run in fragment.runs {
      let end = MediaTime(ticks: run.presentationEnd, timescale: run.timescale)
      mediaEnd = mediaEnd.map { max($0, end) } ?? end
    }
    mediaBytes += fragment.mediaByteCount
    return published
  }

  private mutating func openSegment(_ fragment: Fragment) throws(StorageError) {
    let wallStart = anchor?.wallTime(at: fragment.start) ?? .zero
    let memory = try SegmentMemory(in: store)
    if breaksBeforeNextSegment, window.outage(before: wallStart) != nil || window.segments.last?.isOutage == true {
      let first = window.nextSequenceNumber
      (keptPeriods, keptInits) = (settings.periodsToKeep(viewWithRungs, 1), initsToKeep)
      window.passOutage(before: fragment.start, until: wallStart, memory: memory)
      followOutage(from: first)
    }
    window.open(
      fragment, initVersion: window.currentInit?.version ?? 1, followsDiscontinuity: breaksBeforeNextSegment,
      wallStart: wallStart, memory: memory)
    if window.segments.last?.followsDiscontinuity == true { breaks += 1 }
    if window.segments.last?.changesDefaults == true { changesOfDefaults += 1 }
    breaksBeforeNextSegment = false
  }

  // MARK: Target duration

  /// Without a second key frame, the target is the longest segment so far. This happens when the first segment reaches its
  /// limit, or after several publications that were too short for one: with the first that ends ten seconds after the first one
  /// began.
  private mutating func decideTargetWithoutGroup() {
    let segments = window.segments.filter { !$0.isOutage }
    guard let first = segments.first, let newest = segments.last else { return }
    let media = segments.reduce(MediaTime.zero) { $0 + $1.duration }
    if newest.duration >= settings.segmentTarget {
      decideTarget(for: newest.duration)
    } else if max(media.nanoseconds, newest.wallEnd &- first.wallStart) >= Self.longestBeginning.nanoseconds {
      decideTarget(for: segments.reduce(settings.segmentTarget) { max($0, $1.duration) })
    } else {
      return
    }
    // Longer groups may come, which are cut.
    window.promiseNoIndependence()
  }

  /// Sets the target duration for GOPs of this length. It is set once and never changes within an epoch.
  private mutating func decideTarget(for group: MediaTime) {
    decideTarget(seconds: segmenter.policy.wholeSecondLimit ?? segmenter.policy.wholeSeconds(for: group))
  }

  /// Decides the target before the first media, for the distance of key frames that the encoder announces or that its name had
  /// before. A GOP that is longer after all is cut at the target. Does nothing once the target is decided.
  mutating func foresee(group: MediaTime) {
    foresee(seconds: segmenter.policy.wholeSeconds(for: group))
  }

  private mutating func foresee(seconds: Int) {
    guard window.targetDuration == nil else { return }
    window.foresee(targetDuration: seconds)
    if let target = window.targetDuration { segmenter.policy.wholeSecondLimit = target }
  }

  /// EXTINF, rounded to the nearest integer, must not exceed the target (RFC 8216bis §4.4.3.1). A segment may thus be almost
  /// half a second longer.
  private mutating func decideTarget(seconds: Int) {
    window.setTargetDuration(seconds)
    segmenter.policy.wholeSecondLimit = window.targetDuration
  }
}
