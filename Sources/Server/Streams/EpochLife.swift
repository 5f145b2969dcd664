internal import Base
internal import FMP4
internal import Publishing
internal import Transcode

/// One epoch of a stream from start to end, with its transcoders. The previous epoch is kept while its media is available.
struct EpochLife: Sendable {
  var epoch: Epoch
  private(set) var phase: StreamPhase
  private(set) var phaseSince: MonotonicTime
  /// When its last publisher left, of a stream that waits for the next one or has ended.
  private(set) var offAirSince: MonotonicTime?
  /// A stand-in is on air.
  var isStoodIn = false
  /// Its last publisher had a key, or is a source of this server.
  var isHeld = false
  let startedAt: WallTime
  /// The key frame interval of the previous epoch.
  private let lastGroup: MediaTime?
  private let renderings = EpochRenderings()
  private var previous: (epoch: Epoch, renderings: EpochRenderings, until: MonotonicTime)?
  /// Makes the rungs, from the first frame on.
  var transcoder: LadderTranscoder?
  /// Makes the audio in another codec. A separate worker, so that a failure of the video's does not stop the audio.
  var audioTranscoder: LadderTranscoder?
  /// The tracks that the transcoders were told last; empty after a break.
  var transcoded: [TrackDescription] = []
  /// The rungs are interrupted and can resume with the source's next segment.
  var awaitsSegment = false
  /// The segment for which the encoder was asked for a key frame.
  private var segmentOfKeyFrameRequest = 0
  /// This process is about to end; the next one resumes the epoch.
  var isLeaving = false
  /// No request is kept waiting any more.
  var hasLetGo = false

  init(_ epoch: Epoch, _ phase: StreamPhase, startedAt: WallTime, knownGroup: MediaTime?, now: MonotonicTime) {
    self.epoch = epoch
    self.phase = phase
    self.startedAt = startedAt
    lastGroup = knownGroup
    phaseSince = now
  }

  /// No media has come, neither in this epoch nor in one that is still available.
  var isEmpty: Bool { isWithoutMedia && previous == nil }

  /// No media has come in this epoch.
  var isWithoutMedia: Bool { epoch.initSegment == nil && !epoch.window.isResumed }

  /// Replaces this epoch by the next one.
  mutating func renew(with next: Epoch, startedAt: WallTime, now: MonotonicTime) {
    var life = EpochLife(next, .starting, startedAt: startedAt, knownGroup: knownGroup, now: now)
    life.previous = (epoch, renderings, now &+ StreamSettings.endedAvailability.nanoseconds)
    (life.isLeaving, life.hasLetGo, life.isHeld) = (isLeaving, hasLetGo, isHeld)
    self = life
  }

  /// The phase as viewers have it: with a stand-in on air it is live, whatever its publisher does.
  var shownPhase: StreamPhase {
    if isStoodIn { return epoch.window.hasBegun ? .live : .starting }
    return phase == .offAir && isWithoutMedia ? .starting : phase
  }

  mutating func enter(_ phase: StreamPhase, now: MonotonicTime) {
    guard self.phase != phase else { return }
    switch phase {
    case .starting, .live, .reconnecting: offAirSince = nil
    case .offAir, .ended: offAirSince = offAirSince ?? (self.phase == .reconnecting ? phaseSince : now)
    }
    self.phase = phase
    phaseSince = now
  }

  /// The known key frame interval of this name's encoder.
  var knownGroup: MediaTime? { epoch.longestGroup ?? lastGroup }

  /// The record for the next process, without the Periods.
  var record: EpochRecord? {
    var record = epoch.record
    record?.startedAt = startedAt
    record?.isHeld = isHeld
    return record
  }

  // MARK: The epoch before

  /// The window of a rendition in an epoch that is still available.
  func window(ofEpoch id: String, _ rendition: Rendition) -> LiveWindow? {
    if epoch.id == id { return epoch.window(of: rendition) }
    return previous.flatMap { $0.epoch.id == id ? $0.epoch.window(of: rendition) : nil }
  }

  /// Drops the previous epoch when its time is over. Returns whether it did.
  mutating func forgetPrevious(now: MonotonicTime) -> Bool {
    guard let previous, previous.until <= now else { return false }
    self.previous = nil
    return true
  }

