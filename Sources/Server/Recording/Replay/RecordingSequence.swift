internal import FMP4
internal import NIOCore
internal import RecordingFiles
internal import Streams

/// The files of an epoch in the order of the programme, and the gaps between them. A recording may be split, stopped and started,
/// or interrupted by the disk; a time-shift buffer may hold the media in between. A value.
struct RecordingSequence: Sendable {
  private struct Entry: Sendable {
    var source: ReplaySource
    var lines: [Rendition: RecordedMediaPlaylist] = [:]
    /// Discontinuities between the file before and this one, of files between them that were removed: of the interleaved layout,
    /// and of the others.
    var forgottenBreaks: [Rendition: Int] = [:]
    /// Its number of discontinuities when the files before it were removed. It may be smaller than the epoch's own: of several
    /// in media that no file has, one is listed.
    var listedBreaks: [Rendition: Int] = [:]
  }

  /// The first or last segment of a file in the programme.
  struct Edge: Sendable, Hashable {
    /// Media sequence number.
    var number: Int
    /// Media time at which it begins, or ends.
    var time: MediaTime
    /// Wall-clock time of that.
    var wall: WallTime
    /// Discontinuities of the epoch before it began.
    var breaks: Int
    /// Changes of its default tracks before it began, which break the interleaved layout as well.
    var changesOfDefaults: Int
    /// The tracks of the interleaved layout.
    var defaults: [TrackDescription]
  }

  /// A file that contributes to the programme.
  struct File: Sendable {
    fileprivate var entry: Int
    var lines: RecordedMediaPlaylist
    /// Bytes of its lines up to where the next file continues.
    var length: Int
    var first: Edge
    var last: Edge
    /// Media sequence numbers missing between this file and the one before.
    var missing: Range<Int> = 0..<0
    /// Duration of the missing media.
    fileprivate var hole = MediaTime.zero
    /// It does not continue the file before.
    fileprivate var isBroken = false
    /// Discontinuities of files between that were removed. The missing segments have them.
    fileprivate var forgotten = 0
    /// EXT-X-DISCONTINUITY-SEQUENCE of a list that begins with it.
    var breaksBefore: Int

    /// Writes the lines between the file before and this one.
    func writeJoint(_ out: inout ByteBuffer) {
      RecordedMediaPlaylist.writeMissing(missing, lasting: hole, breaks: forgotten, &out)
      if isBroken { out.writeStaticString("#EXT-X-DISCONTINUITY\n") }
    }
  }

  private var entries: [Entry] = []

  var sources: [ReplaySource] { entries.map(\.source) }

  /// End of the newest media.
  var end: MediaTime { entries.map { $0.source.withIndex { $0.end } }.max() ?? .zero }

  mutating func add(_ source: ReplaySource) {
    entries.append(Entry(source: source))
  }

  /// Removes files that end further back than `reach`.
  mutating func drop(beyond reach: MediaTime) {
    guard entries.count > 1 else { return }
    let end = end
    remove { $0.isOver && end - $0.withIndex { $0.end } > reach }
  }

  /// Removes files. The remaining files keep their sequence numbers and discontinuity numbers.
  mutating func remove(_ isGone: (ReplaySource) -> Bool) {
    arrange()
    while let index = entries.lastIndex(where: { isGone($0.source) }) {
      let before = Self.layouts.map { layout in (layout, joined(layout).first { $0.entry > index }) }
      entries.remove(at: index)
      for case (let layout, let next?) in before { forget(layout, before: next) }
    }
  }

  /// Renditions that stand for all others: only the interleaved layout breaks where its tracks change.
  private static let layouts: [Rendition] = [.interleaved, .video]

  /// `next` is the file behind the one that was removed.
  private mutating func forget(_ layout: Rendition, before next: File) {
    let (after, entry) = (joined(layout), next.entry - 1)
    if after.first?.entry == entry {
      entries[entry].listedBreaks[layout] = next.breaksBefore
    } else {
      let same = after.first { $0.entry == entry }
      entries[entry].forgottenBreaks[layout, default: 0] += max(0, next.breaksBefore - (same?.breaksBefore ?? 0))
    }
  }

