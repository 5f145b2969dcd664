internal import Basics
internal import FMP4
internal import Ingest
internal import Logging

/// Those who follow the samples of a stream, each as it comes.
extension LiveStream: WatchedStream {
  func follow(_ follower: any SampleFollower) -> Bool {
    state.withLock { state in
      guard state.life.phase != .ended else { return false }
      state.subscribers.samples.add(follower)
      return true
    }
  }

  func unfollow(_ follower: any SampleFollower) {
    state.withLock { $0.subscribers.samples.remove(follower) }
  }

  func askForKeyFrame() -> Bool {
    let ask = state.withLock { $0.publisher.holder?.askForKeyFrame }
    ask?()
    return ask != nil
  }

  /// What followers of samples get, and whether its frames are shown in another order than they are decoded. To be ended by one
  /// call of `giveBackFollowed`, when the follower follows or does not come.
  ///
  /// - Parameter needsAudio: of audio that they do not take Opus is made from now on, until the last one has left.
  func followed(needsAudio: Bool) -> (tracks: [TrackDescription], isReordered: Bool) {
    state.withLock { state in
      state.subscribers.samples.hold()
      if needsAudio, state.subscribers.samples.otherAudio != nil, !state.subscribers.samples.isMaking {
        makeOpus(&state)
      }
      return (state.subscribers.samples.tracks, state.subscribers.samples.isReordered)
    }
  }

  /// Makes Opus no longer, if nobody follows.
  func giveBackFollowed() { state.withLock { $0.subscribers.samples.letGo() } }

  private func makeOpus(_ state: inout State) {
    if state.life.epoch.audio?.coding == .opus { return state.subscribers.samples.take(nil) }
    guard room.take() else {
      logger.error("Opus is not made for viewers by WebRTC: the server has no file descriptors for its worker")
      return
    }
    do {
      let transcoder = try LadderTranscoder(
        aim: .audio(AudioSpecification(.opus)), launcher: workers, logger: logger
      ) { [weak self, room] events in
        self?.state.withLock { $0.subscribers.samples.receive(events) }
        if events.contains(where: { if case .ended = $0 { true } else { false } }) { room.giveBack() }
      }
      state.subscribers.samples.take(transcoder)
    } catch {
      room.giveBack()
      logger.error("cannot start a transcoder for viewers by WebRTC: \(error)")
    }
  }
}
