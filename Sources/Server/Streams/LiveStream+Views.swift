internal import FMP4
internal import Ingest
internal import Synchronization

/// What others see of a stream.
extension LiveStream {
  /// A rendition's window in an epoch, if both are there.
  func window(ofEpoch id: String, _ rendition: Rendition = .interleaved) -> LiveWindow? {
    state.withLock { $0.epoch(id)?.window(of: rendition) }
  }

  /// The current epoch's name and window.
  var current: (epoch: Epoch, phase: StreamPhase) {
    state.withLock { ($0.epoch, $0.phase) }
  }

  /// EXT-X-TARGETDURATION of the current epoch, in seconds; nil until it is decided.
  var targetDuration: Int? { state.withLock { $0.epoch.window.targetDuration } }

  var phase: StreamPhase { state.withLock { $0.phase } }

  /// A rendered playlist or manifest: made once for each change of the window and shared by everybody who asks.
  /// `render` is called with the stream's lock held; nil when the epoch is gone.
  func rendered(
    _ kind: RenderCache.Kind, epoch id: String?, render: (EpochView) -> PreencodedResponse
  ) -> PreencodedResponse? {
    state.withLock { state in
      if let id, state.epoch.id != id {
        guard let previous = state.previous, previous.epoch.id == id else { return nil }
        return render(previous.epoch.viewWithRungs)
      }
      state.epoch.isDated = true
      return state.cache.response(kind, version: state.epoch.version(for: kind)) { render(state.epoch.viewWithRungs) }
    }
  }

  /// The manifests of the current epoch, with its view and the wall clock in nanoseconds since 1970. `body` is called
  /// with the stream's lock held.
  func withManifests<R>(
    _ body: (_ history: inout DASHHistory, _ epoch: EpochView, _ now: Int64) -> sending R
  ) -> sending R {
    state.withLock { state in
      state.epoch.isDated = true
      return body(&state.cache.dash, state.epoch.viewWithRungs, clock.wallNanoseconds)
    }
  }

  var status: StreamStatus {
    state.withLock { state in
      StreamStatus(
        name: name, phase: state.phase, epoch: state.epoch.id, protocolName: state.lastHolder.protocolName,
        startedAt: state.startedAt, endedAt: state.offAirSince.map { $0 &+ clock.wallOffset },
        tracks: state.epoch.initSegment?.tracks ?? [],
        bitrate: state.epoch.window.recentBitrate, longestGroup: state.epoch.longestGroup,
        targetDuration: state.epoch.window.targetDuration,
        warnings: state.warnings + state.publicationWarnings.map(\.description), anchor: state.epoch.anchor,
        residentBytes: state.epoch.rungs.reduce(state.epoch.window.residentBytes) { $0 + $1.window.residentBytes },
        playlistRenders: state.cache.renders, counters: state.allCounters, skew: state.ends.skew,
        transcoding: state.transcoder?.status, rungs: state.epoch.playableRungs.compactMap(RungStatus.init),
        soundTranscoding: state.soundTranscoder?.status,
        sound: state.epoch.viewWithRungs.playableSounds.first.flatMap(RungStatus.init))
    }
  }

  /// What counts as one address, of its last publisher; nil where there is none.
  var lastHost: String? { state.withLock { $0.lastHost } }

  /// The distance of key frames that the name's encoder is known to use.
  var knownGroup: MediaTime? { state.withLock { $0.epoch.longestGroup ?? $0.knownGroup } }
}
