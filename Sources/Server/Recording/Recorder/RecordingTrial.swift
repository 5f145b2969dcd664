internal import FMP4
internal import Storage

/// Decides whether a stream is worth a file. A publisher that stays for a moment, or that keeps changing its format, makes no
/// files. The trial ends after a second of media, after `mostBytes`, or when memory is short.
struct RecordingTrial {
  /// In seconds; a publisher's second may be one frame shorter.
  private static let leastMedia = 0.95
  private static let mostBytes = 4 << 20
  /// A browser may enlarge its picture this many times while its trial lasts.
  private static let mostChanges = 2

  /// The trial goes on: media is held.
  private(set) var isOn = true
  /// Tracks of the last file begun, or of the one that would be begun.
  private var tracks: [TrackDescription]?
  /// Start of the held media; nil if none is held.
  private var start: MediaTime?
  private var bytes = 0
  /// Changes of the tracks since `start`.
  private var changes = 0

  /// The media to come has these tracks. False if what is held must be given up: one file cannot hold both, or they change too
  /// often.
  mutating func goesOn(with tracks: [TrackDescription]) -> Bool {
    if let known = self.tracks, MovieTables.canHold(known, and: tracks) {
      changes += 1
      return !isOn || changes <= Self.mostChanges
    }
    self.tracks = tracks
    isOn = true
    return false
  }

  /// No media is held any more.
  mutating func restart() {
    start = nil
    bytes = 0
    changes = 0
  }

  /// Ends the trial: a file may begin.
  mutating func pass() {
    isOn = false
  }

  /// Whether a fragment may be held. The first must begin a group of pictures.
  func takes(_ fragment: Fragment) -> Bool { start != nil || fragment.isIndependent }

  /// Counts a held fragment.
  mutating func add(_ published: PublishedFragment, isMemoryShort: Bool) {
    let fragment = published.fragment
    let start = start ?? fragment.start
    self.start = start
    bytes += published.range.length
    if isMemoryShort || bytes > Self.mostBytes || (fragment.end - start).seconds >= Self.leastMedia { pass() }
  }
}
