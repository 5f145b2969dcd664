internal import Base
package import FMP4
internal import Logging
package import NIOCore
package import Publishing
internal import Transcode

/// Those who follow the samples of a stream, each as it comes.
extension LiveStream: WatchedStream {
  package func follow(_ follower: any SampleFollower) -> Bool {
    state.withLock { state in
      guard state.life.phase != .ended else { return false }
      state.subscribers.samples.add(follower)
      return true
    }
  }

  /// Whether anybody follows, at present.
  var hasSampleFollowers: Bool { state.withLock { !$0.subscribers.samples.isEmpty } }

  package func unfollow(_ follower: any SampleFollower) {
    state.withLock { $0.subscribers.samples.remove(follower) }
  }

  package func use(_ tracks: Set<TrackID>) {
    let now = clock.monotonic()
    state.withLock { $0.subscribers.samples.use(tracks, now: now) }
  }

  package func askForKeyFrame() -> Bool {
    let ask = state.withLock { $0.publisher.holder?.askForKeyFrame }
    ask?()
    return ask != nil
  }

  /// Somebody is about to follow, who needs what is made now. To be ended by one call of `letGoOfFollowed`, when the follower
  /// follows or does not come.
  package func holdFollowed() { state.withLock { $0.subscribers.samples.hold() } }

  /// What is made is made no longer, if nobody follows.
  package func letGoOfFollowed() { state.withLock { $0.subscribers.samples.letGo() } }

  /// What followers of samples get, whether its frames are shown in another order than they are decoded, and what can be made
  /// where that does not fit.
  package var followed: (tracks: [TrackDescription], isReordered: Bool, makable: Set<MediaKind>) {
    state.withLock { state in
      let samples = state.subscribers.samples
      var makable: Set<MediaKind> = []
      if state.life.epoch.settings.encodesForWebRTC == .auto {
        if samples.otherAudio != nil, !samples.isMaking { makable.insert(.audio) }
        if samples.ownVideo != nil, !samples.hasRungs { makable.insert(.video) }
      }
      return (samples.tracks, samples.isReordered, makable)
    }
  }

  /// Begins to make media of these kinds for those who follow, until the last one has left. Completed on that loop when there
  /// is some, or when it does not come.
  package func make(_ kinds: Set<MediaKind>, on eventLoop: any EventLoop) -> EventLoopFuture<Void> {
    let wait = state.withLock { state -> (number: UInt64, future: EventLoopFuture<Void>)? in
      guard state.life.phase != .ended else { return nil }
      if kinds.contains(.audio), state.subscribers.samples.otherAudio != nil, !state.subscribers.samples.isMaking {
        makeOpus(&state)
      }
      guard kinds.contains(.video), !state.subscribers.samples.hasRungs, awaitsRungs(&state) else { return nil }
      return state.subscribers.samples.wait(on: eventLoop)
    }
    guard let wait else { return eventLoop.makeSucceededVoidFuture() }
    let deadline = eventLoop.scheduleTask(in: .nanoseconds(Self.rungPatience.nanoseconds)) { [weak self] in
      self?.state.withLock { $0.subscribers.samples.giveUp(wait.number) }
    }
    // The encoder begins with a key frame.
    _ = askForKeyFrame()
    return wait.future.always { _ in deadline.cancel() }
  }

  /// How long a viewer waits for the start of an encoder.
  private static let rungPatience = MediaTime(milliseconds: 3000)

  /// Whether a rung comes soon: of the ladder, or of a worker that is started here.
  private func awaitsRungs(_ state: inout State) -> Bool {
    if state.subscribers.samples.isMakingVideo || state.life.transcoder?.status.rungs.isEmpty == false { return true }
    guard state.subscribers.samples.ownVideo?.codec.displaySize != nil else { return false }
    let address = state.publisher.anonymousHost
    if let refusal = encoders.take(.video, address) {
      logger.warning("no video is made for viewers by WebRTC: \(refusal)")
      return false
    }
    let number = state.subscribers.samples.nextWorker()
    do {
      let transcoder = try LadderTranscoder(
        aim: .video([.forWebRTC]), launcher: workers, logger: logger
      ) { [weak self, encoders] events in
        self?.state.withLock { $0.subscribers.samples.receive(events, of: .followers(number)) }
        if events.contains(where: { if case .ended = $0 { true } else { false } }) {
          encoders.giveBack(.video, address)
        }
      }
      state.subscribers.samples.take(video: transcoder, number, now: clock.monotonic())
      return true
    } catch {
      encoders.giveBack(.video, address)
      logger.error("cannot start a transcoder for viewers by WebRTC: \(error)")
      return false
    }
  }

  private func makeOpus(_ state: inout State) {
    if state.life.epoch.audio?.coding == .opus { return state.subscribers.samples.takeOpusOfRung() }
    let address = state.publisher.anonymousHost
    if let refusal = roomForViewers.take(.audio, address) {
      logger.error("Opus is not made for viewers by WebRTC: \(refusal)")
      return
    }
    let number = state.subscribers.samples.nextWorker()
    do {
      let transcoder = try LadderTranscoder(
        aim: .audio(AudioSpecification(.opus)), launcher: workers, logger: logger
      ) { [weak self, roomForViewers] events in
        self?.state.withLock { $0.subscribers.samples.receive(events, ofOpus: number) }
        if events.contains(where: { if case .ended = $0 { true } else { false } }) {
          roomForViewers.giveBack(.audio, address)
        }
      }
      state.subscribers.samples.take(opus: transcoder, number, now: clock.monotonic())
    } catch {
      roomForViewers.giveBack(.audio, address)
      logger.error("cannot start a transcoder for viewers by WebRTC: \(error)")
    }
  }
}

extension RungSpecification {
  /// H.264 without B-frames, as large as the video up to 720p, at 0.1 bits a pixel.
  fileprivate static let forWebRTC = RungSpecification(shortSide: 720, bitRate: 6_000_000, smallSource: .encoded)
}
