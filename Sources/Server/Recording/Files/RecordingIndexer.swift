internal import FMP4

/// Builds the index of a fragmented file from its fragments' heads, in their order. A value; it knows no file.
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
    case .tracks(let tracks, let offset): index.change(to: tracks, version: index.versions.count + 1, at: offset)
    case .fragment(let walked): add(walked)
    }
  }

  private mutating func add(_ walked: WalkedFragment) {
    var fragment = walked.fragment
    // The clock of a publication is told again with each segment, with the same relation to the media.
    if let clock = walked.clock, anchor?.wallNanoseconds(at: clock.mediaTime) != clock.wallNanoseconds {
      anchor = clock
    }
    if anchor == nil { fragment.startsSegment = Self.startsSegment(fragment, behind: index) }
    let number = index.segments.count + (fragment.startsSegment || !index.isGrowing ? 1 : 0)
    index.add(fragment, number: number, range: walked.offset..<walked.end, anchor: anchor)
  }

  /// Of files in which nothing marks segments: at key frames, a second apart or more.
  private static func startsSegment(_ fragment: Fragment, behind index: RecordingIndex) -> Bool {
    guard let last = index.segments.last else { return true }
    return fragment.isIndependent && index.duration(of: last) >= MediaTime(milliseconds: 1000)
  }
}
