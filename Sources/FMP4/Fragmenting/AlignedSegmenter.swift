internal import NIOCore

/// Cuts the video or audio of another rendition exactly where the stream's own media was cut. Its fragments begin at
/// the same decode times and belong to the same segments. A value type: plans, frames and losses go in, fragments come
/// out in the order of the plans. Audio is cut at the first audio frame that begins at or after the planned time.
///
/// Video frames arrive in presentation order. Their decode times are computed: the first of a segment has the source's
/// decode time. Later ones have their presentation time minus the reorder delay of the source's segment. If the source
/// has an open GOP, the segment begins with the first frame that is shown before the source's key frame.
package struct AlignedSegmenter: Sendable {
  /// A frame of the rendition.
  private struct Frame {
    /// Presentation time.
    var time: MediaTime
    var isSync: Bool
    var payload: ByteBuffer
    var track: TrackDescription
  }

  private enum Step {
    case fragment(FragmentPlan)
    case segmentEnd(Int)
  }

  /// Output of the segmenter.
  package enum Cut: Sendable {
    /// A fragment of the planned segment.
    case fragment(Fragment, TrackDescription, segment: Int)
    /// The segment is complete: no more fragments of it follow.
    case segmentEnd(segment: Int)
  }

  /// Most plans that wait for their frames: about a minute of fragments.
  package static let planLimit = 600
  /// Most frames that wait for their plans.
  package static let frameLimit = 2400

  private let kind: MediaKind
  private var steps: [Step] = []
  private var frames: [Frame] = []
  /// Frames with a presentation time before this one no longer arrive.
  private var lostBefore: MediaTime?
  /// The next frame must be a key frame, because the frame before it was dropped.
  private var needsSync = true
  /// The segment whose first fragment has been cut.
  private var openSegment: Int?
  private var nextSequenceNumber: UInt32 = 1
  /// Presentation time at which the last fragment ended.
  private var resolvedUntil: MediaTime?
  /// Audio only: expected end of the source's segment; nil while it is unknown.
  private var expectedSegmentEnd: MediaTime?

  package init(_ kind: MediaKind = .video) { self.kind = kind }

  /// Number of plans that wait for their frames.
  package var waitingPlans: Int { steps.count }

  /// Takes the plan of the source's next fragment.
  package mutating func plan(_ fragment: FragmentPlan) -> [Cut] {
    steps.append(.fragment(fragment))
    return advance()
  }

  /// Ends a segment of the source. The fragments planned so far are all that it has.
  package mutating func endSegment(_ segment: Int) -> [Cut] {
    steps.append(.segmentEnd(segment))
    return advance()
  }

  /// Takes the next frame. Its presentation time is `sample.decodeTime` plus the composition offset.
  package mutating func take(_ sample: Sample, of track: TrackDescription) -> [Cut] {
    let time = MediaTime(
      ticks: sample.decodeTime &+ Int64(sample.compositionOffset), timescale: track.timescale)
    if frames.count >= Self.frameLimit {
      frames.removeAll()
      needsSync = true
    }
    frames.append(Frame(time: time, isSync: sample.isSync, payload: sample.payload, track: track))
    return advance()
  }

  /// Marks frames before `time` (presentation time) as lost, except those that have already arrived.
  package mutating func lose(before time: MediaTime) -> [Cut] {
    if lostBefore.map({ $0 < time }) ?? true { lostBefore = time }
    return advance()
  }

  // MARK: Cutting

  private mutating func advance() -> [Cut] {
    var cuts: [Cut] = []
    var done = 0
    while done < steps.count {
      switch steps[done] {
      case .segmentEnd(let segment): cuts.append(.segmentEnd(segment: segment))
      case .fragment(let plan):
        guard isResolved(plan) || steps.count - done > Self.planLimit else {
          steps.removeFirst(done)
          return cuts
        }
        if let (fragment, track) = cut(plan) { cuts.append(.fragment(fragment, track, segment: plan.segment)) }
      }
      done += 1
    }
    steps.removeAll()
    return cuts
  }

  /// Whether every frame of the fragment has arrived or is lost.
  private func isResolved(_ plan: FragmentPlan) -> Bool {
    let end = plan.presentationEnd
    if plan.start >= plan.end { return true }
    if let lostBefore, lostBefore >= end { return true }
    guard let last = frames.last else { return false }
    if kind == .audio { return Self.end(of: last) >= end }
    // At a constant rate the last frame of a fragment is known as the last. Otherwise only the next frame shows it.
    let length = MediaTime(ticks: Int64(last.track.frameDuration ?? 0), timescale: last.track.timescale)
    let slack = MediaTime(ticks: length.ticks / 2, timescale: length.timescale)
    return last.time + length + slack > end
  }

  private mutating func cut(_ plan: FragmentPlan) -> (Fragment, TrackDescription)? {
    kind == .audio ? cutAudio(plan) : cutVideo(plan)
  }

  private static func end(of frame: Frame) -> MediaTime {
    frame.time + MediaTime(ticks: Int64(frame.track.sampleDuration ?? 1), timescale: frame.time.timescale)
  }

  /// Cuts the audio frames that begin before the end of the plan. A segment begins with its first audio frame.
  private mutating func cutAudio(_ plan: FragmentPlan) -> (Fragment, TrackDescription)? {
    if plan.startsSegment { expectedSegmentEnd = plan.expectedSegmentDuration.map { plan.presentationStart + $0 } }
    let count = frames.firstIndex { $0.time >= plan.end } ?? frames.count
    var taken = Array(frames[..<count])
    frames.removeFirst(count)
    // Audio frames from before the first fragment of the source belong to no fragment.
    if resolvedUntil == nil { taken.removeFirst(taken.firstIndex { $0.time >= plan.start } ?? taken.count) }
    resolvedUntil = plan.end
    guard let first = taken.first, let track = taken.first?.track else { return nil }
    taken = Array(taken.prefix { $0.track == track })
    let startsSegment = openSegment != plan.segment
    openSegment = plan.segment
    let times = taken.map(\.time.ticks)
    let length = Int64(track.sampleDuration ?? 1)
    let end = (times.last ?? 0) &+ length
    let samples = zip(taken, times.indices).map { frame, index in
      let next = index + 1 < times.count ? times[index + 1] : end
      return RunSample(
        size: UInt32(clamping: frame.payload.readableBytes), duration: UInt32(clamping: next &- times[index]),
        compositionOffset: 0, isSync: true)
    }
    let run = TrackRun(
      track: track.id, timescale: track.timescale, baseDecodeTime: first.time.ticks, samples: samples,
      byteCount: taken.reduce(0) { $0 + $1.payload.readableBytes }, duration: end &- first.time.ticks)
    defer { nextSequenceNumber &+= 1 }
    let ending = MediaTime(ticks: end, timescale: track.timescale)
    let fragment = Fragment(
      sequenceNumber: nextSequenceNumber, startsSegment: startsSegment, isIndependent: true, leader: track.id,
      isExpectedLast: plan.isExpectedLast,
      expectedSegmentDuration: startsSegment ? expectedAudioLength(from: first.time.ticks, of: track) : nil,
      runs: [run],
      payloads: taken.map(\.payload), start: first.time, duration: ending - first.time, end: ending)
    return (fragment, track)
  }

  /// Expected duration of a segment whose first frame has presentation time `first` (ticks of the track). The segment
  /// ends with the last frame that begins before the source's segment ends.
  private func expectedAudioLength(from first: Int64, of track: TrackDescription) -> MediaTime? {
    guard let end = expectedSegmentEnd, let frame = track.sampleDuration.map(Int64.init), frame > 0 else { return nil }
    let whole = (end.rescaled(to: track.timescale) &- first) / frame &* frame
    guard whole > 0 else { return nil }
    let length = MediaTime(ticks: whole, timescale: track.timescale)
    let hasOneMore = MediaTime(ticks: first &+ whole, timescale: track.timescale) < end
    return hasOneMore ? MediaTime(ticks: whole &+ frame, timescale: track.timescale) : length
  }

  private mutating func cutVideo(_ plan: FragmentPlan) -> (Fragment, TrackDescription)? {
    let end = plan.presentationEnd
    let count = frames.firstIndex { $0.time >= end } ?? frames.count
    var taken = Array(frames[..<count])
    frames.removeFirst(count)
    // Frames of fragments that are already cut arrive too late.
    if let resolvedUntil { drop(taken.count { $0.time < resolvedUntil && !$0.isSync }, of: &taken) }
    resolvedUntil = end
    if plan.startsSegment {
      if plan.isIndependent || needsSync { drop(taken.firstIndex(where: \.isSync) ?? taken.count, of: &taken) }
      // A segment without its beginning is not made.
      openSegment = taken.isEmpty ? nil : plan.segment
    } else if openSegment != plan.segment {
      drop(taken.count, of: &taken)
    } else if needsSync {
      drop(taken.firstIndex(where: \.isSync) ?? taken.count, of: &taken)
    }
    guard let track = taken.first?.track else { return nil }
    taken = Array(taken.prefix { $0.track == track })
    needsSync = false
    return (fragment(of: taken, track, plan), track)
  }

  private mutating func drop(_ count: Int, of frames: inout [Frame]) {
    guard count > 0 else { return }
    frames.removeFirst(count)
    needsSync = true
  }

  private mutating func fragment(
    of frames: [Frame], _ track: TrackDescription, _ plan: FragmentPlan
  ) -> Fragment {
    let timescale = track.timescale
    let base = plan.start.rescaled(to: timescale)
    let end = max(base &+ 1, plan.end.rescaled(to: timescale))
    let delay = plan.reorderDelay.rescaled(to: timescale)
    var times: [Int64] = []
    var kept: [Frame] = []
    for frame in frames {
      let presentation = frame.time.rescaled(to: timescale)
      let time = times.last.map { max($0 &+ 1, presentation &- delay) } ?? base
      guard time < end else { break }
      times.append(time)
      kept.append(frame)
    }
    var samples: [RunSample] = []
    for (index, frame) in kept.enumerated() {
      let next = index + 1 < times.count ? times[index + 1] : end
      samples.append(
        RunSample(
          size: UInt32(clamping: frame.payload.readableBytes), duration: UInt32(clamping: next &- times[index]),
          compositionOffset: Int32(clamping: frame.time.rescaled(to: timescale) &- times[index]),
          isSync: frame.isSync))
    }
    let run = TrackRun(
      track: track.id, timescale: timescale, baseDecodeTime: base, samples: samples,
      byteCount: kept.reduce(0) { $0 + $1.payload.readableBytes }, duration: end &- base)
    defer { nextSequenceNumber &+= 1 }
    return Fragment(
      sequenceNumber: nextSequenceNumber, startsSegment: plan.startsSegment,
      isIndependent: kept.first?.isSync ?? false, leader: track.id, isExpectedLast: plan.isExpectedLast,
      expectedSegmentDuration: plan.startsSegment ? plan.expectedSegmentDuration : nil, runs: [run],
      payloads: kept.map(\.payload), start: plan.presentationStart, duration: plan.end - plan.start,
      end: plan.presentationEnd)
  }
}
