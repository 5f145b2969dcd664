internal import Basics
internal import FMP4
internal import Ingest
internal import Synchronization

/// What the server itself sees of a stream.
extension LiveStream {
  /// A rendition's window in an epoch, if both are there.
  func window(ofEpoch id: String, _ rendition: Rendition = .interleaved) -> LiveWindow? {
    state.withLock { $0.life.window(ofEpoch: id, rendition) }
  }

  /// The current epoch.
  var epoch: Epoch { state.withLock { $0.life.epoch } }

  var phase: StreamPhase { state.withLock { $0.life.phase } }

  var status: StreamStatus {
    state.withLock { state in
      let (life, publisher) = (state.life, state.publisher)
      var counters = publisher.counters
      counters.waits += state.subscribers.waiting.waits
      counters.playlistRenders = renders.load(ordering: .relaxed)
      for (transcoder, kind) in [(life.transcoder, MediaKind.video), (life.audioTranscoder, .audio)] {
        if let transcoder { counters.add(transcoder.status, of: kind) }
      }
      return StreamStatus(
        name: name, phase: life.phase, epoch: life.epoch.id, protocolName: publisher.lastProtocol,
        startedAt: life.startedAt, endedAt: life.offAirSince.map { $0 &+ clock.wallOffset },
        tracks: life.epoch.initSegment?.tracks ?? [],
        bitrate: life.epoch.window.recentBitrate, longestGroup: life.epoch.longestGroup,
        targetDuration: life.epoch.window.targetDuration, warnings: state.warnings.texts, anchor: life.epoch.anchor,
        residentBytes: life.epoch.heldBytes, playlistRenders: counters.playlistRenders, counters: counters,
        skew: publisher.skew, transcoding: life.transcoder?.status,
        rungs: life.epoch.playableRungs.compactMap(RungStatus.init),
        audioTranscoding: life.audioTranscoder?.status,
        audio: life.epoch.viewWithRungs.playableAudio.first.flatMap(RungStatus.init))
    }
  }

  /// What counts as one address, of its last publisher; nil where there is none.
  var lastHost: String? { state.withLock { $0.publisher.lastHost } }

  /// The distance of key frames that the name's encoder is known to use.
  var knownGroup: MediaTime? { state.withLock { $0.life.knownGroup } }
}
