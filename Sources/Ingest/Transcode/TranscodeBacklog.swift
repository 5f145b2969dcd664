internal import Base
internal import FMP4
internal import NIOCore

/// Bounded queue of input for the worker. If it is full, or the worker is lost, everything up to the next key frame is
/// dropped. A `drain` entry then states from which time on frames follow. A value type.
struct TranscodeBacklog: Sendable {
  enum Entry: Sendable {
    case configure(TranscodePlan)
    case frame(TranscodeRequest.SourceFrame)
    /// The worker outputs everything it has. After that, no frame is shown before this time.
    case drain(nothingBefore: MediaTime)
  }

  /// An entry, and the timescale of its times.
  private struct Waiting: Sendable {
    let entry: Entry
    let timescale: UInt32
    /// When it came.
    var arrived = MonotonicTime.zero

    var isFrame: Bool { if case .frame = entry { true } else { false } }

    var isSync: Bool { if case .frame(let frame) = entry { frame.isSync } else { false } }

    var isConfiguration: Bool { if case .configure = entry { true } else { false } }

    /// Bytes that it holds.
    var size: Int {
      switch entry {
      case .configure(let plan): plan.recordBytes
      case .frame(let frame): frame.payload.readableBytes
      case .drain: 0
      }
    }

    /// Nil if the entry is not a frame.
    var decodeTime: MediaTime? {
      guard case .frame(let frame) = entry else { return nil }
      return MediaTime(ticks: frame.decodeTime, timescale: timescale)
    }

    /// Nil if the entry is not a frame.
    var presentationTime: MediaTime? {
      guard case .frame(let frame) = entry else { return nil }
      return MediaTime(ticks: frame.presentationTime, timescale: timescale)
    }
  }

  private var entries = CircularBuffer<Waiting>()
  private(set) var bytes = 0
  private var timescale: UInt32 = 90_000
  /// What the frames are of. Video waits by media time, since a worker that falls behind only gets later. Audio waits by
  /// time of arrival, and by number alone where a publisher sends faster than it plays: nothing of that is lost while the
  /// worker is served late.
  private var kind = MediaKind.video
  /// The next frame must be a key frame.
  private var awaitsSync = true
  private var newestDecodeTime: MediaTime?
  /// Latest presentation time that was appended.
  private var newestTime = Int64.min
  /// Number of dropped frames.
  private(set) var discarded = 0

  var isEmpty: Bool { entries.isEmpty }
  /// Number of entries of all kinds.
  var count: Int { entries.count }

  mutating func configure(_ plan: TranscodePlan) {
    if isFull(with: plan.recordBytes) { discardFrames() }
    supersede()
    append(.configure(plan), of: plan.timescale)
    timescale = plan.timescale
    kind = plan.source.kind
    awaitsSync = true
    newestTime = .min
  }

  /// `now` is the time of arrival. With the frame, the queue has no more than `most` bytes.
  mutating func append(_ frame: TranscodeRequest.SourceFrame, now: MonotonicTime, most: Int = .max) {
    let decodeTime = MediaTime(ticks: frame.decodeTime, timescale: timescale)
    newestDecodeTime = decodeTime
    newestTime = max(newestTime, frame.presentationTime)
    let size = frame.payload.readableBytes
    // It fits into no message, and later frames depend on it.
    let isTooLarge = size > min(TranscodeLimits.sourceFrameBytes, most)
    if isFull(with: isTooLarge ? 0 : size, most: most) || isTooOld(now) {
      discardFrames()
      awaitsSync = true
    }
    if isTooLarge { awaitsSync = true }
    guard !isTooLarge, !awaitsSync || frame.isSync else {
      discarded += 1
      appendDrain()
      return
    }
    awaitsSync = false
    append(.frame(frame), of: timescale, now: now)
  }

  /// Drops all frames: no worker will take them.
  mutating func abandon() { discardFrames() }

  /// Handles a break of the timeline.
  mutating func drain() {
    guard newestTime != .min else { return }
    appendDrain()
    awaitsSync = true
  }

