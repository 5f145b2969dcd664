internal import Base
internal import Control
internal import FMP4
internal import Logging
package import Publishing

/// A publication of the server's own takes the place of a publisher that is away: in the same epoch, behind a discontinuity. The
/// publisher is back with its first key frame.
extension LiveStream {
  /// How long a publisher is away before the stand-in begins: many return at once.
  static let standInDelay = MediaTime(milliseconds: 300)
  /// How long after a stand-in that ended by itself the next one begins.
  private static let standInPause = MediaTime(milliseconds: 5000)

  /// Begins or ends the stand-in as it is due. To be called twice a second, and when a publisher has been away for `standInDelay`.
  func tendStandIn(by present: StreamSettings, _ sources: any FallbackSources) {
    let now = clock.monotonic()
    let (due, over) = state.withLock { state -> (StandIn?, (any FallbackRun)?) in
      if let standIn = state.air.standIn, standIn.fallback != present.fallback {
        return (nil, endStandIn(&state))
      }
      guard let fallback = present.fallback, state.air.standIn == nil, now >= state.air.notBefore ?? now,
        isAway(state, silence: present.fallbackAfter, now: now)
      else { return (nil, nil) }
      let standIn = StandIn(number: state.air.nextNumber(), fallback: fallback, since: now)
      state.air.standIn = standIn
      return (standIn, nil)
    }
    over?.stop()
    guard let due else { return }
    let run = sources.begin(due.fallback, of: name, through: StandInGate(self, due.number))
    let isIn = state.withLock { state in
      guard state.air.standIn?.number == due.number else { return false }
      if run == nil { state.air.standIn = nil } else { state.air.standIn?.run = run }
      return true
    }
    if !isIn { run?.stop() }
  }

  /// Viewers get nothing of the publisher.
  private func isAway(_ state: borrowing State, silence: MediaTime, now: MonotonicTime) -> Bool {
    guard !state.life.isLeaving, state.turns.pending == nil else { return false }
    if let holder = state.publisher.holder {
      return now &- holder.lastLeading >= silence.nanoseconds
    }
    switch state.life.phase {
    case .reconnecting, .offAir: return now &- state.life.phaseSince >= Self.standInDelay.nanoseconds
    case .starting, .live, .ended: return false
    }
  }

  /// Ends the stand-in. What comes next does not continue its media. The caller stops the run without the stream's lock.
  func endStandIn(_ state: inout State) -> (any FallbackRun)? {
    guard let standIn = state.air.standIn else { return nil }
    if standIn.isOnAir {
      interrupt(&state)
      state.subscribers.isStoodIn = false
      logger.notice("is off its fallback")
    }
    state.air.standIn = nil
    state.life.isStoodIn = false
    stamp.change()
    return standIn.run
  }

  /// Takes an event of a stand-in. `.closed` when it is wanted no longer.
  func receive(
    _ event: MediaEvent, ofStandIn number: Int, _ keyFrames: PublishRequest.KeyFrames
  ) -> SinkVerdict {
    let now = clock.monotonic()
    return state.withLock { state in
      guard state.air.standIn?.number == number else { return .closed(.replaced) }
      if case .end(let reason) = event {
        endedByItself(reason.text, now: now, &state)
        return .accepted
      }
      if !state.air.isStoodIn {
        // A publisher came meanwhile, or its video.
        if let holder = state.publisher.holder, let since = state.air.standIn?.since, holder.lastLeading > since {
          state.air.standIn = nil
          return .closed(.replaced)
        }
        putOnAir(keyFrames, &state)
      }
      do {
        try feed(event, &state)
        return .accepted
      } catch {
        logger.error("the fallback ends, because its media cannot be stored: \(error)")
        endedByItself("\(error)", now: now, &state)
        return .closed(.failed("\(error)"))
      }
    }
  }

