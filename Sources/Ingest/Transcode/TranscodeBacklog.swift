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

  private var entries: [Entry] = []
  private var bytes = 0
  private var timescale: UInt32 = 90_000
  /// Only a key frame can come next.
  private var awaitsSync = true
  private var newestDecodeTime = Int64.min
  /// Where the latest picture that was appended ends at least, in presentation time.
  private var newestTime = Int64.min
  /// Pictures that were left out.
  private(set) var discarded = 0

  var isEmpty: Bool { entries.isEmpty }

  mutating func configure(_ plan: TranscodePlan) {
    entries.append(.configure(plan))
    timescale = plan.timescale
    awaitsSync = true
    newestDecodeTime = .min
    newestTime = .min
  }

  mutating func append(_ picture: TranscodeRequest.SourcePicture) {
    newestDecodeTime = picture.decodeTime
    newestTime = max(newestTime, picture.presentationTime)
    if let oldest,
      milliseconds(from: oldest) > TranscodeLimits.backlogMilliseconds || bytes > TranscodeLimits.backlogBytes
    {
      discardPictures()
      awaitsSync = true
    }
    guard !awaitsSync || picture.isSync else {
      discarded += 1
      appendDrain()
      return
    }
    awaitsSync = false
    entries.append(.picture(picture))
    bytes += picture.payload.readableBytes
  }

  /// The timeline breaks.
  mutating func drain() {
    guard newestTime != .min else { return }
    appendDrain()
    awaitsSync = true
  }

  /// The worker is lost, with everything that it was given: what waits can only begin with a key frame.
  mutating func restart() {
    let first = entries.firstIndex { entry in
      if case .picture(let picture) = entry { return picture.isSync }
      return false
    }
    let left = entries.prefix(first ?? entries.count)
    discarded += left.count { if case .picture = $0 { true } else { false } }
    // Configurations and breaks hold.
    let next: MediaTime? = first.flatMap { index in
      if case .picture(let picture) = entries[index] { return time(picture.presentationTime) }
      return nil
    }
    var kept = left.filter { if case .picture = $0 { false } else { true } }
    if let next { kept.append(.drain(nothingBefore: next)) }
    entries = kept + (first.map { Array(entries[$0...]) } ?? [])
    bytes = entries.reduce(0) { sum, entry in
      if case .picture(let picture) = entry { return sum + picture.payload.readableBytes }
      return sum
    }
    guard first == nil else { return }
    awaitsSync = true
    if newestTime != .min { appendDrain() }
  }

  /// The next thing for the worker; a picture knows how late it is.
  mutating func next() -> Entry? {
    guard !entries.isEmpty else { return nil }
    let entry = entries.removeFirst()
    guard case .picture(var picture) = entry else { return entry }
    bytes -= picture.payload.readableBytes
    picture.lateness = UInt16(clamping: milliseconds(from: picture.decodeTime))
    return .picture(picture)
  }

  /// What is to be done without a worker: nothing is inside of one.
  mutating func nextWithoutWorker() -> Entry? {
    if case .picture = entries.first { return nil }
    return next()
  }

  // MARK: Parts

  private func time(_ ticks: Int64) -> MediaTime { MediaTime(ticks: ticks, timescale: timescale) }

  /// Decode time of the oldest picture of the present configuration.
  private var oldest: Int64? {
    var oldest: Int64?
    for entry in entries {
      switch entry {
      case .configure: oldest = nil
      case .picture(let picture): oldest = oldest ?? picture.decodeTime
      case .drain: break
      }
    }
    return oldest
  }

  private func milliseconds(from time: Int64) -> Int64 {
    let (ticks, overflow) = newestDecodeTime.subtractingReportingOverflow(time)
    guard !overflow, ticks > 0 else { return 0 }
    return self.time(ticks).rescaled(to: 1000)
  }

  private mutating func discardPictures() {
    let count = entries.count
    entries.removeAll { if case .picture = $0 { true } else { false } }
    discarded += count - entries.count
    bytes = 0
    if count > entries.count { appendDrain() }
  }

  private mutating func appendDrain() {
    if case .drain = entries.last { entries.removeLast() }
    entries.append(.drain(nothingBefore: time(newestTime &+ 1)))
  }
}
