internal import Basics
internal import FMP4
internal import Ingest
internal import Logging

/// Limits the memory of the stream's media.
extension LiveStream {
  /// A publication whose media arrives faster than this multiple of real time gets a warning.
  private static let fast = 2.0

  /// Reports the memory use to the budget, and drops the oldest segments when it is too high.
  func boundMemory(_ state: inout State) {
    let share = memory.hold(state.life.heldBytes, by: name, of: state.publisher.anonymousHost)
    state.life.epoch.segmentBytes = share.segmentBytes
    guard state.life.heldBytes > share.bytes else { return }
    shrink(&state, to: share.bytes)
    if state.life.phase == .live { warn(.outgrowsMemory, &state) }
  }

  /// Reduces the memory because other streams need it.
  func shrink(to bytes: Int) {
    state.withLock { state in shrink(&state, to: bytes) }
  }

  private func shrink(_ state: inout State, to bytes: Int) {
    state.life.shrink(to: bytes)
    stamp.change()
    _ = memory.hold(state.life.heldBytes, by: name, of: state.publisher.anonymousHost)
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
      let own = min(state.life.epoch.window.recentBitrate / 8, state.publisher.bytesPerSecond(now: now))
      let rate = state.life.epoch.rungs.reduce(own) { $0 + $1.window.recentBitrate / 8 }
      let (whole, overflow) = rate.multipliedReportingOverflow(
        by: Int(clamping: state.life.epoch.settings.window.rescaled(to: 1)))
      return max(0, min(overflow ? .max : whole, memory.perStream) - state.life.heldBytes)
    }
  }
}
