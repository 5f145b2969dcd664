internal import FMP4
internal import NIOCore
internal import Synchronization

/// What is on disk of one life of a stream: the files that its recorder wrote, or its spool. Live addresses reach into
/// it where the window in memory ends.
final class EpochArchive: Sendable {
  /// How far back viewers may go.
  let length: MediaTime
  private let state = Mutex(State())

  private struct State {
    var sources: [ReplaySource] = []
    var lines: [Rendition: [RecordedLines]] = [:]
    var rendered: [Rendition: (last: Int, isEnded: Bool, response: PreencodedResponse)] = [:]
  }

  init(length: MediaTime) {
    self.length = length
  }

  func add(_ source: ReplaySource) {
    state.withLock { $0.sources.append(source) }
  }

  /// The file that has a segment, and the segment's place in it.
  func find(_ number: Int) -> (source: ReplaySource, index: Int)? {
    find { $0.index(ofNumber: number) }
  }

  /// The same by the time at which the samples of a kind begin, in ticks of their track, below a version of the init
  /// segment.
  func find(time: Int64, initVersion: Int, _ kind: MediaKind) -> (source: ReplaySource, index: Int)? {
    find { $0.index(ofTime: time, kind: kind, initVersion: initVersion) }
  }

  private func find(_ place: (borrowing RecordingIndex) -> Int?) -> (source: ReplaySource, index: Int)? {
    let sources = state.withLock { $0.sources }
    guard let end = sources.last?.withIndex({ $0.end }) else { return nil }
    for source in sources.reversed() {
      let found = source.withIndex { index -> (at: Int, isReached: Bool)? in
        guard let at = place(index), at < index.completeCount else { return nil }
        return (at, end - index.start(of: index.segments[at]) <= reach)
      }
      if let found { return found.isReached ? (source, found.at) : nil }
    }
    return nil
  }

  /// What left a list stays for a while: players may still follow an older one.
  var reach: MediaTime { length + MediaTime(milliseconds: 300_000) }

  func initSegment(_ version: Int, _ rendition: Rendition) -> ByteBuffer? {
    let sources = state.withLock { $0.sources }
    for source in sources {
      if let bytes = source.initSegment(version, rendition) { return bytes }
    }
    return nil
  }

  // MARK: The playlist

  /// The media playlist of the whole programme, as far as rewinding reaches: what is on disk, then what is in the
  /// window. Rendered once for each segment.
  func playlist(_ rendition: Rendition, _ window: LiveWindow) -> PreencodedResponse {
    let complete = window.segments.last { $0.isComplete }?.sequenceNumber ?? 0
    return state.withLock { state in
      if let known = state.rendered[rendition], known.last == complete, known.isEnded == window.isEnded {
        return known.response
      }
      var lines = state.lines[rendition] ?? []
      state.lines[rendition] = nil
      while lines.count < state.sources.count { lines.append(RecordedLines(rendition, .ofEpoch)) }
      for index in lines.indices { state.sources[index].withIndex { lines[index].extend($0) } }
      let body = render(lines, state.sources, rendition, window)
      state.lines[rendition] = lines
      let response = PreencodedResponse(
        type: .hls, cache: window.isEnded ? .endedPlaylist : .livePlaylist, body: body)
      state.rendered[rendition] = (complete, window.isEnded, response)
      return response
    }
  }

  private func render(
    _ all: [RecordedLines], _ sources: [ReplaySource], _ rendition: Rendition, _ window: LiveWindow
  ) -> ByteBuffer {
    // Only what leads to the window without a missing number is listed.
    var next = window.segments.first?.sequenceNumber ?? window.nextSequenceNumber
    var parts: [(lines: RecordedLines, start: RecordedLines.Start)] = []
    var last = 0
    let end = sources.last?.withIndex { $0.end } ?? .zero
    for (lines, source) in zip(all, sources).reversed() where !lines.starts.isEmpty {
      guard lines.lastNumber + 1 >= next, let start = start(of: lines, source, end: end) else { break }
      if parts.isEmpty { last = lines.lastNumber }
      parts.insert((lines, start), at: 0)
      next = start.number
      if start.segment > 0 { break }
    }
    let tail = window.segments.filter { $0.isComplete && (parts.isEmpty || $0.sequenceNumber > last) }
    let isWhole = next <= 1
    var out = ByteBuffer()
    out.reserveCapacity(parts.reduce(4096 + 128 * tail.count) { $0 + $1.lines.text.readableBytes - $1.start.offset })
    RecordedPlaylistHead(
      target: window.targetDuration ?? 1, firstNumber: parts.first?.start.number ?? tail.first?.sequenceNumber ?? 1,
      discontinuities: parts.first?.start.discontinuities ?? window.discontinuitySequence,
      type: isWhole ? "EVENT" : nil, isIndependent: window.isIndependent,
      hasGaps: parts.contains { $0.lines.hasGaps } || rendition != .interleaved
    ).write(&out)
    for part in parts {
      let text = part.lines.text
      let start = text.readerIndex + part.start.offset
      out.writeImmutableBuffer(text.getSlice(at: start, length: text.readableBytes - part.start.offset) ?? text)
    }
    HLSMediaPlaylist(window: window, rendition: rendition).writeSegments(tail[...], &out)
    if window.isEnded { out.writeStaticString("#EXT-X-ENDLIST\n") }
    return out
  }

  /// The last place to begin with behind which everything lies that rewinding reaches, else the first.
  private func start(of lines: RecordedLines, _ source: ReplaySource, end: MediaTime) -> RecordedLines.Start? {
    source.withIndex { index in
      lines.starts.last { end - index.start(of: index.segments[$0.segment]) >= length } ?? lines.starts.first
    }
  }
}
