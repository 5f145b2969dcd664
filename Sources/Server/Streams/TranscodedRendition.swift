internal import FMP4
internal import Ingest
internal import NIOCore
internal import Storage

/// A rung of an epoch, or its audio in another codec: a window of its own whose segments have the numbers, the times and
/// the parts of the source's; of audio, within one of its frames. What does not come of it is a gap. A value: the source's
/// fragments and the rung's samples in, a window that grows.
struct TranscodedRendition: Sendable {
  /// What is made.
  enum Kind: Sendable, Hashable {
    case video(RungSpecification)
    case audio(AudioSpecification)
  }

  let kind: Kind
  private(set) var window: LiveWindow
  private var cutter: AlignedSegmenter
  private var track: TrackDescription?
  /// What was planned of the source and is not in the window yet.
  private var planned: [PlannedSegment] = []
  private var lastPlan: FragmentPlan?
  /// Of audio: the source's PART-TARGET, and how much of it is for a frame of the source's audio.
  private var sourceParts: (target: MediaTime, frame: MediaTime)?
  private let store: SegmentStore
  /// The home of segments without bytes.
  private var nothing: SegmentMemory?

  private struct PlannedSegment: Sendable {
    /// As the source had it when its newest fragment was planned.
    var source: LiveSegment
    var anchor: WallClockAnchor?
    /// It is in the window.
    var isOpen = false
  }

  /// `window` is the source's, still without a segment, and `store` the home of its bytes.
  init(_ kind: Kind, window: LiveWindow, store: SegmentStore) {
    self.kind = kind
    self.store = store
    cutter = AlignedSegmenter(kind.mediaKind)
    self.window = window
    // Follows from its frames and the source's.
    if kind.mediaKind == .audio { self.window.forgetPartTarget() }
  }

  var mediaKind: MediaKind { kind.mediaKind }
  var name: String { rendition.rawValue }
  var rendition: Rendition {
    switch kind {
    case .video(let rung): .rung(rung.name)
    case .audio(let audio): .transcodedAudio(audio.coding)
    }
  }

  /// What its newest pictures are; nil before the first.
  var currentTrack: TrackDescription? { track }

  /// Players can begin with it.
  var isPlayable: Bool { track != nil && window.endsWithMedia }

  // MARK: The source

  /// The source's newest fragment, which is stored in its window.
  mutating func follow(
    _ fragment: Fragment, in source: LiveWindow, anchor: WallClockAnchor?
  ) throws(StorageError) {
    adopt(source)
    guard let segment = source.segments.last else { return }
    if planned.last?.source.sequenceNumber == segment.sequenceNumber {
      planned[planned.count - 1].source = segment
    } else {
      planned.append(PlannedSegment(source: segment, anchor: anchor))
    }
    guard let plan = plan(fragment, segment, source) else { return }
    lastPlan = plan
    try apply(cutter.plan(plan))
  }

  /// The source's newest segment is complete.
  mutating func completeSegment(in source: LiveWindow) throws(StorageError) {
    adopt(source)
    guard let segment = source.segments.last, planned.last?.source.sequenceNumber == segment.sequenceNumber else {
      return
    }
    planned[planned.count - 1].source = segment
    try apply(cutter.endSegment(segment.sequenceNumber))
  }

  /// Takes over the time in which nobody published, with which the source's window ends, if it does.
  mutating func followOutage(in source: LiveWindow) {
    let start = source.segments.lastIndex { !$0.isOutage }.map { $0 + 1 } ?? 0
    for segment in source.segments[start...] {
      planned.append(PlannedSegment(source: segment))
      try? apply(cutter.endSegment(segment.sequenceNumber))
    }
  }

  private func plan(_ fragment: Fragment, _ segment: LiveSegment, _ source: LiveWindow) -> FragmentPlan? {
    guard mediaKind == .audio else {
      return FragmentPlan(fragment, segment: segment.sequenceNumber, after: lastPlan)
    }
    // Where the source has no audio, nothing can be made of it.
    return source.layout(.audio, of: segment)?.trackID.map { track in
      FragmentPlan(audio: track, of: fragment, segment: segment.sequenceNumber)
    }
  }

  private mutating func adopt(_ source: LiveWindow) {
    if let target = source.targetDuration { window.setTargetDuration(target) }
    guard let target = source.partTarget else { return }
    guard mediaKind == .audio else { return window.setPartTarget(target) }
    guard let tracks = source.currentInit?.tracks else { return }
    let theirs = tracks.leader?.kind == .video ? tracks.first(.audio).map(Self.frame) ?? .zero : .zero
    sourceParts = (target, theirs)
    adoptParts()
  }

