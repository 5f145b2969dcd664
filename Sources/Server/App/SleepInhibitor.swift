internal import Base
internal import Glibc
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// Keeps the machine from sleeping by itself, and from being sent to sleep, while weir captures or records.
final class SleepInhibitor: Sendable {
  private enum State {
    case released
    /// Being taken on another thread, since the bus may not answer.
    case awaited
    /// The descriptor that holds it.
    case held(CInt)
    /// Tried again at this time, quietly.
    case unavailable(until: MonotonicTime)
  }

  private let state = Mutex((state: State.released, isWanted: false, hasTold: false))
  private let clock: SteadyClock
  private let logger: Logger

  /// Nanoseconds after which a bus that did not answer is asked again.
  private static let retryInterval: Int64 = 60_000_000_000

  init(clock: SteadyClock, logger: Logger) {
    (self.clock, self.logger) = (clock, logger)
  }

  deinit {
    want(false)
  }

  /// Takes or releases the inhibitor. To be called about twice a second. Returns at once.
  func want(_ isWanted: Bool) {
    let now = clock.monotonic()
    let isDue = state.withLock { state in
      state.isWanted = isWanted
      switch state.state {
      case .held(let descriptor) where !isWanted:
        close(descriptor)
        state.state = .released
      case .released where isWanted: break
      case .unavailable(let until) where isWanted && now >= until: break
      case .released, .awaited, .held, .unavailable: return false
      }
      if isWanted { state.state = .awaited }
      return isWanted
    }
    guard isDue else { return }
    NIOSingletons.posixBlockingThreadPool.submit { [self] pool in
      guard case .active = pool else { return }
      take()
    }
  }

  private func take() {
    do throws(LoginManager.Unavailable) {
      let descriptor = try LoginManager().inhibit("idle:sleep", who: Version.name, why: "it captures or records")
      let isKept = state.withLock { state in
        state.state = state.isWanted ? .held(descriptor) : .released
        return state.isWanted
      }
      if !isKept { close(descriptor) }
    } catch {
      let until = clock.monotonic() &+ Self.retryInterval
      let isNew = state.withLock { state in
        defer { state.hasTold = true }
        state.state = .unavailable(until: until)
        return !state.hasTold
      }
      if isNew { logger.debug("the machine may go to sleep while weir captures or records: \(error)") }
    }
  }
}