  /// The files that contribute to a rendition's list, in order.
  mutating func joined(_ rendition: Rendition) -> [File] {
    arrange()
    var files: [File] = []
    for index in entries.indices {
      entries[index].source.withIndex { all in
        entries[index].lines[rendition, default: RecordedMediaPlaylist(rendition, .ofEpoch)].extend(all)
      }
      guard let lines = entries[index].lines[rendition], let listed = lines.listed else { continue }
      let (first, last) = entries[index].source.withIndex {
        ($0.edge(listed.lowerBound), $0.edge(after: listed.upperBound))
      }
      // Nothing new: it was written while another file began or ended.
      if let before = files.last, last.number <= before.last.number { continue }
      let layout = rendition.kind == nil ? Rendition.interleaved : .video
      // The epoch's own count, unless files before it were removed.
      let ownBreaks = first.breaks + (rendition.kind == nil ? first.changesOfDefaults : 0)
      let breaksBefore =
        files.isEmpty
        ? entries[index].listedBreaks[layout] ?? ownBreaks : entries[index].forgottenBreaks[layout] ?? 0
      var file = File(
        entry: index, lines: lines, length: lines.text.readableBytes, first: first, last: last,
        breaksBefore: breaksBefore)
      if !files.isEmpty { file.forgotten = breaksBefore }
      if let before = files.last { join(&file, to: before) { files[files.count - 1].length = $0 } }
      files.append(file)
    }
    return files
  }

  /// `cut` receives the length that remains of the lines before it.
  private func join(_ file: inout File, to before: File, cut: (Int) -> Void) {
    var last = before.last
    if last.number >= file.first.number {
      // Both files have it, because one began before the other ended.
      cut(before.lines.length(before: file.first.number))
      last =
        entries[before.entry].source.withIndex { index in
          index.index(ofNumber: file.first.number - 1).map { index.edge(after: $0) }
        } ?? last
      last.number = file.first.number - 1
    }
    file.missing = last.number + 1..<max(last.number + 1, file.first.number)
    // After a discontinuity the media time continues, so the wall clock shows how long the interruption was.
    let outage = MediaTime(nanoseconds: file.first.wall &- last.wall)
    file.hole = file.first.breaks == last.breaks ? file.first.time - last.time : outage
    let changesTracks = file.lines.rendition.kind == nil && file.first.defaults != last.defaults
    file.isBroken = !file.missing.isEmpty || file.first.breaks != last.breaks || changesTracks
    file.breaksBefore += before.breaksBefore + before.lines.discontinuities + (file.isBroken ? 1 : 0)
  }

  /// Files arrive in the order in which they were begun, except those of two writers.
  private mutating func arrange() {
    guard entries.count > 1 else { return }
    let numbers = entries.map { $0.source.withIndex { $0.segments.first?.number ?? .max } }
    guard zip(numbers, numbers.dropFirst()).contains(where: { $0 > $1 }) else { return }
    entries = zip(numbers, entries).enumerated().sorted { ($0.element.0, $0.offset) < ($1.element.0, $1.offset) }
      .map(\.element.1)
  }
}

extension RecordingIndex {
  /// The start of a segment.
  fileprivate func edge(_ index: Int) -> RecordingSequence.Edge {
    let segment = segments[index]
    return RecordingSequence.Edge(
      number: Int(segment.number), time: start(of: segment), wall: segment.wallStart, breaks: breaks(before: index),
      changesOfDefaults: changesOfDefaults(before: index), defaults: version(of: segment)?.tracks.defaults ?? [])
  }

  /// The end of a segment.
  fileprivate func edge(after index: Int) -> RecordingSequence.Edge {
    var edge = edge(index)
    edge.time = edge.time + duration(of: segments[index])
    edge.wall = edge.wall &+ duration(of: segments[index]).nanoseconds
    return edge
  }
}
