internal import Base
internal import FMP4
internal import Logging
internal import Publishing
internal import Transcode

/// The ladder, and the audio in another codec. Video and audio of the source go to transcoders; the results go to the windows
/// of the rungs. The source never waits for them.
extension LiveStream {
  /// Adds AAC to audio that most browsers cannot play, where the stream begins with it and the settings say nothing. Without a worker
  /// for it players are promised nothing, and a warning says so.
  func addPlayableAudio(for event: MediaEvent, _ state: inout State) {
    guard case .tracks(let tracks) = event, state.life.epoch.mayAddAudio, let audio = tracks.first(.audio),
      audio.codec.id.isRarelyPlayed
    else { return }
    let aac = AudioSpecification(.aac)
    guard let transcoder = makeTranscoder(.audio(aac), .audio, state) else {
      state.life.epoch.addNoAudio()
      return add(.rarelyPlayed(audio.codec.name), &state)
    }
    state.life.audioTranscoder = transcoder
    state.life.epoch.add(aac, beside: tracks)
  }

  /// Passes an event on the epoch's timeline to the transcoders.
  func feedLadder(_ event: MediaEvent, _ state: inout State) {
    let (ladder, aim) = (state.life.epoch.settings.ladder, state.life.epoch.audio)
    guard !ladder.isEmpty || aim != nil else { return }
    switch event {
    case .tracks(let tracks):
      // A track that stays the same while others change is not interrupted.
      let goOn = tracks.hasFurther || state.life.transcoded.hasFurther
      let known = goOn ? state.life.transcoded : []
      state.life.transcoded = tracks
      let video = tracks.first(.video)
      if state.life.transcoder == nil, video != nil, !ladder.isEmpty {
        state.life.transcoder = makeTranscoder(.video(ladder), .video, state)
      }
      if video == nil || known.first(.video) != video { state.life.transcoder?.use(video) }
      let audio = tracks.first(.audio)
      if state.life.audioTranscoder == nil, audio != nil, let aim {
        state.life.audioTranscoder = makeTranscoder(.audio(aim), .audio, state)
      }
      if audio == nil || known.first(.audio) != audio { state.life.audioTranscoder?.use(audio) }
    case .sample(let sample):
      if state.life.transcoder?.feed(sample) != true { _ = state.life.audioTranscoder?.feed(sample) }
    case .discontinuity:
      state.life.transcoded = []
      state.life.transcoder?.drain()
      state.life.audioTranscoder?.drain()
    case .clock, .progress, .end: break
    }
  }

  /// Ends the transcoders after the epoch. The last frames of the rungs arrive shortly after.
  func finishLadder(_ state: inout State) {
    for (transcoder, kind) in [(state.life.transcoder, MediaKind.video), (state.life.audioTranscoder, .audio)] {
      if let transcoder {
        state.publisher.counters.add(transcoder.status, of: kind)
        transcoder.finish()
      } else {
        let rungs = state.life.epoch.rungs.versions
        try? state.life.epoch.receive(.ended, of: kind)
        _ = state.subscribers.feed(state.life.epoch.rungs, since: rungs)
        dismissFollowers(ofRungs: kind, &state)
      }
    }
    (state.life.transcoder, state.life.audioTranscoder) = (nil, nil)
  }

  private func makeTranscoder(
    _ aim: TranscodeAim, _ kind: MediaKind, _ state: borrowing State
  ) -> LadderTranscoder? {
    let (epoch, address) = (state.life.epoch.id, state.publisher.anonymousHost)
    // A worker that the settings ask for has its descriptors already.
    let isAdded = kind == .audio && settings.audio == nil
    if isAdded, let refusal = room.take(kind, address) {
      logger.error("AAC is not added to the audio: \(refusal)")
      return nil
    }
    do {
      return try LadderTranscoder(
        aim: aim, launcher: workers, logger: logger
      ) { [weak self, room] events in
        self?.receive(events, of: kind, epoch: epoch)
        if isAdded, events.contains(where: { if case .ended = $0 { true } else { false } }) {
          room.giveBack(kind, address)
        }
      }
    } catch {
      if isAdded { room.giveBack(kind, address) }
      logger.error("cannot start a transcoder for the stream: \(error)")
      return nil
    }
  }

  /// Takes the output of a transcoder for an epoch. Called on the transcoder's thread.
  func receive(_ events: [TranscodeEvent], of kind: MediaKind, epoch id: String) {
    state.withLock { state in
      guard state.life.epoch.id == id else {
        guard state.life.receive(events, of: kind, afterEndOf: id) else { return }
        stamp.change()
        wake(&state)
        return
      }
      if kind == .audio, state.life.epoch.audio?.coding == .opus {
        state.subscribers.samples.receive(events, ofOpus: nil)
      }
      if kind == .video { state.subscribers.samples.receive(events, of: .ladder) }
      let before = state.life.epoch.rungs.versions
      for event in events {
        switch event {
        case .lost: if kind == .video { state.life.awaitsSegment = true }
        case .frame: if kind == .video { state.life.awaitsSegment = false }
        case .track, .ended: break
        }
        do {
          try state.life.epoch.receive(event, of: kind)
        } catch {
          logger.error("cannot store a fragment of a rung: \(error)")
        }
      }
      let hasChanged = state.subscribers.feed(state.life.epoch.rungs, since: before)
      if events.contains(where: { if case .ended = $0 { true } else { false } }) {
        dismissFollowers(ofRungs: kind, &state)
      }
      guard hasChanged else { return }
      stamp.change()
      noteRenditions(state)
      wake(&state)
    }
  }

  /// Ends the responses that follow segments of these rungs.
  private func dismissFollowers(ofRungs kind: MediaKind, _ state: inout State) {
    state.subscribers.dismissFollowers { $0?.kind == kind }
  }
}
