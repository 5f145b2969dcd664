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
        playlistRenders: state.renderings?.renders ?? 0, counters: state.allCounters, skew: state.ends.skew,
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
