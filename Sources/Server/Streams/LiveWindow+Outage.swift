internal import FMP4
internal import Storage

/// The time in which nobody published. The media's timeline goes on without it. Playlists list it as segments that are
/// gaps (EXT-X-GAP), so that lengths and PROGRAM-DATE-TIME agree: Shaka Player lays segments where their date says, and
/// stops for good where nothing in the list accounts for the time. The gaps are listed together with the first segment
/// after the outage: its length is known only then, and a list must not end with gaps.
extension LiveWindow {
  /// Players do not mind a date that jumps by less.
  static let shortestOutage = MediaTime(milliseconds: 100)
  /// In seconds; what gaps obey before EXT-X-TARGETDURATION is decided, which is never less.
  private static let leastTarget = 1

  /// For how long nobody published before a segment that begins at a wall-clock time (nanoseconds since 1970), in
  /// nanoseconds; nil where that is nothing to tell, or nothing is before it.
  func outage(before wallStart: Int64) -> Int64? {
    guard let end = segments.isEmpty ? lostStart : segments.last.flatMap({ $0.isComplete ? $0.wallEnd : nil }) else {
      return nil
    }
    let (outage, overflow) = wallStart.subtractingReportingOverflow(end)
    return overflow || outage < Self.shortestOutage.nanoseconds ? nil : outage
  }

  /// Lists what lies between the newest segment and the next one, which begins at a media time and a wall-clock time
  /// (nanoseconds since 1970). Each gap is at most as long as EXT-X-TARGETDURATION allows.
  mutating func passOutage(before mediaStart: MediaTime, until wallStart: Int64, memory: SegmentMemory) {
    guard let outage = outage(before: wallStart) else { return }
    let target = targetDuration ?? Self.leastTarget
    // What is older than all that is kept need not be told.
    let length = min(outage, longestKept.nanoseconds)
    let longest = MediaTime(milliseconds: Int64(target) * 1000 + 400).nanoseconds
    let count = (length &+ longest &- 1) / longest
    var start = wallStart &- length
    for left in stride(from: count, to: 0, by: -1) {
      let part = (wallStart &- start) / left
      addOutage(before: mediaStart, wallStart: start, lasting: MediaTime(nanoseconds: part), memory: memory)
      start &+= part
    }
  }

  /// From where on the next process lists the time that is over. hlsdemux2 asks once in a target duration, and loses its
  /// place for good where a list begins behind the last segment that it knows.
  var lastListedStart: Int64? {
    segments.isEmpty ? lostStart : listed.suffix(Self.overlap).first?.wallStart
  }

  /// In segments.
  private static let overlap = 3

  /// Where a gap would lie in the media if they went on with the clock: behind what was before the outage.
  func place(of gap: LiveSegment) -> MediaTime {
    let before = segments.last { $0.sequenceNumber < gap.sequenceNumber && !$0.isOutage }?.sequenceNumber ?? 0
    let first = segments.first { $0.sequenceNumber > before } ?? gap
    return gap.start + MediaTime(nanoseconds: gap.wallStart &- first.wallStart)
  }
}
