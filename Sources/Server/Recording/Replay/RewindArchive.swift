internal import Base
package import FMP4
package import HTTP
package import NIOCore
internal import Playlists
internal import Publishing
internal import RecordingFiles
package import Streams

/// The files of one epoch, written by its recorder and its time-shift buffers. Live addresses beyond the window in memory are
/// served from here, if the segment is whole: an address never stands for different bytes.
package final class RewindArchive: Sendable {
  /// How far back viewers can rewind.
  let length: MediaTime
  private let state = RankedMutex(.programme, State())

  private struct State {
    var programme = RecordingSequence()
    var rendered: [Rendition: Rendered] = [:]
  }

  private struct Rendered {
    /// Media sequence numbers of the last complete segment in memory, and on disk.
    var last: Int
    var lastOnDisk: Int
    var isEnded: Bool
    var response: PreencodedResponse
  }

  package init(length: MediaTime) {
    self.length = length
  }

  func add(_ source: ReplaySource) {
    state.withLock { state in
      state.programme.add(source)
      state.programme.drop(beyond: reach)
    }
  }

  /// Removes a recording whose file was deleted.
  func remove(recording name: String, of stream: StreamName) {
    for source in sources where source.name == name && source.stream == stream { remove(source) }
  }

  func remove(_ source: ReplaySource) {
    state.withLock { state in
      state.programme.remove { $0 === source }
      state.rendered = [:]
    }
  }

  /// Releases the oldest complete file if there is another one, which shortens the rewindable range. Returns the released file.
  func letOldestGo() -> ReplaySource? {
    let sources = sources
    guard sources.count > 1, let oldest = sources.first, oldest.isOver else { return nil }
    remove(oldest)
    return oldest
  }

  /// The files that it keeps open.
  var sources: [ReplaySource] { state.withLock { $0.programme.sources } }

  /// The file that contains a segment, and the index of the segment in it.
  package func find(_ number: Int) -> (source: ReplaySource, index: Int)? {
    find { $0.index(ofNumber: number) }
  }

  /// The same by the time at which the samples of a rendition begin, in ticks of their track, with the version of the init
  /// segment.
  package func find(time: Int64, initVersion: Int, _ rendition: Rendition) -> (source: ReplaySource, index: Int)? {
    find { $0.index(ofTime: time, rendition, initVersion: initVersion) }
  }

  private func find(_ place: (borrowing RecordingIndex) -> Int?) -> (source: ReplaySource, index: Int)? {
    let (sources, end) = state.withLock { state in
      state.programme.drop(beyond: reach)
      return (state.programme.sources, state.programme.end)
    }
    for source in sources.reversed() {
      let found = source.withIndex { index -> (at: Int, isReached: Bool)? in
        guard let at = place(index), index.isWhole(at) else { return nil }
        return (at, end - index.start(of: index.segments[at]) <= reach)
      }
      if let found { return found.isReached ? (source, found.at) : nil }
    }
    return nil
  }

  /// Segments that left the list stay available for a while, since players may still use an older list.
  var reach: MediaTime { length + MediaTime(milliseconds: 300_000) }

  package func initSegment(_ version: Int, _ rendition: Rendition) -> ByteBuffer? {
    for source in sources {
      if let bytes = source.initSegment(version, rendition) { return bytes }
    }
    return nil
  }

  // MARK: The playlist

  /// The media playlist of the programme within the rewindable range: first the segments on disk, then those in the window.
  /// Rendered once for each segment.
  package func playlist(_ rendition: Rendition, _ window: LiveWindow) -> PreencodedResponse {
    let complete = window.segments.last { $0.isComplete }?.sequenceNumber ?? 0
    return state.withLock { state in
      state.programme.drop(beyond: reach)
      let files = state.programme.joined(rendition)
      let onDisk = files.last?.last.number ?? 0
      if let known = state.rendered[rendition], known.last == complete, known.lastOnDisk == onDisk,
        known.isEnded == window.isEnded
      {
        return known.response
      }
      let body = render(reached(files, end: state.programme.end), rendition, window)
      let response = PreencodedResponse(
        type: .hls, cache: window.isEnded ? .endedPlaylist : .livePlaylist, headers: CrossOrigin.anyOrigin,
        body: body)
      state.rendered[rendition] = Rendered(
        last: complete, lastOnDisk: onDisk, isEnded: window.isEnded, response: response)
      return response
    }
  }

  /// A listed file, and where the list begins in it.
  private struct Part {
    var file: RecordingSequence.File
    var start: RecordedMediaPlaylist.Start
  }

  /// The files with media within `length` of the end. Each begins at its last start from which all of that media is included, or
  /// at its first start.
  private func reached(_ files: [RecordingSequence.File], end: MediaTime) -> [Part] {
    var parts: [Part] = []
    for file in files.reversed() {
      let far = file.lines.starts.last { end - $0.time >= length }
      guard let start = far ?? file.lines.starts.first else { continue }
      parts.append(Part(file: file, start: start))
      if far != nil || file.missing.count > RecordedMediaPlaylist.maximumMissing { break }
    }
    return parts.reversed()
  }

  private func render(_ parts: [Part], _ rendition: Rendition, _ window: LiveWindow) -> ByteBuffer {
    let last = parts.last?.file.last
    let tail = window.segments.filter { segment in
      segment.isComplete && last.map { segment.sequenceNumber > $0.number } ?? true
    }
    let first = parts.first?.start.number ?? window.segments.first?.sequenceNumber ?? window.nextSequenceNumber
    // Segments that the disk does not have, or not yet, and that have left the window.
    let lost = last.map { last in last.number + 1..<max(last.number + 1, tail.first?.sequenceNumber ?? 0) } ?? 0..<0
    var out = ByteBuffer()
    out.reserveCapacity(parts.reduce(4096 + 128 * tail.count) { $0 + $1.file.lines.text.readableBytes })
    RecordedPlaylistHead(
      target: window.targetDuration ?? 1, firstNumber: parts.first?.start.number ?? tail.first?.sequenceNumber ?? 1,
      discontinuities: parts.first.map { $0.file.breaksBefore + $0.start.discontinuities }
        ?? window.discontinuitySequence(of: rendition),
      type: first <= 1 ? "EVENT" : nil, isIndependent: window.isIndependent,
      hasGaps: rendition != .interleaved || !lost.isEmpty || parts.contains { $0.file.lines.hasGaps }
        || parts.dropFirst().contains { !$0.file.missing.isEmpty }
    ).write(&out)
    for (index, part) in parts.enumerated() {
      if index > 0 { part.file.writeJoint(&out) }
      let text = part.file.lines.text
      let length = max(0, part.file.length - part.start.offset)
      out.writeImmutableBuffer(text.getSlice(at: text.readerIndex + part.start.offset, length: length) ?? text)
    }
    if let last, let next = tail.first {
      RecordedMediaPlaylist.writeMissing(lost, lasting: next.start - last.time, &out)
      if !lost.isEmpty, !window.breaks(rendition, before: next) { out.writeStaticString("#EXT-X-DISCONTINUITY\n") }
    }
    HLSMediaPlaylist(window: window, rendition: rendition).writeSegments(tail, &out)
    if window.isEnded { out.writeStaticString("#EXT-X-ENDLIST\n") }
    return out
  }
}
