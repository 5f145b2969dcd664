internal import FMP4
internal import NIOCore

/// What waits for the worker, bounded: where it is too much, or the worker is lost, everything up to the next key frame
/// is left out, and it is told from which time on there is something again. A value.
struct TranscodeBacklog: Sendable {
  enum Entry: Sendable {
    case configure(TranscodePlan)
    case picture(TranscodeRequest.SourcePicture)
    /// The worker is to give out what it has; afterwards nothing comes that is shown before the time.
    case drain(nothingBefore: MediaTime)
  }

  /// What waits, and of what clock its times are.
  private struct Waiting: Sendable {
    let entry: Entry
    let timescale: UInt32

    var isPicture: Bool { if case .picture = entry { true } else { false } }

    var isSync: Bool { if case .picture(let picture) = entry { picture.isSync } else { false } }

    var isConfiguration: Bool { if case .configure = entry { true } else { false } }

    /// What it holds, in bytes.
    var size: Int {
      switch entry {
      case .configure(let plan): plan.recordBytes
      case .picture(let picture): picture.payload.readableBytes
      case .drain: 0
      }
    }

    /// Of a picture.
    var decodeTime: MediaTime? {
      guard case .picture(let picture) = entry else { return nil }
      return MediaTime(ticks: picture.decodeTime, timescale: timescale)
    }

    /// Of a picture.
    var presentationTime: MediaTime? {
      guard case .picture(let picture) = entry else { return nil }
      return MediaTime(ticks: picture.presentationTime, timescale: timescale)
    }
  }

  private var entries: [Waiting] = []
  private var bytes = 0
  private var timescale: UInt32 = 90_000
  /// Only a key frame can come next.
  private var awaitsSync = true
  private var newestDecodeTime: MediaTime?
  /// Where the latest picture that was appended ends at least, in presentation time.
  private var newestTime = Int64.min
  /// Pictures that were left out.
  private(set) var discarded = 0

  var isEmpty: Bool { entries.isEmpty }
  /// What waits, pictures and all else.
  var count: Int { entries.count }

  mutating func configure(_ plan: TranscodePlan) {
    if isFull(with: plan.recordBytes) { discardPictures() }
    supersede()
    append(.configure(plan), of: plan.timescale)
    timescale = plan.timescale
    awaitsSync = true
    newestTime = .min
  }

  mutating func append(_ picture: TranscodeRequest.SourcePicture) {
    let decodeTime = MediaTime(ticks: picture.decodeTime, timescale: timescale)
    newestDecodeTime = decodeTime
    newestTime = max(newestTime, picture.presentationTime)
    let size = picture.payload.readableBytes
    // No message holds it; what follows depends on it.
    let isTooLarge = size > TranscodeLimits.sourcePictureBytes
    if isFull(with: isTooLarge ? 0 : size) || isTooOld {
      discardPictures()
      awaitsSync = true
    }
    if isTooLarge { awaitsSync = true }
    guard !isTooLarge, !awaitsSync || picture.isSync else {
      discarded += 1
      appendDrain()
      return
    }
    awaitsSync = false
    append(.picture(picture), of: timescale)
  }

  /// The timeline breaks.
  mutating func drain() {
    guard newestTime != .min else { return }
    appendDrain()
    awaitsSync = true
  }

  /// The worker is lost, with everything that it was given: what waits can only begin with a key frame.
  mutating func restart() {
    let first = entries.firstIndex { $0.isSync }
    let left = entries.prefix(first ?? entries.count)
    discarded += left.count { $0.isPicture }
    // The newest configuration holds; of what was before the key frame nothing comes any more.
    var kept = Array(left.last { $0.isConfiguration }.map { [$0] } ?? [])
    if let first, let time = entries[first].presentationTime {
      kept.append(Waiting(entry: .drain(nothingBefore: time), timescale: time.timescale))
      kept += entries[first...]
    } else if let drain = left.last(where: { !$0.isPicture && !$0.isConfiguration }) {
      kept.append(drain)
    }
    entries = kept
    bytes = entries.reduce(0) { $0 + $1.size }
    guard first == nil else { return }
    awaitsSync = true
    if newestTime != .min { appendDrain() }
  }

  /// The next thing for the worker; a picture knows how late it is.
  mutating func next() -> Entry? {
    guard let waiting = entries.first else { return nil }
    entries.removeFirst()
    bytes -= waiting.size
    guard case .picture(var picture) = waiting.entry else { return waiting.entry }
    picture.lateness = UInt16(clamping: waiting.decodeTime.map(milliseconds(since:)) ?? 0)
    return .picture(picture)
  }

  /// What is to be done without a worker: nothing is inside of one.
  mutating func nextWithoutWorker() -> Entry? {
    entries.first?.isPicture == true ? nil : next()
  }

  // MARK: Bounds

  /// One more of this size would be too much, whatever their times are.
  private func isFull(with size: Int) -> Bool {
    bytes + size > TranscodeLimits.backlogBytes || entries.count >= TranscodeLimits.backlogEntries
  }

  /// The oldest picture, of whatever configuration, waits for too long.
  private var isTooOld: Bool {
    guard let oldest = entries.first(where: \.isPicture)?.decodeTime else { return false }
    return milliseconds(since: oldest) > TranscodeLimits.backlogMilliseconds
  }

  private func milliseconds(since time: MediaTime) -> Int64 {
    guard let newestDecodeTime, newestDecodeTime > time else { return 0 }
    let (ticks, overflow) = newestDecodeTime.ticks.subtractingReportingOverflow(
      time.rescaled(to: newestDecodeTime.timescale))
    guard !overflow, ticks > 0 else { return 0 }
    return MediaTime(ticks: ticks, timescale: newestDecodeTime.timescale).rescaled(to: 1000)
  }

  // MARK: Parts

  private mutating func append(_ entry: Entry, of timescale: UInt32) {
    let waiting = Waiting(entry: entry, timescale: timescale)
    entries.append(waiting)
    bytes += waiting.size
  }

  /// What is left is the newest configuration and a break: a worker that is given the next key frame needs no more.
  private mutating func discardPictures() {
    let pictures = entries.count { $0.isPicture }
    let newest = entries.last { $0.isConfiguration }
    let drain = entries.last { !$0.isPicture && !$0.isConfiguration }
    let shown = entries.last { $0.isPicture }?.presentationTime
    discarded += pictures
    entries = [newest, drain].compactMap(\.self)
    bytes = entries.reduce(0) { $0 + $1.size }
    if newestTime != .min {
      appendDrain()
    } else if drain == nil, let shown {
      append(.drain(nothingBefore: shown), of: shown.timescale)
    }
  }

  /// A configuration of which there are no pictures is nothing to a worker that has the next one.
  private mutating func supersede() {
    let end = entries.lastIndex { $0.isPicture }.map { $0 + 1 } ?? 0
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
