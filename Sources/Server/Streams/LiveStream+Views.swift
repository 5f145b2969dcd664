internal import Base
internal import FMP4
internal import Synchronization
internal import Transcode

/// State of a stream for other parts of the server.
extension LiveStream {
  /// The window of a rendition in an epoch; nil when either does not exist.
  package func window(ofEpoch id: String, _ rendition: Rendition = .interleaved) -> LiveWindow? {
    state.withLock { $0.life.window(ofEpoch: id, rendition) }
  }

  /// The current epoch.
  package var epoch: Epoch { state.withLock { $0.life.epoch } }

  package var phase: StreamPhase { state.withLock { $0.life.shownPhase } }

  package var status: StreamStatus {
    state.withLock { state in
      let (life, publisher) = (state.life, state.publisher)
      var counters = publisher.counters
      counters.waits += state.subscribers.waiting.waits
      counters.playlistRenders = renders.load(ordering: .relaxed)
      for (transcoder, kind) in [(life.transcoder, MediaKind.video), (life.audioTranscoder, .audio)] {
        if let transcoder { counters.add(transcoder.status, of: kind) }
      }
      return StreamStatus(
        name: name, phase: life.shownPhase, onAir: state.onAir, epoch: life.epoch.id,
        protocolName: publisher.lastProtocol,
        startedAt: life.startedAt, endedAt: life.phase == .ended ? life.offAirSince.map(clock.reading.wallTime) : nil,
        tracks: life.epoch.initSegment?.tracks ?? [],
        bitrate: life.shownPhase == .offAir ? 0 : life.epoch.window.recentBitrate,
        longestGroup: life.epoch.longestGroup,
        targetDuration: life.epoch.window.targetDuration,
        // Those of a publisher that has left tell nobody anything.
        warnings: (life.phase == .offAir ? [] : state.warnings.texts) + state.subscribers.sinks.compactMap(\.warning)
          + (state.air.trouble.map { [$0] } ?? []),
        anchor: life.epoch.anchor,
        residentBytes: life.epoch.heldBytes, playlistRenders: counters.playlistRenders, counters: counters,
        skew: publisher.skew, link: publisher.holder?.link, cues: state.cues,
        captions: life.epoch.window.captions.captions(of: .video), content: publisher.content,
        transcoding: life.transcoder?.status,
        rungs: life.epoch.playableRungs.compactMap(RungStatus.init),
        audioTranscoding: life.audioTranscoder?.status,
        audio: life.epoch.viewWithRungs.playableAudio.first.flatMap(RungStatus.init))
    }
  }

  /// The address of the last publisher, as it is counted; nil without one.
  var lastHost: String? { state.withLock { $0.publisher.lastHost } }

  /// The known key frame interval of this name's encoder.
  var knownGroup: MediaTime? { state.withLock { $0.life.knownGroup } }
}
