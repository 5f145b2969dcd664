package import FMP4
internal import NIOCore
internal import Storage
internal import Transcode

/// A rung of an epoch, or its audio in another codec. It has its own window; segments have the numbers, times and parts of the
/// source's (audio: within one audio frame). Missing media becomes a gap. A value type: fragments of the source and samples of
/// the rung go in; the window grows.
package struct TranscodedRendition: Sendable {
  /// What is transcoded.
  enum Kind: Sendable, Hashable {
    case video(RungSpecification)
    case audio(AudioSpecification)
  }

  let kind: Kind
  package private(set) var window: LiveWindow
  private var segmenter: AlignedSegmenter
  private var track: TrackDescription?
  /// Segments that were planned from the source and are not complete in the window.
  private var planned: [PlannedSegment] = []
  private var lastPlan: FragmentPlan?
  /// For audio: PART-TARGET of the source, and the share of it for one frame of the source's audio.
  private var sourceParts: (target: MediaTime, frame: MediaTime)?
  private let store: SegmentStore
  /// The memory of segments without bytes.
  private var emptyMemory: SegmentMemory?

  private struct PlannedSegment: Sendable {
    /// The state of the source's segment when its newest fragment was planned.
    var source: LiveSegment
    var anchor: WallClockAnchor?
    /// It was added to the window.
    var isOpen = false
  }

  /// `window` is the source's, without segments. `store` holds the bytes.
  init(_ kind: Kind, window: LiveWindow, store: SegmentStore) {
    self.kind = kind
    self.store = store
    segmenter = AlignedSegmenter(kind.mediaKind)
    self.window = window
    // PART-TARGET follows from its audio frames and those of the source.
    if kind.mediaKind == .audio { self.window.forgetPartTarget() }
  }

  var mediaKind: MediaKind { kind.mediaKind }
  package var name: String { rendition.rawValue }
  package var rendition: Rendition {
    switch kind {
    case .video(let rung): .rung(rung.name)
    case .audio(let audio): .transcodedAudio(audio.coding)
    }
  }

  /// The track of its newest frames; nil before the first.
  package var currentTrack: TrackDescription? { track }

  /// Players can start with it.
  var isPlayable: Bool { track != nil && window.endsWithMedia }

  // MARK: The source

  /// Takes the source's newest fragment, which is already stored.
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
    try apply(segmenter.plan(plan))
  }

  /// The source's newest segment is complete.
  mutating func completeSegment(in source: LiveWindow) throws(StorageError) {
    adopt(source)
    guard let segment = source.segments.last, planned.last?.source.sequenceNumber == segment.sequenceNumber else {
      return
    }
    planned[planned.count - 1].source = segment
    try apply(segmenter.endSegment(segment.sequenceNumber))
    if let first = source.segments.first { giveUp(before: first.sequenceNumber) }
  }

  /// Completes what was planned from segments that the source no longer has. Frames for them are late.
  private mutating func giveUp(before number: Int) {
    for segment in planned where segment.source.sequenceNumber < number { complete(segment.source) }
  }

  /// Copies the outage at the end of the source's window from a segment's number on.
  mutating func followOutage(in source: LiveWindow, from first: Int) {
    for segment in source.segments where segment.sequenceNumber >= first {
      planned.append(PlannedSegment(source: segment))
      try? apply(segmenter.endSegment(segment.sequenceNumber))
    }
  }

  private func plan(_ fragment: Fragment, _ segment: LiveSegment, _ source: LiveWindow) -> FragmentPlan? {
    guard mediaKind == .audio else {
      return FragmentPlan(fragment, segment: segment.sequenceNumber, after: lastPlan)
    }
    // The source has no audio here, so none can be made.
    return source.layout(.audio, of: segment)?.trackID.map { track in
      FragmentPlan(audio: track, of: fragment, segment: segment.sequenceNumber)
    }
  }

  private mutating func adopt(_ source: LiveWindow) {
    if let target = source.targetDuration {
      if source.isForeseen { window.foresee(targetDuration: target) }
      window.setTargetDuration(target)
    }
    // Its key frames are at the source's.
    if mediaKind == .video, !source.isIndependent { window.promiseNoIndependence() }
    guard let target = source.partTarget else { return }
    guard mediaKind == .audio else { return window.setPartTarget(target) }
    guard let tracks = source.currentInit?.tracks else { return }
    let sourceFrame = tracks.leader?.kind == .video ? tracks.first(.audio).map(Self.frame) ?? .zero : .zero
    sourceParts = (target, sourceFrame)
    adoptParts()
  }

  /// Sets PART-TARGET: that of the source, without the share for one of its audio frames, plus one frame of this track.
  private mutating func adoptParts() {
    guard let track, let (target, sourceFrame) = sourceParts else { return }
    window.setPartTarget(max(target, (target.converted(to: 1_000_000) - sourceFrame) + Self.frame(of: track)))
  }

  private static func frame(of track: TrackDescription) -> MediaTime {
    MediaTime(ticks: Int64(track.sampleDuration ?? 0), timescale: track.timescale)
  }

  /// As `LiveWindow.redate(by:)`.
  mutating func redate(by anchor: WallClockAnchor) {
    window.redate(by: anchor)
    for index in planned.indices {
      planned[index].source.wallStart = anchor.wallTime(at: planned[index].source.start)
      planned[index].anchor = anchor
    }
  }

  /// Follows the source, which has dropped all segments before this number.
  mutating func dropSegments(before number: Int) {
    giveUp(before: number)
    window.dropSegments(before: number)
  }

  // MARK: Frames

  mutating func use(_ track: TrackDescription) {
    self.track = track
    adoptParts()
  }

  mutating func take(_ sample: Sample) throws(StorageError) {
    guard let track else { return }
    try apply(segmenter.take(sample, of: track))
  }

  mutating func lose(before time: MediaTime) throws(StorageError) {
    try apply(segmenter.lose(before: time))
  }

  /// Ends the rendition.
  mutating func end() {
    let last = planned.last?.source
    try? apply(segmenter.lose(before: MediaTime(ticks: .max, timescale: 1)))
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
      guard window.nextSequenceNumber == number, introduce(track, source) else { return }
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

  /// Adds the init segment for a segment of the source. False when its version describes another track.
  private mutating func introduce(_ track: TrackDescription, _ source: LiveSegment) -> Bool {
    let version = source.initVersion
    if let known = window.inits[version] { return known.tracks.first == track }
    window.add(InitSegment(version: version, tracks: [track], continues: !source.followsDiscontinuity))
    return true
  }

  /// Audio that is shorter than its segment by more than this is incomplete. Less is due to whole audio frames.
  private static let audioTolerance = MediaTime(milliseconds: 150)

  /// Completes the rung's segment; no more media follows.
  private mutating func complete(_ source: LiveSegment) {
    let index = planned.firstIndex { $0.source.sequenceNumber == source.sequenceNumber }
    if let index, planned[index].isOpen {
      let isWhole =
        mediaKind == .audio
        && window.segments.last.map { $0.duration + Self.audioTolerance > source.duration } ?? false
      window.completeNewest(lasting: isWhole ? nil : source.duration)
    } else if window.nextSequenceNumber == source.sequenceNumber {
      if emptyMemory == nil { emptyMemory = try? SegmentMemory(in: store) }
      if let emptyMemory { window.addGap(like: source, duration: source.duration, memory: emptyMemory) }
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

extension [TranscodedRendition] {
  /// The versions of their windows. Asked of the array, because a property of what has it would copy all of that for each
  /// sample.
  var versions: [Int] { isEmpty ? [] : map(\.window.version) }
}
