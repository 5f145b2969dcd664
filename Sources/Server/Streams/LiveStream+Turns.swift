internal import Base
internal import Control
internal import FMP4
internal import Publishing
internal import Transcode

/// A change of a stream's phase.
enum StreamTurn: Sendable {
  /// The publisher was lost: viewers wait for it, if there is anything to watch.
  case lost(EndReason)
  /// The publisher stopped, or did not return in time: the stream waits for the next one.
  case stopped(EndReason)
  /// A publisher is back.
  case resumed
  case ended(EndReason)
}

/// The change that was told and waits to be made: nothing shows it before its event is written.
struct StreamTurns: Sendable {
  fileprivate(set) var pending: (turn: StreamTurn, number: Int)?
  private var count = 0
  /// The epoch whose start was told.
  var begunEpoch: String?

  fileprivate mutating func put(_ turn: StreamTurn) -> Int {
    count += 1
    pending = (turn, count)
    return count
  }
}

/// Changes of the phase. Each is told first, and made when its event is written. The stream's lock is not held meanwhile, and
/// publisher and viewers find the stream as it was.
extension LiveStream {
  /// Tells of a change. It is made at once if there is nothing to wait for.
  ///
  /// - Parameter who: who caused it; nil for the publisher.
  func turn(_ turn: StreamTurn, by who: String? = nil, _ state: inout State) {
    makeTurns(&state)
    let ticket =
      switch turn {
      case .lost(let reason):
        tell(.streamInterrupted, because: reason.text, by: who, of: state.publisher.lastLink, state)
      case .stopped(let reason):
        // A loss was told when it came.
        state.life.phase == .reconnecting
          ? EventTicket.settled
          : tell(.streamInterrupted, because: reason.text, by: who, of: state.publisher.lastLink, state)
      case .resumed: tell(.streamResumed, because: nil, state)
      case .ended(let reason):
        state.life.phase == .ended
          ? EventTicket.settled
          : tell(.streamEnded, because: reason.text, by: who, of: state.publisher.lastLink, state)
      }
    let number = state.turns.put(turn)
    let waits = ticket.whenWritten { [self] in
      self.state.withLock { if $0.turns.pending?.number == number { makeTurn(&$0) } }
    }
    if !waits { makeTurn(&state) }
  }

  /// Makes the change that was told, and what it leads to.
  func makeTurns(_ state: inout State) {
    while state.turns.pending != nil { makeTurn(&state) }
  }

  /// Makes the change that was told, if there is one.
  func makeTurn(_ state: inout State) {
    guard let (turn, _) = state.turns.pending else { return }
    state.turns.pending = nil
    switch turn {
    case .lost(let reason):
      stamp.change()
      if !state.air.isStoodIn { interrupt(&state) }
      guard !state.life.isWithoutMedia else { return self.turn(.ended(reason), &state) }
      state.life.enter(.reconnecting, now: clock.monotonic())
      standIns?.tendSoon(self)
    case .stopped(let reason):
      stamp.change()
      if !state.air.isStoodIn { interrupt(&state) }
      guard !state.life.isWithoutMedia else { return self.turn(.ended(reason), &state) }
      state.subscribers.endPublication(reason)
      if !state.air.isStoodIn {
        state.life.transcoder?.rest()
        state.life.audioTranscoder?.rest()
      }
      state.life.enter(.offAir, now: clock.monotonic())
      standIns?.tendSoon(self)
    case .resumed:
      stamp.change()
      state.life.enter(state.life.epoch.window.hasBegun ? .live : .starting, now: clock.monotonic())
    case .ended(let reason): end(reason, &state)
    }
    // What its publisher had not finished is gone.
    memory.reduce(name, to: state.heldBytes)
  }

  /// A publisher was admitted.
  func begin(_ state: inout State) {
    let epoch = state.life.epoch.id
    guard state.turns.begunEpoch == epoch else {
      state.turns.begunEpoch = epoch
      state.life.enter(state.life.epoch.window.hasBegun ? .live : .starting, now: clock.monotonic())
      tell(.streamStarted, because: nil, state)
      return
    }
    turn(.resumed, &state)
  }

