internal import FMP4
internal import RecordingFormat

/// Builds the index of a fragmented file from the headers of its fragments, in order. A value; it uses no file.
struct RecordingIndexer {
  private var index = RecordingIndex()
  private var anchor: WallClockAnchor?

  /// The index of what was added.
  var finished: RecordingIndex {
    var index = index
    index.finish()
    return index
  }

  mutating func add(_ found: RecordingScanner.Found) {
    switch found {
    case .tracks(let tracks, let offset):
      index.change(to: InitSegment(version: index.versions.count + 1, tracks: tracks), at: offset)
    case .fragment(let walked): add(walked)
    }
  }

  private mutating func add(_ walked: WalkedFragment) {
    var fragment = walked.fragment
    // The clock of a publication is repeated in each segment, with the same relation to the media.
    if let clock = walked.clock, anchor?.wallTime(at: clock.mediaTime) != clock.wallTime {
      anchor = clock
    }
    if anchor == nil { fragment.startsSegment = Self.startsSegment(fragment, behind: index) }
    let number = index.segments.count + (fragment.startsSegment || !index.isGrowing ? 1 : 0)
    index.add(fragment, number: number, range: walked.offset..<walked.end, anchor: anchor)
  }

  /// For files that do not mark segments: a segment starts at key frames at least one second apart.
  private static func startsSegment(_ fragment: Fragment, behind index: RecordingIndex) -> Bool {
    guard let last = index.segments.last else { return true }
    return fragment.isIndependent && index.duration(of: last) >= MediaTime(milliseconds: 1000)
  }
}
