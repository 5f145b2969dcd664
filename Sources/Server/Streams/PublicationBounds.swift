internal import Base
internal import FMP4
internal import NIOCore

/// Limits what the publishers of a stream may do per minute, across reconnects. Each break of the timeline makes a segment.
/// Each change of parameters makes an init segment and a recording.
package struct PublicationBounds: Sendable {
  /// The configurable limits.
  package struct Limits: Sendable, Hashable {
    /// Breaks of the timeline per minute: jumps of timestamps, and new publications.
    package var jumpsPerMinute = 120
    /// Changes of codec, frame size and other parameters per minute.
    package var changesPerMinute = 30
  }

  /// A publication whose media clock advances by less than this share of real time is ended.
  static let slowestPace = 0.2

  let limits: Limits
  private var jumps: TokenBucket
  private var changes: TokenBucket
  private(set) var pace = MediaPace()
  /// The publication has sent its tracks.
  private var knowsTracks = false

  init(_ limits: Limits) {
    self.limits = limits
    jumps = TokenBucket(perMinute: limits.jumpsPerMinute)
    changes = TokenBucket(perMinute: limits.changesPerMinute)
  }

  /// Begins a publication, in the current epoch or a new one. False when there were too many breaks; the current publication
  /// then continues.
  mutating func begin(now: MonotonicTime) -> Bool {
    guard jumps.take(now: now) else { return false }
    knowsTracks = false
    pace = MediaPace()
    return true
  }

  /// Seconds until the next break is allowed, at least 1.
  var secondsUntilBreak: Int { max(1, Int(jumps.secondsUntilToken.rounded(.up))) }

  /// Why the event ends the publication; nil when it continues. `end` is the end of its media after the event.
  mutating func violation(about event: MediaEvent, end: MediaTime?, now: MonotonicTime) -> String? {
    switch event {
    case .discontinuity:
      pace.jump()
      guard !jumps.take(now: now) else { return nil }
      return "its timestamps jumped more than \(limits.jumpsPerMinute) times in a minute (--max-jumps);"
        + " check the encoder's clock"
    case .tracks:
      defer { knowsTracks = true }
      pace.jump()
      guard knowsTracks, !changes.take(now: now) else { return nil }
      return "its codec or frame size changed more than \(limits.changesPerMinute) times in a minute (--max-changes)"
    case .sample(let sample):
      let isNewSecond = pace.add(end: end, bytes: sample.payload.readableBytes, now: now)
      guard isNewSecond, let share = pace.slowShare, share < Self.slowestPace else { return nil }
      return "its timestamps advance by \(Int(share * 100)) % of real time, less than 20, for \(MediaPace.slots) s;"
        + " check the encoder's clock and the uplink"
    case .clock, .progress, .end: return nil
    }
  }
}

/// How fast the media of a publication advances, over the last thirty seconds.
struct MediaPace: Sendable {
  /// The number of seconds that are measured.
  static let slots = 30
  private static let recentSlots = 10
  private static let leastSpan = 10
  /// A larger step is not counted as media.
  private static let longestStep = MediaTime(milliseconds: 10_000)
  /// Nanoseconds. A longer time between two samples counts as this long, so that a delayed or paused publisher is not slow.
  private static let longestPause: Int64 = 10_000_000_000
  /// Nanoseconds. The same bound when the timestamps jumped in between, so that the step is unknown.
  private static let longestUnknownPause: Int64 = 2_000_000_000
  /// Nanoseconds. Less measured time gives no result.
  private static let leastJudged: Int64 = 20_000_000_000

  private struct Slot: Sendable {
    var second: Int64
    /// Seconds of media.
    var media = 0.0
    /// Nanoseconds between each of its samples and the previous one, with pauses cut.
    var span: Int64 = 0
    var bytes = 0
  }

  private var recent: [Slot] = []
  /// The last sample was the first of its second.
  private(set) var isNewSecond = false
  /// Nanoseconds by which the last sample moved the end of the media on.
  private(set) var lastStep: Int64 = 0
  private var end: MediaTime?
  private var start: Int64?
  /// When the last sample arrived.
  private var arrival: MonotonicTime?

  /// The next sample does not continue the last one.
  mutating func jump() { end = nil }

  /// Adds a sample of so many bytes. `end` is the end of the media with it. Returns whether it is the first sample of its second.
  mutating func add(end: MediaTime?, bytes: Int = 0, now: MonotonicTime) -> Bool {
    let second = now.nanoseconds / 1_000_000_000
    start = start ?? second
    let isNew = recent.last?.second != second
    isNewSecond = isNew
    if isNew {
      recent.append(Slot(second: second))
      recent.removeAll { second &- $0.second >= Int64(Self.slots) }
    }
    let index = recent.count - 1
    recent[index].bytes &+= bytes
    let gap = arrival.map { max(0, now &- $0) } ?? 0
    arrival = now
    recent[index].span &+= min(gap, self.end == nil ? Self.longestUnknownPause : Self.longestPause)
    lastStep = 0
    guard let end else { return isNew }
    if let last = self.end, last < end {
      let step = min(end - last, Self.longestStep)
      recent[index].media += step.seconds
      lastStep = step.nanoseconds
    }
    self.end = max(self.end ?? end, end)
    return isNew
  }

  /// Seconds of media per second of real time; seconds without samples count too. Nil when pauses leave too little measured
  /// time: a delayed connection says nothing about the clock.
  var slowShare: Double? {
    guard let start, let last = recent.last?.second, last &- start >= Int64(Self.slots) else { return nil }
    // The current second is incomplete and does not count.
    let past = recent.dropLast()
    let span = past.reduce(0) { $0 &+ $1.span }
    guard span >= Self.leastJudged else { return nil }
    return past.reduce(0) { $0 + $1.media } / (Double(span) / 1e9)
  }

  /// Seconds of media per second of real time, over the last ten seconds; nil before that.
  var recentShare: Double? {
    guard let last = recent.last?.second, let start, last &- start >= Int64(Self.recentSlots) else { return nil }
    let media = recent.filter { $0.second < last && $0.second >= last &- Int64(Self.recentSlots) }
    return media.reduce(0) { $0 + $1.media } / Double(Self.recentSlots)
  }

  /// Bytes per second of the recent samples, averaged over at least ten seconds.
  func bytesPerSecond(now: MonotonicTime) -> Int {
    guard let start else { return 0 }
    let elapsed = min(max(now.nanoseconds / 1_000_000_000 &- start, Int64(Self.leastSpan)), Int64(Self.slots))
    return recent.reduce(0) { $0 + $1.bytes } / Int(elapsed)
  }
}

extension TokenBucket {
  /// Allows `count` at once, and as many again per minute.
  fileprivate init(perMinute count: Int) {
    self.init(burst: Double(count), perSecond: Double(count) / 60)
  }
}