  // MARK: Telling

  /// - Parameter link: the figures of the connection that is over.
  @discardableResult
  func tell(
    _ kind: EventKind, because reason: String?, by who: String? = nil, of link: LinkFigures? = nil,
    _ state: borrowing State
  ) -> EventTicket {
    guard let events else { return .settled }
    let epoch = state.life.epoch.id
    return events.tell(
      kind, of: name.description, by: who ?? state.publisher.lastAddress, epoch: epoch,
      [
        "epoch": .text(epoch), "protocol": .text(state.publisher.lastProtocol), "reason": .text(orNull: reason),
        "startedAt": .text(UTCText(state.life.startedAt).internet), "link": link.map(EventValue.init) ?? .null,
        "received": EventValue(state.publisher.counters.intake),
        "tracks": .list((state.life.epoch.initSegment?.tracks ?? []).map(EventValue.init)),
        "onAir": .text(orNull: state.onAir?.rawValue),
        "watch": .text("/watch/\(name)"),
        "hls": .text("/live/\(name)/index.m3u8"), "dash": .text("/live/\(name)/manifest.mpd"),
      ])
  }

  /// Tells of a warning.
  func tell(_ warning: String, _ state: borrowing State) {
    events?.tell(.streamWarned, of: name.description, ["epoch": .text(state.life.epoch.id), "warning": .text(warning)])
  }
}

extension EventValue {
  /// As the API tells it.
  fileprivate init(_ link: LinkFigures) {
    self = [
      "rttMilliseconds": .number(Double(link.roundTrip) / 1000), "latencyMilliseconds": .whole(Int64(link.latency)),
      "receivedPackets": .whole(Int64(clamping: link.received)), "lostPackets": .whole(Int64(clamping: link.lost)),
      "retransmittedPackets": .whole(Int64(clamping: link.retransmitted)),
      "droppedPackets": .whole(Int64(clamping: link.dropped)),
      "undecryptedPackets": .whole(Int64(clamping: link.undecrypted)),
    ]
  }

  /// As the API tells it: what came by the present protocol since the stream was created.
  fileprivate init(_ intake: StreamCounters.Intake) {
    self = [
      "bytes": .whole(Int64(clamping: intake.bytes)), "videoFrames": .whole(Int64(clamping: intake.frames)),
      "keyFrames": .whole(Int64(clamping: intake.keyFrames)),
      "audioFrames": .whole(Int64(clamping: intake.audioFrames)),
      "lostVideoFrames": .whole(Int64(clamping: intake.lostFrames)),
      "lostAudioFrames": .whole(Int64(clamping: intake.lostAudioFrames)),
      "earlyVideoFrames": .whole(Int64(clamping: intake.earlyFrames)),
      "earlyAudioFrames": .whole(Int64(clamping: intake.earlyAudioFrames)),
      "mendedVideoFrames": .whole(Int64(clamping: intake.mendedFrames)),
      "mendedAudioFrames": .whole(Int64(clamping: intake.mendedAudioFrames)),
      "audioCorrections": .whole(Int64(clamping: intake.audioCorrections)),
    ]
  }

  /// As the API tells it.
  fileprivate init(_ track: TrackDescription) {
    let (size, format) = (track.codec.displaySize, track.codec.audio)
    self = [
      "kind": .text(track.kind.rawValue), "codec": .text(track.codec.name),
      "codecString": .text(track.codec.codecString), "width": size.map { .whole(Int64($0.width)) } ?? .null,
      "height": size.map { .whole(Int64($0.height)) } ?? .null,
      "frameRate": track.frameRate.map { .number(Double($0) / 1000) } ?? .null,
      "sampleRate": format.map { .whole(Int64($0.sampleRate)) } ?? .null,
      "channels": format.map { .whole(Int64($0.channels)) } ?? .null,
    ]
  }
}
