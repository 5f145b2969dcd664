internal import FMP4
internal import Storage
internal import Streams

/// Decides whether a stream is worth a file. A publisher that stays for a moment, or that keeps changing its format, makes no
/// files. The trial ends after a second of media, after `mostBytes`, or when memory is short.
struct RecordingTrial {
  /// In seconds; a publisher's second may be one frame shorter.
  private static let leastMedia = 0.95
  private static let mostBytes = 4 << 20
  /// Most discontinuities within the held media. A browser that enlarges its picture makes one each time, and so does a
  /// connection that was lost.
  private static let mostBreaks = 2

  /// The trial goes on: media is held.
  private(set) var isOn = true
  /// Tracks of the last file begun, or of the one that would be begun.
  private var tracks: [TrackDescription]?
  /// Length of the held media in seconds; nil if none is held.
  private var media: Double?
  private var bytes = 0
  /// Discontinuities since the held media began.
  private var breaks = 0

  /// The media to come has these tracks. False if what is held must be given up: one file cannot hold both.
  mutating func goesOn(with tracks: [TrackDescription]) -> Bool {
    if let known = self.tracks, MovieTables.canHold(known, and: tracks) { return true }
    self.tracks = tracks
    isOn = true
    return false
  }

  /// Counts a discontinuity in the media; changed tracks come after one. False if there were too many: what is held must be given up.
  mutating func goesOnAfterBreak() -> Bool {
    breaks += 1
    return !isOn || breaks <= Self.mostBreaks
  }

  /// No media is held any more.
  mutating func restart() {
    media = nil
    bytes = 0
    breaks = 0
  }

  /// Ends the trial: a file may begin.
  mutating func pass() {
    isOn = false
  }

  /// Whether a fragment may be held. The first must begin a group of pictures.
  func takes(_ fragment: Fragment) -> Bool { media != nil || fragment.isIndependent }

  /// Counts a held fragment.
  mutating func add(_ published: PublishedFragment, isMemoryShort: Bool) {
    let fragment = published.fragment
    let media = (media ?? 0) + fragment.duration.seconds
    self.media = media
    bytes += published.range.length
    if isMemoryShort || bytes > Self.mostBytes || media >= Self.leastMedia { pass() }
  }
}
