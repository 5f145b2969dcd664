internal import FMP4
internal import Storage

/// Whether what comes is worth a file: who publishes for a moment, or changes its format all the time, makes none. It ends with a
/// second of media, with so many bytes that they would be too much to wait for, or where memory is short.
struct RecordingTrial {
  /// In seconds; a second as publishers count it may be a frame less.
  private static let leastMedia = 0.95
  private static let mostBytes = 4 << 20

  /// Media are to wait.
  private(set) var isOn = true
  /// Of the file that was begun last, or that would be begun.
  private var tracks: [TrackDescription]?
  /// Where what waits begins; nil where nothing does.
  private var start: MediaTime?
  private var bytes = 0

  /// Another trial begins with tracks that cannot go on in the same file.
  mutating func change(to tracks: [TrackDescription]) {
    if let known = self.tracks, MovieTables.canHold(known, and: tracks) { return }
    self.tracks = tracks
    isOn = true
    restart()
  }

  /// Nothing waits any more.
  mutating func restart() {
    start = nil
    bytes = 0
  }

  /// A file may begin.
  mutating func pass() {
    isOn = false
  }

  /// Whether a fragment may wait: never half a group of pictures.
  func takes(_ fragment: Fragment) -> Bool { start != nil || fragment.isIndependent }

  /// A fragment waits.
  mutating func add(_ published: PublishedFragment, isMemoryShort: Bool) {
    let fragment = published.fragment
    let start = start ?? fragment.start
    self.start = start
    bytes += published.range.length
    if isMemoryShort || bytes > Self.mostBytes || (fragment.end - start).seconds >= Self.leastMedia { pass() }
  }
}
