internal import Base
internal import FMP4

/// How the media of the growing segment arrives, by the clock of this machine.
struct MediaArrival: Sendable {
  /// Nanoseconds. A longer time between two samples counts as this long: what was held up comes all at once.
  private static let longestPause: Int64 = 1_000_000_000
  /// Media may take so many times its length to arrive: a publication whose clock is slower is ended (`PublicationBounds`).
  private static let slowness = 1 / PublicationBounds.slowestPace

  /// When the newest sample came; nil before the first.
  private(set) var newest: MonotonicTime?
  /// Nanoseconds that the segment's media took, with pauses cut, and nanoseconds of media.
  private(set) var spent: Int64 = 0
  private var media: Int64 = 0

  /// Notes a sample. `media`: nanoseconds by which it has moved the end of the media on. A step of ten seconds counts like ten
  /// seconds of a clock that runs: one that advances by such steps keeps no more than one of the same pace without them.
  mutating func saw(_ media: Int64, now: MonotonicTime) {
    spent &+= newest.map { min(max(0, now &- $0), Self.longestPause) } ?? 0
    self.media &+= media
    newest = now
  }

  /// The segment is complete: what comes belongs to the next one.
  mutating func endSegment() { (spent, media) = (0, 0) }

  /// Of so many bytes, those that came too slowly for their length: beyond the rate of arrival in five times the length.
  func slowBytes(of bytes: Int) -> Int {
    let (time, allowed) = (Double(spent), Double(media) * Self.slowness)
    return time > allowed ? Int(Double(bytes) * (1 - allowed / time)) : 0
  }
}

/// Media that leave by their arrival, whatever their timestamps say.
extension LiveWindow {
  /// A growing segment with this part of the slow bytes that a window may have is cut.
  private static let slowSegments = 4

  /// Bytes of segments in memory that came too slowly for their length.
  var slowBytes: Int {
    guard let newest = segments.last, !newest.isComplete else { return completeSlowBytes }
    return completeSlowBytes + arrival.slowBytes(of: newest.residentBytes)
  }

  /// The number of the growing segment if it has to be cut: it has too many slow bytes, or has grown for longer than the
  /// window, with pauses cut.
  func segmentToCut(slowBytes most: Int) -> Int? {
    guard let newest = segments.last, !newest.isComplete else { return nil }
    let isSlow = arrival.slowBytes(of: newest.residentBytes) > most / Self.slowSegments
    return isSlow || arrival.spent > longestKept.nanoseconds ? newest.sequenceNumber : nil
  }

  /// Drops the oldest segments while more than so many bytes came too slowly, and those whose media came more than twice the
  /// window ago. The newest complete one stays. Returns whether any was dropped.
  mutating func dropLate(slowBytes most: Int) -> Bool {
    var hasDropped = false
    while let oldest = segments.first, slowBytes > most || age(since: oldest.arrivedAt) / 2 > longestKept.nanoseconds,
      dropOldest()
    {
      hasDropped = true
    }
    return hasDropped
  }

  /// Nanoseconds from then to the newest sample; 0 if there was none.
  private func age(since time: MonotonicTime?) -> Int64 {
    guard let time, let newest = arrival.newest else { return 0 }
    return newest &- time
  }
}
