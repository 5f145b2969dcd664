internal import NIOCore

/// Cuts another rendition of a picture exactly where the stream's own was cut: its fragments begin at the same decode
/// times and belong to the same segments. A value: plans, pictures and losses in, fragments out, in the plans' order.
/// Audio, whose frames are what they are, is cut at the first of its frames from there on.
///
/// The pictures come in the order in which they are shown. Their decode times are laid so that a segment's first is the
/// source's: presentation times, less the reorder delay that the source's segment begins with. Where the source's group of
/// pictures is open, a segment begins with the first of the pictures that are shown before the source's key frame.
package struct AlignedSegmenter: Sendable {
  /// A picture of the rendition.
  private struct Picture {
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

  /// What was cut.
  package enum Cut: Sendable {
    /// A fragment of the planned segment.
    case fragment(Fragment, TrackDescription, segment: Int)
    /// Everything that there is of the segment has been cut.
    case segmentEnd(segment: Int)
  }

  /// More plans than this do not wait for their pictures: about a minute of fragments.
  package static let planLimit = 600
  /// More pictures than this do not wait for their plans.
  package static let pictureLimit = 2400

  private let kind: MediaKind
  private var steps: [Step] = []
  private var pictures: [Picture] = []
  /// No picture that is shown before this time comes any more.
  private var lostBefore: MediaTime?
  /// What comes next cannot be decoded unless it is a key frame: the picture before it was not given out.
  private var needsSync = true
  /// The segment that has got its first fragment.
  private var openSegment: Int?
  private var nextSequenceNumber: UInt32 = 1
  /// Where the last fragment ended, in presentation time.
  private var resolvedUntil: MediaTime?
  /// Of audio: where the source's segment is expected to end, while that is known.
  private var expectedSegmentEnd: MediaTime?

  package init(_ kind: MediaKind = .video) { self.kind = kind }

  /// How many plans wait for their pictures.
  package var waitingPlans: Int { steps.count }

  /// The source's next fragment.
  package mutating func plan(_ fragment: FragmentPlan) -> [Cut] {
    steps.append(.fragment(fragment))
    return advance()
  }

  /// The source's segment is complete with the fragments planned so far.
  package mutating func endSegment(_ segment: Int) -> [Cut] {
    steps.append(.segmentEnd(segment))
    return advance()
  }

  /// The next picture; `sample.decodeTime` plus its offset is when it is shown.
  package mutating func take(_ sample: Sample, of track: TrackDescription) -> [Cut] {
    let time = MediaTime(
      ticks: sample.decodeTime &+ Int64(sample.compositionOffset), timescale: track.timescale)
    if pictures.count >= Self.pictureLimit {
      pictures.removeAll()
      needsSync = true
    }
    pictures.append(Picture(time: time, isSync: sample.isSync, payload: sample.payload, track: track))
    return advance()
  }

  /// Of what is shown before this time nothing comes any more that is not here.
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

  /// Every picture of the fragment is here, or will not come.
  private func isResolved(_ plan: FragmentPlan) -> Bool {
    let end = plan.presentationEnd
    if plan.start >= plan.end { return true }
    if let lostBefore, lostBefore >= end { return true }
    guard let last = pictures.last else { return false }
    if kind == .audio { return Self.end(of: last) >= end }
    // At a constant rate the last picture tells that it is the last; else the one after it does.
    let length = MediaTime(ticks: Int64(last.track.frameDuration ?? 0), timescale: last.track.timescale)
    let slack = MediaTime(ticks: length.ticks / 2, timescale: length.timescale)
    return last.time + length + slack > end
  }

  private mutating func cut(_ plan: FragmentPlan) -> (Fragment, TrackDescription)? {
    kind == .audio ? cutAudio(plan) : cutPicture(plan)
  }

  private static func end(of frame: Picture) -> MediaTime {
    frame.time + MediaTime(ticks: Int64(frame.track.sampleDuration ?? 1), timescale: frame.time.timescale)
  }

  /// The frames that begin before the fragment's end. A segment begins with the first of them that there is.
  private mutating func cutAudio(_ plan: FragmentPlan) -> (Fragment, TrackDescription)? {
    if plan.startsSegment { expectedSegmentEnd = plan.expectedSegmentDuration.map { plan.presentationStart + $0 } }
    let count = pictures.firstIndex { $0.time >= plan.end } ?? pictures.count
    var taken = Array(pictures[..<count])
    pictures.removeFirst(count)
    // What was there before the source's first has no place.
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

  /// How long a segment will be whose first frame is shown at that time (ticks of the track): it ends with the last frame
  /// that begins before the source's segment ends.
  private func expectedAudioLength(from first: Int64, of track: TrackDescription) -> MediaTime? {
    guard let end = expectedSegmentEnd, let frame = track.sampleDuration.map(Int64.init), frame > 0 else { return nil }
    let whole = (end.rescaled(to: track.timescale) &- first) / frame &* frame
    guard whole > 0 else { return nil }
    let length = MediaTime(ticks: whole, timescale: track.timescale)
    let hasOneMore = MediaTime(ticks: first &+ whole, timescale: track.timescale) < end
    return hasOneMore ? MediaTime(ticks: whole &+ frame, timescale: track.timescale) : length
  }

  private mutating func cutPicture(_ plan: FragmentPlan) -> (Fragment, TrackDescription)? {
    let end = plan.presentationEnd
    let count = pictures.firstIndex { $0.time >= end } ?? pictures.count
    var taken = Array(pictures[..<count])
    pictures.removeFirst(count)
    // What belongs to fragments that are cut already comes too late.
    if let resolvedUntil { drop(taken.count { $0.time < resolvedUntil && !$0.isSync }, of: &taken) }
    resolvedUntil = end
    if plan.startsSegment {
      if plan.isIndependent || needsSync { drop(taken.firstIndex(where: \.isSync) ?? taken.count, of: &taken) }
      // A segment without its beginning is none.
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

  private mutating func drop(_ count: Int, of pictures: inout [Picture]) {
    guard count > 0 else { return }
    pictures.removeFirst(count)
    needsSync = true
  }

  private mutating func fragment(
    of pictures: [Picture], _ track: TrackDescription, _ plan: FragmentPlan
  ) -> Fragment {
    let timescale = track.timescale
    let base = plan.start.rescaled(to: timescale)
    let end = max(base &+ 1, plan.end.rescaled(to: timescale))
    let delay = plan.reorderDelay.rescaled(to: timescale)
    var times: [Int64] = []
    var kept: [Picture] = []
    for picture in pictures {
      let presentation = picture.time.rescaled(to: timescale)
      let time = times.last.map { max($0 &+ 1, presentation &- delay) } ?? base
      guard time < end else { break }
      times.append(time)
      kept.append(picture)
    }
    var samples: [RunSample] = []
    for (index, picture) in kept.enumerated() {
      let next = index + 1 < times.count ? times[index + 1] : end
      samples.append(
        RunSample(
          size: UInt32(clamping: picture.payload.readableBytes), duration: UInt32(clamping: next &- times[index]),
          compositionOffset: Int32(clamping: picture.time.rescaled(to: timescale) &- times[index]),
          isSync: picture.isSync))
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
