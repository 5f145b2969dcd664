package import FMP4
internal import Storage

/// Outages: time without a publisher. Media time does not include it. Playlists list it as gap segments (EXT-X-GAP), so that
/// lengths and PROGRAM-DATE-TIME agree. Shaka Player places segments by their date, and stops for good when the list does not
/// account for the time. The gaps are listed together with the first segment after the outage: only then is the length known. A
/// short one comes before, when the publisher has been away for a second.
extension LiveWindow {
  /// A jump of the date by less does not disturb players.
  static let shortestOutage = MediaTime(milliseconds: 100)
  /// In seconds. Limits gaps before EXT-X-TARGETDURATION is decided, which is never less.
  private static let leastTarget = 1

  /// After how long it is listed that there is an outage, and the most of it that is listed then. hls.js takes all media to lie later
  /// than they do, by what their decoding begins before them (0.15 s). Where it has played beyond the end of a list that stands
  /// still, it goes back by seconds, again and again.
  static let firstGapAfter = MediaTime(milliseconds: 1000)
  package static let longestFirstGap = MediaTime(milliseconds: 400)
  private static let firstGap = (least: MediaTime(milliseconds: 200), usual: MediaTime(milliseconds: 250))

  /// Lists the beginning of the outage that there is now: a part, or several short ones. False where it is listed, or nothing lies
  /// before it.
  mutating func beginOutage() -> Bool {
    guard isInterrupted, let last = segments.last, last.isComplete, !last.isOutage else { return false }
    var length = min(partTarget ?? Self.firstGap.usual, Self.firstGap.usual)
    if let part = partTarget, part > .zero { while length < Self.firstGap.least { length = length + part } }
    addOutage(before: last.start + last.duration, wallStart: last.wallEnd, lasting: length, memory: last.memory)
    return true
  }

  /// The outage before a segment that begins at a wall-clock time, in nanoseconds. Nil when it is too short to list, or
  /// nothing precedes it.
  func outage(before wallStart: WallTime) -> Int64? {
    guard let end = segments.isEmpty ? lostStart : segments.last.flatMap({ $0.isComplete ? $0.wallEnd : nil }) else {
      return nil
    }
    let (outage, overflow) = wallStart.nanoseconds.subtractingReportingOverflow(end.nanoseconds)
    return overflow || outage < Self.shortestOutage.nanoseconds ? nil : outage
  }

  /// Lists the outage between the newest segment and the next one, which begins at a media time and a wall-clock time.
  /// Each gap is at most as long as EXT-X-TARGETDURATION allows.
  mutating func passOutage(before mediaStart: MediaTime, until wallStart: WallTime, memory: SegmentMemory) {
    guard let outage = outage(before: wallStart) else { return }
    let target = targetDuration ?? Self.leastTarget
    // An outage longer than the window is shortened to its length.
    let length = min(outage, longestKept.nanoseconds)
    let longest = MediaTime(milliseconds: Int64(target) * 1000 + 400).nanoseconds
    let count = (length &+ longest &- 1) / longest
    var start = wallStart &- length
    for left in stride(from: count, to: 0, by: -1) {
      let part = (wallStart &- start) / left
      addOutage(before: mediaStart, wallStart: start, lasting: MediaTime(nanoseconds: part), memory: memory)
      start = start &+ part
    }
  }

  /// The start of the listing for the next process. hlsdemux2 loads a playlist once per target duration. It loses its place for
  /// good when a playlist begins after the last segment that it knows.
  var lastListedStart: WallTime? {
    segments.isEmpty ? lostStart : listed.suffix(Self.overlap).first?.wallStart
  }

  /// In segments.
  private static let overlap = 3

  /// The media time of a gap if the media had continued with the clock after the last segment before the outage.
  package func place(of gap: LiveSegment) -> MediaTime {
    let before = segments.last { $0.sequenceNumber < gap.sequenceNumber && !$0.isOutage }?.sequenceNumber ?? 0
    let first = segments.first { $0.sequenceNumber > before } ?? gap
    return gap.start + MediaTime(nanoseconds: gap.wallStart &- first.wallStart)
  }
}
