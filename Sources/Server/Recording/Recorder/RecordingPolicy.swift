internal import FMP4
package import RecordingFiles

/// What is recorded automatically, how long recordings and files may grow, and how much a power failure may cost.
package struct RecordingPolicy: Sendable, Hashable {
  package var start = Start.automatic
  /// Interval at which written bytes are made durable, in nanoseconds; 0 after each fragment.
  package var syncInterval: Int64 = 1_000_000_000
  /// Nanoseconds of media after which a recording is complete even if its stream goes on; nil for no limit.
  package var maximumDuration: Int64?
  /// Total bytes of its files after which a recording is complete; nil for no limit.
  package var maximumBytes: UInt64?
  package var split = RecordingSplit.never
  /// Files that a stream may begin in an hour, not counting those of the split.
  package var filesPerHour = 120
  /// The same limit, including the files of the split.
  var mostFilesPerHour: Int { filesPerHour + split.filesPerHour }
  package var naming = RecordingNaming.standard
  package var tracks = TrackChoice.all
  /// What a fallback puts in the place of a lost publisher is recorded.
  package var holdsFallback = false

  package init(
    start: Start = .automatic, syncInterval: Int64 = 1_000_000_000, maximumDuration: Int64? = nil,
    maximumBytes: UInt64? = nil, split: RecordingSplit = .never, filesPerHour: Int = 120,
    naming: RecordingNaming = .standard, tracks: TrackChoice = .all
  ) {
    (self.start, self.syncInterval, self.maximumDuration, self.maximumBytes, self.split) = (
      start, syncInterval, maximumDuration, maximumBytes, split
    )
    (self.filesPerHour, self.naming, self.tracks) = (filesPerHour, naming, tracks)
  }

  /// What begins a recording.
  package enum Start: String, Sendable, Hashable, CaseIterable {
    /// When a publisher begins a stream.
    case automatic = "auto"
    /// Only on request over the API.
    case manual
    /// Never.
    case never
  }
}

/// When a recording goes on in another file. A file ends before a segment that can be decoded by itself. The next file begins
/// with that segment, so together the files hold every sample once.
package enum RecordingSplit: Sendable, Hashable {
  case never
  /// After that many nanoseconds of media in a file.
  case length(Int64)
  /// At multiples of that many nanoseconds of the day (UTC).
  case clock(Int64)

  /// Whether a segment that begins at `wall` begins another file. The present file began at `start` and holds `seconds` of media.
  func isDue(at wall: WallTime, fileStart start: WallTime, seconds: Double) -> Bool {
    switch self {
    case .never: return false
    case .length(let length): return seconds * 1_000_000_000 >= Double(length) - Self.rounding
    case .clock(let period): return Self.count(wall, period) > Self.count(start, period)
    }
  }

  /// Files that the split makes in an hour, rounded up.
  fileprivate var filesPerHour: Int {
    switch self {
    case .never: 0
    case .length(let length), .clock(let length): Int(3_600_000_000_000 / max(1_000_000, length)) + 1
    }
  }

  /// Nanoseconds from the start of a file to the earliest start of the next; nil if there is no split.
  func distance(from start: WallTime) -> Int64? {
    switch self {
    case .never: nil
    case .length(let length): length
    case .clock(let period): (Self.count(start, period) &+ 1) &* max(1, period) &- start.nanoseconds
    }
  }

  /// Nanoseconds of tolerance: a segment of two seconds may be a tick shorter.
  private static let rounding = 1_000_000.0

  /// Whole periods since 1970, rounded down.
  private static func count(_ time: WallTime, _ period: Int64) -> Int64 {
    let period = max(1, period)
    let (quotient, rest) = time.nanoseconds.quotientAndRemainder(dividingBy: period)
    return rest < 0 ? quotient - 1 : quotient
  }
}