  /// Handles the loss of the worker with all its input. The queue then begins with a key frame.
  mutating func restart() {
    let first = entries.firstIndex { $0.isSync }
    let left = entries[..<(first ?? entries.endIndex)]
    discarded += left.count { $0.isFrame }
    // Keeps the newest configuration. Frames before the key frame are lost.
    var kept = CircularBuffer(left.last { $0.isConfiguration }.map { [$0] } ?? [])
    if let first, let time = entries[first].presentationTime {
      kept.append(Waiting(entry: .drain(nothingBefore: time), timescale: time.timescale))
      kept += entries[first...]
    } else if let drain = left.last(where: { !$0.isFrame && !$0.isConfiguration }) {
      kept.append(drain)
    }
    entries = kept
    bytes = entries.reduce(0) { $0 + $1.size }
    guard first == nil else { return }
    awaitsSync = true
    if newestTime != .min { appendDrain() }
  }

  /// The next entry for the worker. A frame gets its lateness.
  mutating func next() -> Entry? {
    guard let waiting = entries.first else { return nil }
    entries.removeFirst()
    bytes -= waiting.size
    guard case .frame(var frame) = waiting.entry else { return waiting.entry }
    frame.lateness = UInt16(clamping: waiting.decodeTime.map(milliseconds(since:)) ?? 0)
    return .frame(frame)
  }

  /// The next entry that needs no worker. Without a worker, none holds frames.
  mutating func nextWithoutWorker() -> Entry? {
    entries.first?.isFrame == true ? nil : next()
  }

  // MARK: Bounds

  /// Whether an entry of this size exceeds the limits, whatever the times are.
  private func isFull(with size: Int, most: Int = .max) -> Bool {
    let count = kind == .audio ? TranscodeLimits.audioBacklogEntries : TranscodeLimits.backlogEntries
    return bytes + size > min(TranscodeLimits.backlogBytes, most) || entries.count >= count
  }

  /// Whether the oldest frame, of any configuration, has waited too long.
  private func isTooOld(_ now: MonotonicTime) -> Bool {
    guard let oldest = entries.first(where: \.isFrame), let decodeTime = oldest.decodeTime else { return false }
    switch kind {
    case .video: return milliseconds(since: decodeTime) > TranscodeLimits.backlogMilliseconds
    case .audio:
      let waited = now &- oldest.arrived
      // Where what waits plays twice as long as it has waited, the publisher sends a file: nobody watches its newest media.
      return waited > TranscodeLimits.audioBacklog && milliseconds(since: decodeTime) <= 2 * waited / 1_000_000
    }
  }

  private func milliseconds(since time: MediaTime) -> Int64 {
    guard let newestDecodeTime, newestDecodeTime > time else { return 0 }
    let (ticks, overflow) = newestDecodeTime.ticks.subtractingReportingOverflow(
      time.rescaled(to: newestDecodeTime.timescale))
    guard !overflow, ticks > 0 else { return 0 }
    return MediaTime(ticks: ticks, timescale: newestDecodeTime.timescale).rescaled(to: 1000)
  }

  // MARK: Parts

  private mutating func append(_ entry: Entry, of timescale: UInt32, now: MonotonicTime = .zero) {
    let waiting = Waiting(entry: entry, timescale: timescale, arrived: now)
    entries.append(waiting)
    bytes += waiting.size
  }

  /// Drops all frames. Keeps the newest configuration and a break, which is all that a worker needs before the next key
  /// frame.
  private mutating func discardFrames() {
    let frames = entries.count { $0.isFrame }
    let newest = entries.last { $0.isConfiguration }
    let drain = entries.last { !$0.isFrame && !$0.isConfiguration }
    let shown = entries.last { $0.isFrame }?.presentationTime
    discarded += frames
    entries = CircularBuffer([newest, drain].compactMap(\.self))
    bytes = entries.reduce(0) { $0 + $1.size }
    if newestTime != .min {
      appendDrain()
    } else if drain == nil, let shown {
      append(.drain(nothingBefore: shown), of: shown.timescale)
    }
  }

  /// Drops configurations that no frame follows, because a new one replaces them.
  private mutating func supersede() {
    let end = entries.lastIndex { $0.isFrame }.map { entries.index(after: $0) } ?? entries.startIndex
    let drain = entries[end...].last { !$0.isConfiguration }
    bytes -= entries[end...].reduce(0) { $0 + $1.size }
    entries.removeSubrange(end...)
    if let drain { entries.append(drain) }
  }

  private mutating func appendDrain() {
    if case .drain = entries.last?.entry { entries.removeLast() }
    append(.drain(nothingBefore: MediaTime(ticks: newestTime &+ 1, timescale: timescale)), of: timescale)
  }
}
