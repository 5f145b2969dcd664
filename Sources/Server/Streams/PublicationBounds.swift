internal import FMP4
internal import Ingest
internal import NIOCore

/// Limits what the publishers of a stream may do to it in a minute, over reconnects as well. Each break of the timeline makes a
/// segment. Each change of parameters makes an init segment and a recording.
struct PublicationBounds: Sendable {
  /// What may be set.
  struct Limits: Sendable, Hashable {
    /// Breaks of the timeline a minute: jumps of timestamps, and publications that begin.
    var jumpsPerMinute = 120
    /// Changes of codec, picture size or the like a minute.
    var changesPerMinute = 30
  }

  /// A publication whose media clock advances by less than this share of real time is ended.
  static let slowestPace = 0.2

  private let limits: Limits
  private var jumps: TokenBucket
  private var changes: TokenBucket
  private(set) var pace = MediaPace()
  /// The publication has told its tracks.
  private var knowsTracks = false

  init(_ limits: Limits) {
    self.limits = limits
    jumps = TokenBucket(perMinute: limits.jumpsPerMinute)
    changes = TokenBucket(perMinute: limits.changesPerMinute)
  }

  /// A publication begins, whether it goes on with the stream or begins it anew; false where there were too many breaks. Then
  /// the one that there is goes on as before.
  mutating func begin(now: Int64) -> Bool {
    guard jumps.take(now: now) else { return false }
    knowsTracks = false
    pace = MediaPace()
    return true
  }

  /// Seconds until another break is let through, at least 1.
  var secondsUntilBreak: Int { max(1, Int(jumps.secondsUntilToken.rounded(.up))) }

  /// Why the publication ends with the event; nil where it goes on. `end` is how far its media reaches behind the event.
  mutating func complaint(about event: MediaEvent, end: MediaTime?, now: Int64) -> String? {
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
      return "its codec or picture size changed more than \(limits.changesPerMinute) times in a minute (--max-changes)"
    case .sample(let sample):
      let isNewSecond = pace.add(end: end, bytes: sample.payload.readableBytes, now: now)
      guard isNewSecond, let share = pace.slowShare, share < Self.slowestPace else { return nil }
      return "its timestamps advance by \(Int(share * 100)) % of real time, less than 20, for \(MediaPace.slots) s;"
        + " check the encoder's clock and the uplink"
    case .clock, .progress, .end: return nil
    }
  }
}

/// How fast the media of a publication advances, in each of the last thirty seconds.
struct MediaPace: Sendable {
  /// Seconds that are looked at.
  static let slots = 30
  private static let recentSlots = 10
  private static let leastSpan = 10
  /// What nobody sends in one step.
  private static let longestStep = MediaTime(milliseconds: 10_000)
  /// Nanoseconds that the time between two samples counts for at most: who was held up or paused is not slow for it.
  private static let longestPause: Int64 = 10_000_000_000
  /// The same where the timestamps jumped meanwhile, and nobody knows how far the clock went.
  private static let longestUnknownPause: Int64 = 2_000_000_000
  /// Of less time, counted so, nothing is said.
  private static let leastJudged: Int64 = 20_000_000_000

  private struct Slot: Sendable {
    var second: Int64
    /// Seconds of media.
    var media = 0.0
    /// Nanoseconds between its samples and those before them, pauses cut.
    var span: Int64 = 0
    var bytes = 0
  }

  private var recent: [Slot] = []
  /// The last sample was the first of its second.
  private(set) var isNewSecond = false
  private var end: MediaTime?
  private var start: Int64?
  /// When the last sample came.
  private var arrival: Int64?

  /// The next sample does not continue the last.
  mutating func jump() { end = nil }

  /// `end` is how far the media reaches with the next sample, of so many bytes; `now` in nanoseconds on a monotonic clock.
  /// Returns whether the sample is the first of its second.
  mutating func add(end: MediaTime?, bytes: Int = 0, now: Int64) -> Bool {
    let second = now / 1_000_000_000
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
    guard let end else { return isNew }
    if let last = self.end, last < end {
      recent[index].media += min(end - last, Self.longestStep).seconds
    }
    self.end = max(self.end ?? end, end)
    return isNew
  }

  /// Seconds of media in a second of real time, however many of the seconds had no sample. Nil where pauses leave too little to
  /// judge by: a connection that was held up says nothing of the clock.
  var slowShare: Double? {
    guard let start, let last = recent.last?.second, last &- start >= Int64(Self.slots) else { return nil }
    // The second that has only begun does not count.
    let past = recent.dropLast()
    let span = past.reduce(0) { $0 &+ $1.span }
    guard span >= Self.leastJudged else { return nil }
    return past.reduce(0) { $0 + $1.media } / (Double(span) / 1e9)
  }

  /// Seconds of media in a second of real time, of the last seconds; nil before it is known.
  var recentShare: Double? {
    guard let last = recent.last?.second, let start, last &- start >= Int64(Self.recentSlots) else { return nil }
    let media = recent.filter { $0.second < last && $0.second >= last &- Int64(Self.recentSlots) }
    return media.reduce(0) { $0 + $1.media } / Double(Self.recentSlots)
  }

  /// Bytes that arrive in a second: what came lately, as if it had come over ten seconds at least.
  func bytesPerSecond(now: Int64) -> Int {
    guard let start else { return 0 }
    let elapsed = min(max(now / 1_000_000_000 &- start, Int64(Self.leastSpan)), Int64(Self.slots))
    return recent.reduce(0) { $0 + $1.bytes } / Int(elapsed)
  }
}

extension TokenBucket {
  /// So many at once, and as many again within a minute.
  fileprivate init(perMinute count: Int) {
    self.init(burst: Double(count), perSecond: Double(count) / 60)
  }
}
