internal import Basics
internal import FMP4
internal import Ingest
internal import Logging

/// How much memory the stream's media may take.
extension LiveStream {
  /// A publication whose media come faster than this many times real time is told so.
  private static let fast = 2.0

  /// Tells the budget what the stream keeps, and forgets its oldest segments where that is too much.
  func boundMemory(_ state: inout State) {
    let share = memory.hold(state.life.heldBytes, by: name, of: state.publisher.unprovenHost)
    state.life.epoch.segmentBytes = share.segmentBytes
    guard state.life.heldBytes > share.bytes else { return }
    shrink(&state, to: share.bytes)
    if state.life.phase == .live { warn(.outgrowsMemory, &state) }
  }

  /// Others need the memory more.
  func shrink(to bytes: Int) {
    state.withLock { state in shrink(&state, to: bytes) }
  }

  private func shrink(_ state: inout State, to bytes: Int) {
    state.life.shrink(to: bytes)
    stamp.change()
    _ = memory.hold(state.life.heldBytes, by: name, of: state.publisher.unprovenHost)
  }

  /// Tells whether the publication's media come faster than they play.
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

  /// Bytes by which its windows will still grow: of what arrives, as far as the stream may keep it.
  var expectedGrowth: Int {
    let now = clock.monotonicNanoseconds()
    return state.withLock { state in
      guard state.life.phase == .live || state.life.phase == .starting else { return 0 }
      let own = min(state.life.epoch.window.recentBitrate / 8, state.publisher.bytesPerSecond(now: now))
      let rate = state.life.epoch.rungs.reduce(own) { $0 + $1.window.recentBitrate / 8 }
      let (whole, overflow) = rate.multipliedReportingOverflow(by: Int(clamping: settings.window.rescaled(to: 1)))
      return max(0, min(overflow ? .max : whole, memory.perStream) - state.life.heldBytes)
    }
  }
}
