internal import FMP4
internal import Ingest

/// One epoch of a stream from its beginning to its end, and what belongs to it. The epoch before is kept while its media are
/// available.
struct EpochLife: Sendable {
  var epoch: Epoch
  private(set) var phase: StreamPhase
  /// Monotonic, in nanoseconds.
  private(set) var phaseSince: Int64
  /// When its last publisher left, once it has ended; monotonic, in nanoseconds.
  private(set) var offAirSince: Int64?
  /// Nanoseconds since 1970.
  let startedAt: Int64
  /// The distance of key frames of the name before.
  private let lastGroup: MediaTime?
  private let renderings = EpochRenderings()
  private var previous: (epoch: Epoch, renderings: EpochRenderings, until: Int64)?
  /// Makes its rungs, from its first picture on.
  var transcoder: LadderTranscoder?
  /// Makes its audio in another codec. A worker of its own: what ends the picture's leaves the audio alone.
  var audioTranscoder: LadderTranscoder?
  /// The rungs are interrupted, and can begin again with the source's next segment.
  var awaitsSegment = false
  /// The segment in which the encoder was asked for a key frame.
  private var hastenedSegment = 0
  /// This process goes; the next one goes on with the epoch.
  var isLeaving = false
  /// Nobody is kept waiting any more.
  var hasLetGo = false

  init(_ epoch: Epoch, _ phase: StreamPhase, startedAt: Int64, knownGroup: MediaTime?, now: Int64) {
    self.epoch = epoch
    self.phase = phase
    self.startedAt = startedAt
    lastGroup = knownGroup
    phaseSince = now
  }

  /// The stream begins anew with this epoch.
  mutating func renew(with next: Epoch, startedAt: Int64, now: Int64) {
    var life = EpochLife(next, .starting, startedAt: startedAt, knownGroup: knownGroup, now: now)
    life.previous = (epoch, renderings, now &+ StreamSettings.endedAvailability.nanoseconds)
    (life.isLeaving, life.hasLetGo) = (isLeaving, hasLetGo)
    self = life
  }

  mutating func enter(_ phase: StreamPhase, now: Int64) {
    guard self.phase != phase else { return }
    offAirSince = phase != .ended ? nil : self.phase == .reconnecting ? phaseSince : now
    self.phase = phase
    phaseSince = now
  }

  /// The distance of key frames that the name's encoder is known to use.
  var knownGroup: MediaTime? { epoch.longestGroup ?? lastGroup }

  /// What the next process has to know of it, but for the Periods.
  var record: EpochRecord? {
    var record = epoch.record
    record?.startedAt = startedAt
    return record
  }

  // MARK: The epoch before

  /// The window of a rendition, of an epoch that is still available.
  func window(ofEpoch id: String, _ rendition: Rendition) -> LiveWindow? {
    if epoch.id == id { return epoch.window(of: rendition) }
    return previous.flatMap { $0.epoch.id == id ? $0.epoch.window(of: rendition) : nil }
  }

  /// Whether the epoch before has gone, its time being over.
  mutating func forgetPrevious(now: Int64) -> Bool {
    guard let previous, previous.until <= now else { return false }
    self.previous = nil
    return true
  }

  /// Takes what a transcoder made for the epoch before. False where it is for none.
  mutating func receive(_ events: [TranscodeEvent], of kind: MediaKind, afterEndOf id: String) -> Bool {
    guard previous?.epoch.id == id else { return false }
    for event in events { try? previous?.epoch.receive(event, of: kind) }
    return true
  }

  // MARK: Memory

  /// Bytes of media that it keeps in memory.
  var heldBytes: Int { epoch.heldBytes + (previous?.epoch.heldBytes ?? 0) }

  /// Forgets the oldest segments until it keeps no more bytes than that.
  mutating func shrink(to bytes: Int) {
    _ = previous?.epoch.shrink(to: max(0, bytes - epoch.heldBytes))
    if heldBytes > bytes { previous = nil }
    _ = epoch.shrink(to: bytes)
  }

  // MARK: Seen from outside

  /// The stream as it is now. Who sees something in it may tell others the times of day that it says.
  mutating func view() -> StreamView {
    if epoch.window.targetDuration != nil, !epoch.window.segments.isEmpty { epoch.isDated = true }
    return StreamView(epoch.viewWithRungs, renderings: renderings, phase: phase, hasLetGo: hasLetGo)
  }

  /// The same with an epoch that is still available.
  mutating func view(ofEpoch id: String) -> StreamView? {
    if epoch.id == id { return view() }
    return previous.flatMap { previous in
      previous.epoch.id != id
        ? nil
        : StreamView(previous.epoch.viewWithRungs, renderings: previous.renderings, phase: .ended, hasLetGo: hasLetGo)
    }
  }

  /// Whether nobody has to wait for that; `expected` are the names of the rungs that are on their way.
  func isMet(_ condition: WaitQueue.Condition, expecting expected: [String]) -> Bool {
    switch condition {
    case .beginning: epoch.window.hasBegun && epoch.hasRungs(expected, withSegments: false)
    case .release: epoch.window.isReleased && epoch.hasRungs(expected, withSegments: true)
    case .part(let position, let rendition):
      epoch.window(of: rendition)?.hasReached(position, in: rendition) ?? true
    case .segment(let number, let rendition):
      epoch.window(of: rendition)?.hasReached(.segment(number), in: rendition) ?? true
    }
  }

  // MARK: Key frames

  /// Segments end with a key frame. The encoder is asked for one when a request waits for the segment's end and the segment is
  /// as long as its target. True once a segment, however many requests wait.
  ///
  /// - Parameter isAwaited: somebody waits for the first segment: players take a playlist without one for a broken one. That
  ///   counts where the target duration is decided: a first group that is shorter than the others would promise too short a
  ///   one.
  mutating func wantsKeyFrame(after target: MediaTime, isAwaited: Bool) -> Bool {
    guard let segment = epoch.window.segments.last, !segment.isComplete, segment.duration >= target,
      hastenedSegment != segment.sequenceNumber,
      (awaitsSegment && transcoder?.status.worker == .running)
        || (isAwaited && epoch.window.targetDuration != nil && !epoch.window.isReleased)
    else { return false }
    hastenedSegment = segment.sequenceNumber
    return true
  }

  // MARK: Transcoders

  /// The rungs that are being made.
  var expectedRungs: [String] { (transcoder?.status.rungs ?? []) + (audioTranscoder?.status.rungs ?? []) }

  /// The versions of the rungs' windows.
  var rungVersions: [Int] { epoch.rungs.map(\.window.version) }
}