  /// Takes transcoder events for the previous epoch. False when the id is not that of the previous epoch.
  mutating func receive(_ events: [TranscodeEvent], of kind: MediaKind, afterEndOf id: String) -> Bool {
    guard previous?.epoch.id == id else { return false }
    for event in events { try? previous?.epoch.receive(event, of: kind) }
    return true
  }

  // MARK: Memory

  /// Bytes of media in memory.
  var heldBytes: Int { epoch.heldBytes + (previous?.epoch.heldBytes ?? 0) }

  /// Drops the oldest segments until at most `bytes` are in memory.
  mutating func shrink(to bytes: Int) {
    _ = previous?.epoch.shrink(to: max(0, bytes - epoch.heldBytes))
    if heldBytes > bytes { previous = nil }
    _ = epoch.shrink(to: bytes)
  }

  // MARK: Seen from outside

  /// The current view. It may reveal times of day, so the epoch counts as dated from then on.
  mutating func view() -> StreamView {
    if epoch.window.tellsDates { epoch.isDated = true }
    return StreamView(epoch.viewWithRungs, renderings: renderings, phase: shownPhase, hasLetGo: hasLetGo)
  }

  /// The view of an epoch that is still available.
  mutating func view(ofEpoch id: String) -> StreamView? {
    if epoch.id == id { return view() }
    return previous.flatMap { previous in
      previous.epoch.id != id
        ? nil
        : StreamView(previous.epoch.viewWithRungs, renderings: previous.renderings, phase: .ended, hasLetGo: hasLetGo)
    }
  }

  /// Whether the condition holds. `expected` holds the names of the rungs that are being started.
  func isMet(_ condition: WaitQueue.Condition, expecting expected: [String]) -> Bool {
    switch condition {
    case .beginning: epoch.window.hasBegun && epoch.hasRungs(expected, withSegments: false)
    case .release: epoch.window.isReleased && epoch.hasRungs(expected, withSegments: true)
    case .part(let position, let rendition, let id):
      window(ofEpoch: id, rendition)?.hasReached(position, in: rendition) ?? true
    case .segment(let number, let rendition, let id):
      window(ofEpoch: id, rendition)?.hasReached(segment: number, in: rendition) ?? true
    }
  }

  /// Whether the condition can no longer come true. A rung's last frames come after the end of its epoch.
  func isOver(_ condition: WaitQueue.Condition) -> Bool {
    switch condition {
    case .beginning, .release: phase == .ended
    case .part(_, let rendition, let id), .segment(_, let rendition, let id):
      (phase == .ended || id != epoch.id)
        && (!rendition.isRung || window(ofEpoch: id, rendition)?.isEnded ?? true)
    }
  }

  // MARK: Key frames

  /// How long before a segment reaches its target a key frame is asked for: a part, a round trip and a frame.
  private static let keyFrameLead = MediaTime(milliseconds: 300)

  /// Whether to ask the encoder for a key frame, because segments end with one. True when a request waits for the end of the
  /// segment and the segment is as long as its target. At most once per segment, however many requests wait.
  ///
  /// - Parameter isAwaited: a request waits for the first segment: players take a playlist without segments for a broken one.
  ///   It counts only when the target duration is decided: a shortened first GOP would promise too short a target.
  /// - Parameter keyFrames: of a publisher that makes them as it is asked each segment wants one, in time for its target.
  mutating func wantsKeyFrame(
    after target: MediaTime, isAwaited: Bool, of keyFrames: PublishRequest.KeyFrames?
  ) -> Bool {
    guard let segment = epoch.window.segments.last, !segment.isComplete,
      segmentOfKeyFrameRequest != segment.sequenceNumber
    else { return false }
    let due = CutPolicy.keyFrameDistance(target, epoch.window.targetDuration)
    let lead = min(Self.keyFrameLead, CutPolicy.syncTolerance(ofTarget: due))
    let isDue = keyFrames == .asAsked && segment.duration + lead >= due
    guard
      isDue
        || segment.duration >= target
          && (awaitsSegment && transcoder?.status.worker == .running
            || isAwaited && epoch.window.targetDuration != nil && !epoch.window.isReleased)
    else { return false }
    segmentOfKeyFrameRequest = segment.sequenceNumber
    return true
  }

  // MARK: Transcoders

  /// The names of the rungs that are being made.
  var expectedRungs: [String] { (transcoder?.status.rungs ?? []) + (audioTranscoder?.status.rungs ?? []) }
}
