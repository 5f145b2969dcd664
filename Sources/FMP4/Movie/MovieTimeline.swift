/// Places the tracks of a finished movie on its timeline. Edit lists make them start together (ISO/IEC 14496-12
/// §8.6.6).
package struct MovieTimeline {
  typealias Edit = MovieBoxes.Edit

  /// Audio that begins up to this much before the video is trimmed to begin with it. Audio that begins even earlier is
  /// kept, and the video starts later.
  package static let trimmedLead = MediaTime(milliseconds: 100)

  /// Timescale of the movie in ticks per second. It is the video's own, so that its edits are exact.
  let timescale: UInt32
  /// One edit list per track, in the order of the tracks.
  let edits: [[Edit]]
  /// Duration of each track after edits, in movie ticks.
  let durations: [UInt64]

  /// `shown` is the media time that a clip shows; nil for all of it.
  init(_ tracks: [MovieTables.Track], showing shown: Range<MediaTime>? = nil) {
    let first = tracks.compactMap(\.descriptions.first).leader?.id
    let leader = tracks.first { $0.descriptions.first?.id == first }
    let timescale = leader?.table.timescale ?? 1000
    let starts = tracks.map { MediaTime(ticks: $0.table.presentationStart, timescale: $0.table.timescale) }
    var origin = starts.min() ?? .zero
    if let shown {
      origin = shown.lowerBound
    } else if let leader {
      let start = MediaTime(ticks: leader.table.presentationStart, timescale: leader.table.timescale)
      if start - Self.trimmedLead <= origin { origin = start }
    }
    self.timescale = timescale
    edits = zip(tracks, starts).map { track, start in
      let table = track.table
      var list: [Edit] = []
      let delay = (start - origin).rescaled(to: timescale)
      if delay > 0 { list.append(Edit(duration: UInt64(delay), mediaTime: -1)) }
      let start = max(table.presentationStart, origin.rescaled(to: table.timescale))
      let end = shown.map { min(table.presentationEnd, $0.upperBound.rescaled(to: table.timescale)) }
      let length = max(0, (end ?? table.presentationEnd) &- start)
      list.append(
        Edit(
          duration: Self.roundedUp(length, from: table.timescale, to: timescale),
          mediaTime: start &- table.decodeStart))
      return list
    }
    durations = edits.map { $0.reduce(0) { $0 &+ $1.duration } }
  }

  /// Rounds up: an edit that is short by less than a tick would remove the last sample.
  private static func roundedUp(_ ticks: Int64, from timescale: UInt32, to other: UInt32) -> UInt64 {
    let nearest = MediaTime(ticks: ticks, timescale: timescale).rescaled(to: other)
    let isShort = MediaTime(ticks: nearest, timescale: other) < MediaTime(ticks: ticks, timescale: timescale)
    return UInt64(max(0, isShort ? nearest &+ 1 : nearest))
  }
}
