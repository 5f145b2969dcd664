import Base
import Support
import Synchronization

/// A clock that tests move.
final class ManualClock: Sendable {
  private let now = Mutex<MonotonicTime>(1_000_000_000_000)

  func advance(seconds: Double) { now.withLock { $0 += Int64(seconds * 1e9) } }

  var clock: SteadyClock {
    SteadyClock(ClockReading(wall: EpochDriver.wall, monotonic: 0)) { self.now.withLock { $0 } }
  }
}
