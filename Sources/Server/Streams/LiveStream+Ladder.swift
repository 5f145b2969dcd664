internal import FMP4
internal import Ingest
internal import Logging
internal import Synchronization

/// The ladder and the sound in another codec: the source's pictures and sound go to transcoders, what they make comes into
/// the rungs' windows. The source never waits for it.
extension LiveStream {
  /// Gives the transcoder what concerns it of an event on the epoch's timeline.
  func feedLadder(_ event: MediaEvent, _ state: inout State) {
    guard !settings.ladder.isEmpty || settings.sound != nil else { return }
    switch event {
    case .tracks(let tracks):
      let picture = tracks.first(.video)
      if state.transcoder == nil, picture != nil, !settings.ladder.isEmpty {
        state.transcoder = makeTranscoder(.pictures(settings.ladder), .video, epoch: state.epoch.id)
      }
      state.transcoder?.use(picture)
      let sound = tracks.first(.audio)
      if state.soundTranscoder == nil, sound != nil, let aim = settings.sound {
        state.soundTranscoder = makeTranscoder(.sound(aim), .audio, epoch: state.epoch.id)
      }
      state.soundTranscoder?.use(sound)
    case .sample(let sample):
      if state.transcoder?.feed(sample) != true { _ = state.soundTranscoder?.feed(sample) }
    case .discontinuity:
      state.transcoder?.drain()
      state.soundTranscoder?.drain()
    case .clock, .progress, .end: break
    }
  }

  /// The epoch is over: the last pictures of its rungs come in a moment.
  func finishLadder(_ state: inout State) {
    for (transcoder, kind) in [(state.transcoder, MediaKind.video), (state.soundTranscoder, .audio)] {
      if let transcoder {
        state.counters.add(transcoder.status, of: kind)
        transcoder.finish()
      } else {
        let rungs = state.epoch.rungs.map(\.window.version)
        try? state.epoch.receive(.ended, of: kind)
        _ = feedRungs(since: rungs, &state)
        dismissRungs(of: kind, &state)
      }
    }
    (state.transcoder, state.soundTranscoder) = (nil, nil)
  }

  private func makeTranscoder(
    _ aim: LadderTranscoder.Aim, _ kind: MediaKind, epoch: String
  ) -> LadderTranscoder? {
    do {
      return try LadderTranscoder(
        aim: aim, launcher: workers, logger: logger
      ) { [weak self] events in
        self?.receive(events, of: kind, epoch: epoch)
      }
    } catch {
      logger.error("nothing is made of the stream: \(error)")
      return nil
    }
  }

  /// Takes what a transcoder made for an epoch. On its thread.
  func receive(_ events: [TranscodeEvent], of kind: MediaKind, epoch id: String) {
    state.withLock { state in
      guard state.epoch.id == id else {
        guard state.previous?.epoch.id == id else { return }
        for event in events { try? state.previous?.epoch.receive(event, of: kind) }
        return stamp.change()
      }
      let before = state.epoch.rungs.map(\.window.version)
      for event in events {
        switch event {
        case .lost: if kind == .video { state.awaitsSegment = true }
        case .picture: if kind == .video { state.awaitsSegment = false }
        case .track, .ended: break
        }
        do {
          try state.epoch.receive(event, of: kind)
        } catch {
          logger.error("a fragment of a rung is lost: \(error)")
        }
      }
      let hasChanged = feedRungs(since: before, &state)
      if events.contains(where: { if case .ended = $0 { true } else { false } }) {
        dismissRungs(of: kind, &state)
      }
      guard hasChanged else { return }
      stamp.change()
      wake(&state)
    }
  }

  /// Hands what is new in the rungs' windows since they had these versions to those who follow their segments.
  func feedRungs(since versions: [Int], _ state: inout State) -> Bool {
    var hasChanged = false
    for (rung, version) in zip(state.epoch.rungs, versions) where rung.window.version != version {
      hasChanged = true
      feedFollowers(of: rung.window, rung: rung, &state)
    }
    return hasChanged
  }

  /// Nothing more comes of the rungs' segments; nil: of none of them.
  func dismissRungs(of kind: MediaKind? = nil, _ state: inout State) {
    for (key, followed) in state.followers where key.rung != nil && (kind == nil || key.rung?.kind == kind) {
      followed.followers.finish()
      state.followers[key] = nil
    }
  }
}

extension LiveStream.State {
  /// The rungs that are being made.
  var expectedRungs: [String] { (transcoder?.status.rungs ?? []) + (soundTranscoder?.status.rungs ?? []) }
}
