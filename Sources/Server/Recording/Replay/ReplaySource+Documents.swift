package import Base
internal import FMP4
package import HTTP
internal import NIOCore
internal import Playlists
internal import RecordingFiles
internal import Storage
package import Streams

/// A document rendered for a recording.
package enum ReplayDocument: Sendable, Hashable {
  /// Of the first video, or of a further one by its number.
  case multivariant(StreamSettings.HLSLayout, video: Int?)
  case media(Rendition)
  case keyFrames
  case manifest
}

/// Playlists and manifests of a recording, rendered by the code of the live stream. They grow while it is written.
extension ReplaySource {
  /// `target` is the target duration in seconds promised by the live stream, for a recording being written whose index has none
  /// yet. `publicURL` is the server's and the same in each call. Nil while there is no segment.
  package func document(_ document: ReplayDocument, target: Int?, publicURL: PublicURL? = nil) -> PreencodedResponse? {
    withState { state in
      let count = state.index.completeCount
      guard count > 0 else { return nil }
      if let known = state.rendered[document], known.count == count, known.isOver == state.isOver {
        return known.response
      }
      let response = PreencodedResponse(
        type: document == .manifest ? .dash : .hls, cache: state.isOver ? .recording : .livePlaylist,
        body: render(document, &state, target: state.index.targetDuration ?? target, publicURL))
      state.rendered[document] = (count, state.isOver, response)
      return response
    }
  }

  private func render(
    _ document: ReplayDocument, _ state: inout State, target: Int?, _ publicURL: PublicURL?
  ) -> ByteBuffer {
    switch document {
    case .media(let rendition): return mediaPlaylist(rendition, &state, target: target)
    case .multivariant(let layout, let video):
      let hasFurther = state.index.versions.contains { $0.tracks.hasFurther }
      // Segments tell which videos are one picture.
      let window = window(&state, segments: hasFurther ? segments(state, .asTold) : [], target: target)
      return HLSMultivariantPlaylist(
        epoch: view(window, state, from: .zero), layout: hasFurther ? .separate : layout, video: video
      ).render()
    case .keyFrames:
      return HLSIFramePlaylist(window: window(&state, segments: segments(state, .asTold), target: target)).render()
    case .manifest:
      let segments = segments(state, state.isOver ? .asPlayed : .asTold)
      let window = window(&state, segments: segments, target: target)
      // The first Period may begin before its first video frame.
      let start = window.periods.first?.wallStart ?? .zero
      let publishTime = segments.last?.wallStart ?? .zero
      let view = view(window, state, from: start, publicURL)
      return DASHManifest(epoch: view, source: .recording).root(publishTime: publishTime).document
    }
  }

  private func mediaPlaylist(_ rendition: Rendition, _ state: inout State, target: Int?) -> ByteBuffer {
    var lines = state.lines[rendition] ?? RecordedMediaPlaylist(rendition, .ofRecording)
    state.lines[rendition] = nil
    lines.extend(state.index)
    var out = ByteBuffer()
    out.reserveCapacity(lines.text.readableBytes + 256)
    RecordedPlaylistHead(
      target: max(target ?? 1, lines.target), firstNumber: 1, type: state.isOver ? "VOD" : "EVENT",
      isIndependent: lines.isIndependent, hasGaps: lines.hasGaps
    ).write(&out)
    out.writeImmutableBuffer(lines.text)
    if state.isOver { out.writeStaticString("#EXT-X-ENDLIST\n") }
    state.lines[rendition] = lines
    return out
  }

  // MARK: As a window

  private func view(
    _ window: LiveWindow, _ state: State, from start: WallTime, _ publicURL: PublicURL? = nil
  ) -> EpochView {
    EpochView(id: name ?? "time-shift", window: window, availabilityStart: start, prefix: "", publicURL: publicURL)
  }

  private func window(_ state: inout State, segments: [LiveSegment], target: Int?) -> LiveWindow {
    measure(&state)
    let longest = state.index.segments.indices.prefix(state.index.completeCount).map {
      Int(state.index.duration(of: state.index.segments[$0]).rescaled(to: 1))
    }.max()
    let inits = state.index.versions.map { ($0.number, InitSegment(version: $0.number, tracks: $0.tracks)) }
    var window = LiveWindow(
      recorded: segments, inits: Dictionary(inits, uniquingKeysWith: { first, _ in first }),
      targetDuration: max(1, target ?? 1, longest ?? 1), bandwidth: state.bandwidth, isEnded: state.isOver)
    if state.index.segments.prefix(state.index.completeCount).contains(where: { !$0.flags.contains(.isIndependent) }) {
      window.breakIndependence()
    }
    window.declare(recorded: state.index.captions)
    return window
  }

  private func measure(_ state: inout State) {
    while state.bandwidthCount < state.index.completeCount {
      let segment = state.index.segments[state.bandwidthCount]
      state.bandwidth.add(
        live(state.bandwidthCount, state.index, wallStart: .zero), keyFrameLength: Int(segment.keyFrameLength),
        fragmentCount: Int(segment.fragmentCount))
      state.bandwidthCount += 1
    }
  }

  private enum Clock {
    /// Wall-clock times.
    case asTold
    /// Times at which a player shows the media: an outage leaves no gap.
    case asPlayed
  }

  private func segments(_ state: State, _ clock: Clock) -> [LiveSegment] {
    let index = state.index
    let first = index.segments.first
    let begin = first.map { index.start(of: $0) } ?? .zero
    return (0..<index.completeCount).map { at in
      let segment = index.segments[at]
      let played = (first?.wallStart ?? .zero) &+ (index.start(of: segment) - begin).nanoseconds
      return live(at, index, wallStart: clock == .asTold ? segment.wallStart : played)
    }
  }

  private func live(_ at: Int, _ index: RecordingIndex, wallStart: WallTime) -> LiveSegment {
    let segment = index.segments[at]
    let version = index.version(of: segment)
    var result = LiveSegment(
      sequenceNumber: at + 1, initVersion: version?.number ?? 1,
      followsDiscontinuity: segment.flags.contains(.followsDiscontinuity),
      isIndependent: segment.flags.contains(.isIndependent), start: index.start(of: segment), wallStart: wallStart,
      memory: SegmentMemory(recorded: index.shownLength(at: at), in: reader.file), expectedDuration: nil,
      expectedFollowersEnd: nil, duration: index.duration(of: segment))
    result.isComplete = true
    let tracks = version?.tracks ?? []
    result.furtherVideos = tracks.filter { $0.kind == .video && $0.id != tracks.leader?.id }.map(\.id)
    result.opensGroup = segment.flags.contains(.opensGroup)
    result.recordedKeyFrameLength = segment.keyFrameLength > 0 ? Int(segment.keyFrameLength) : nil
    for (track, span) in index.spans(at: at) {
      result.spans.append(
        LiveSegment.TrackSpan(
          track: track.id, timescale: track.timescale, start: span.start, duration: Int64(span.duration),
          mediaBytes: Int(span.mediaBytes)))
    }
    return result
  }
}