  private func putOnAir(_ keyFrames: PublishRequest.KeyFrames, _ state: inout State) {
    logger.notice("is on its fallback, until its publisher is back")
    // A publisher that is silent may have left something unfinished.
    if state.publisher.holder != nil {
      interrupt(&state)
      state.air.late = LateStart(tracks: state.air.tracks, anchor: state.air.anchor)
    }
    tellRelays(.end(.connectionLost("its publisher is away")), &state)
    state.air.standIn?.isOnAir = true
    state.air.trouble = nil
    (state.life.isStoodIn, state.subscribers.isStoodIn) = (true, true)
    state.life.epoch.startPublication(keyFrames)
    tell(.streamSwitched, because: nil, state)
  }

  private func endedByItself(_ reason: String, now: MonotonicTime, _ state: inout State) {
    logger.warning("the fallback has ended: \(reason); it begins again in \(Self.standInPause.seconds) s")
    state.air.trouble = "the fallback has ended: \(reason)"
    state.air.notBefore = now &+ Self.standInPause.nanoseconds
    _ = endStandIn(&state)
  }

  /// What of a publisher's event viewers get. Where it is back, the stand-in ends; the caller stops its run.
  func passOnAir(_ event: MediaEvent, _ state: inout State) -> (events: [MediaEvent], over: (any FallbackRun)?) {
    state.air.note(event)
    guard state.air.late != nil else { return ([event], nil) }
    let events = state.air.late?.take(event) ?? []
    if events.isEmpty, case .sample(let sample) = event,
      let kind = state.air.tracks.first(where: { $0.id == sample.track })?.kind
    {
      state.publisher.countEarly(taken: kind)
    }
    guard state.air.isStoodIn, state.air.late?.hasBegun == true else { return (events, nil) }
    let over = endStandIn(&state)
    state.life.epoch.startPublication(state.publisher.keyFrames)
    tell(.streamSwitched, because: nil, state)
    return (events, over)
  }

  // MARK: Streams whose fallback this one is

  /// From now on the follower gets the events of the publisher, by its own times: at once the present tracks and clock, then what
  /// comes. It gets the end where the publisher is away. False where it is away already. Called with no other stream's lock.
  package func relay(to follower: any SampleFollower) -> Bool {
    state.withLock { state in
      guard state.publisher.holder != nil, !state.air.isStoodIn, !state.air.tracks.isEmpty else { return false }
      state.air.relays[ObjectIdentifier(follower)] = follower
      if let anchor = state.air.anchor { follower.receive(.clock(anchor)) }
      follower.receive(.tracks(state.air.tracks))
      return true
    }
  }

  package func endRelay(to follower: any SampleFollower) {
    state.withLock { $0.air.relays[ObjectIdentifier(follower)] = nil }
  }

  func tellRelays(_ event: MediaEvent, _ state: inout State) {
    guard !state.air.relays.isEmpty else { return }
    for relay in state.air.relays.values { relay.receive(event) }
    if case .end = event { state.air.relays = [:] }
  }
}

/// A stream that is on air without a publisher.
extension LiveStream {
  /// It waits for its first publisher: the stand-in begins. `makeSinks` is as in `Subscribers`, for what does not end with a
  /// publication.
  func open(makeSinks: (_ epoch: String, _ isNew: Bool) -> [any FragmentSink]) {
    state.withLock { state in
      guard state.publisher.holder == nil, state.life.phase == .starting else { return }
      state.life.isHeld = true
      _ = state.subscribers.makeSinks(of: state.life.epoch, makeSinks)
      state.subscribers.awaitPublication()
      state.life.enter(.offAir, now: clock.monotonic())
      standIns?.tendSoon(self)
    }
  }
}

extension LiveStream.State {
  /// Nil while nobody sends.
  var onAir: Input? {
    if air.isStoodIn { return .fallback }
    return publisher.holder == nil ? nil : .publisher
  }

  /// Nothing of the stand-in is taken any more.
  mutating func dropStandIn() { (air.standIn, life.isStoodIn, subscribers.isStoodIn) = (nil, false, false) }
}
