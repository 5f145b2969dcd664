internal import Base
internal import FMP4
internal import Logging
internal import Publishing
internal import Transcode

/// Limits the memory of the stream's media.
extension LiveStream {
  /// A publication whose media arrives faster than this multiple of real time gets a warning.
  private static let fast = 2.0
  /// Bytes of media that may come without a fragment before the memory is counted again.
  private static let pendingStep = 1 << 20

  /// Drops segments that came too long ago or too slowly, reports the memory use to the budget, and drops the oldest segments
  /// when it is too high. Returns whether any was dropped.
  @discardableResult
  func boundMemory(_ state: inout State) -> Bool {
    state.countedIntake = state.publisher.counters.intake.bytes
    let slow = state.life.epoch.window.slowBytes
    var hasDropped = state.life.epoch.dropLate(slowBytes: memory.slowMedia)
    let share = memory.hold(state.heldBytes, by: name, of: state.publisher.anonymousHost)
    state.life.epoch.segmentBytes = share.segmentBytes
    if state.heldBytes > share.bytes {
      shrink(&state, to: share.bytes)
      hasDropped = true
    } else if slow <= memory.slowMedia {
      withdrawOutgrown(&state)
      return hasDropped
    }
    state.outgrewAt = clock.monotonic()
    if state.life.phase == .live { warn(.outgrowsMemory, &state) }
    return hasDropped
  }

  /// Withdraws the warning of too little memory when viewers can go back as far as they should again.
  private func withdrawOutgrown(_ state: inout State) {
    guard let last = state.outgrewAt, clock.monotonic() &- last >= state.life.epoch.settings.window.nanoseconds else {
      return
    }
    state.outgrewAt = nil
    state.warnings.withdraw(.outgrowsMemory)
  }

  /// Limits the memory where media comes of which no fragment is complete.
  func boundPending(_ state: inout State) {
    if state.publisher.counters.intake.bytes &- state.countedIntake >= Self.pendingStep { boundMemory(&state) }
  }

  /// Reduces the memory because other streams need it.
  func shrink(to bytes: Int) {
    state.withLock { state in shrink(&state, to: bytes) }
  }

  private func shrink(_ state: inout State, to bytes: Int) {
    state.life.shrink(to: max(0, bytes - state.waitingBytes))
    stamp.change()
    _ = memory.hold(state.heldBytes, by: name, of: state.publisher.anonymousHost)
  }

  /// Warns when media arrives faster than real time.
  func judgePace(_ state: inout State) {
    guard let share = state.publisher.newPace else { return }
    if share > Self.fast {
      warn(.runsAhead, &state)
    } else {
      state.warnings.withdraw(.runsAhead)
    }
  }

  private func warn(_ warning: PublicationWarning, _ state: inout State) {
    if state.warnings.add(warning) { logger.warning("\(warning)") }
  }

  /// Bytes by which the windows will still grow: the rate of arrival, up to the stream's limit.
  var expectedGrowth: Int {
    let now = clock.monotonic()
    return state.withLock { state in
      guard state.life.phase == .live || state.life.phase == .starting else { return 0 }
      let window = state.life.epoch.window
      // What comes too slowly for its length leaves as it comes.
      let timely = max(0, window.residentBytes - (memory.slowMedia == .max ? 0 : window.slowBytes))
      let rate = min(window.recentBitrate / 8, state.publisher.bytesPerSecond(now: now))
      let own = Int(Double(rate) * Double(timely) / Double(max(1, window.residentBytes)))
      let all = state.life.epoch.rungs.reduce(own) { $0 + $1.window.recentBitrate / 8 }
      let (whole, overflow) = all.multipliedReportingOverflow(
        by: Int(clamping: state.life.epoch.settings.window.rescaled(to: 1)))
      return max(0, min(overflow ? .max : whole, memory.perStream) - state.heldBytes)
    }
  }
}

extension LiveStream.State {
  /// Bytes that are not in a window: of unfinished messages, and of media that waits for the workers of rungs and audio.
  fileprivate var waitingBytes: Int {
    (publisher.holder?.unfinishedBytes ?? 0) + (life.transcoder?.waitingBytes ?? 0)
      + (life.audioTranscoder?.waitingBytes ?? 0)
  }

  /// Bytes of media in memory, with those that are on their way into it.
  var heldBytes: Int { life.heldBytes + waitingBytes }
}
