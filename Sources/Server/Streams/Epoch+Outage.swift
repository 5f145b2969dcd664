internal import FMP4

/// The time in which nobody published. The media's own timeline goes on as if it had not been; playlists tell it as segments
/// that are gaps (EXT-X-GAP), so that their lengths and PROGRAM-DATE-TIME agree: Shaka Player lays segments where their
/// date says and stops for good where nothing in the list accounts for the time. They come together with the first
/// segment after the outage, since only then is it known how long it was, and a list must not end with them.
extension Epoch {
  /// An outage that is shorter is a jump of the date that players do not mind.
  static let shortestOutage = MediaTime(milliseconds: 100)

  /// Lists what lies between the newest segment and one that begins at a wall-clock time, in nanoseconds since 1970.
  mutating func passOutage(until wallStart: Int64) {
    guard let newest = window.segments.last, newest.isComplete, let target = window.targetDuration else { return }
    let outage = wallStart.subtractingReportingOverflow(newest.wallEnd)
    guard !outage.overflow, outage.partialValue >= Self.shortestOutage.nanoseconds else { return }
    // What is older than all that is kept need not be told.
    let length = min(outage.partialValue, window.longestKept.nanoseconds)
    let longest = MediaTime(milliseconds: Int64(target) * 1000 + 400).nanoseconds
    let count = (length &+ longest &- 1) / longest
    var start = wallStart &- length
    for left in stride(from: count, to: 0, by: -1) {
      let part = (wallStart &- start) / left
      window.addOutage(behind: newest, wallStart: start, lasting: MediaTime(nanoseconds: part))
      for index in rungs.indices { rungs[index].followOutage(in: window) }
      start &+= part
    }
  }
}