  /// The source's parts, less the room that they leave for a frame of its audio, and with room for one of this.
  private mutating func adoptParts() {
    guard let track, let (target, theirs) = sourceParts else { return }
    window.setPartTarget(max(target, (target.converted(to: 1_000_000) - theirs) + Self.frame(of: track)))
  }

  private static func frame(of track: TrackDescription) -> MediaTime {
    MediaTime(ticks: Int64(track.sampleDuration ?? 0), timescale: track.timescale)
  }

  /// As `LiveWindow.redate(by:)`.
  mutating func redate(by anchor: WallClockAnchor) {
    window.redate(by: anchor)
    for index in planned.indices {
      planned[index].source.wallStart = anchor.wallNanoseconds(at: planned[index].source.start)
      planned[index].anchor = anchor
    }
  }

  /// The source has forgotten all segments before that number.
  mutating func dropSegments(before number: Int) { window.dropSegments(before: number) }

  // MARK: The pictures

  mutating func use(_ track: TrackDescription) {
    self.track = track
    adoptParts()
  }

  mutating func take(_ sample: Sample) throws(StorageError) {
    guard let track else { return }
    try apply(cutter.take(sample, of: track))
  }

  mutating func lose(before time: MediaTime) throws(StorageError) {
    try apply(cutter.lose(before: time))
  }

  /// Nothing follows.
  mutating func end() {
    let last = planned.last?.source
    try? apply(cutter.lose(before: MediaTime(ticks: .max, timescale: 1)))
    if let last, !last.isComplete { complete(last) }
    window.end()
  }

  // MARK: Cutting

  private mutating func apply(_ cuts: [AlignedSegmenter.Cut]) throws(StorageError) {
    for cut in cuts {
      switch cut {
      case .fragment(let fragment, let track, let number): try store(fragment, track, number)
      case .segmentEnd(let number):
        guard let index = planned.firstIndex(where: { $0.source.sequenceNumber == number }) else { continue }
        complete(planned[index].source)
      }
    }
  }

  private mutating func store(_ fragment: Fragment, _ track: TrackDescription, _ number: Int) throws(StorageError) {
    guard let index = planned.firstIndex(where: { $0.source.sequenceNumber == number }) else { return }
    let source = planned[index].source
    if !planned[index].isOpen {
      guard window.nextSequenceNumber == number, introduce(track, source.initVersion) else { return }
      let memory = try SegmentMemory(in: store)
      window.open(
        fragment, initVersion: source.initVersion, followsDiscontinuity: source.followsDiscontinuity,
        wallStart: source.wallStart, memory: memory)
      planned[index].isOpen = true
    } else if window.inits[source.initVersion]?.tracks.first != track {
      return
    }
    _ = try window.store(fragment, anchor: planned[index].anchor)
  }

  /// The init segment of that version tells what the track is; false where it tells something else already.
  private mutating func introduce(_ track: TrackDescription, _ version: Int) -> Bool {
    if let known = window.inits[version] { return known.tracks.first == track }
    window.add(InitSegment(version: version, tracks: [track]))
    return true
  }

  /// Audio that is this much shorter than its segment lacks something, in milliseconds; less is a matter of whole frames.
  private static let audioTolerance = MediaTime(milliseconds: 150)

  /// The rung's segment is as complete as it gets.
  private mutating func complete(_ source: LiveSegment) {
    let index = planned.firstIndex { $0.source.sequenceNumber == source.sequenceNumber }
    if let index, planned[index].isOpen {
      let isWhole =
        mediaKind == .audio
        && window.segments.last.map { $0.duration + Self.audioTolerance > source.duration } ?? false
      window.completeNewest(lasting: isWhole ? nil : source.duration)
    } else if window.nextSequenceNumber == source.sequenceNumber {
      if nothing == nil { nothing = try? SegmentMemory(in: store) }
      if let nothing { window.addGap(like: source, duration: source.duration, memory: nothing) }
    }
    planned.removeAll { $0.source.sequenceNumber <= source.sequenceNumber }
  }
}

extension TranscodedRendition.Kind {
  var mediaKind: MediaKind {
    switch self {
    case .video: .video
    case .audio: .audio
    }
  }
}
