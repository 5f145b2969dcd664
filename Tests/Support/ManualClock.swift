package import Base
internal import FMP4
internal import Synchronization

/// A clock that tests move.
package final class ManualClock: Sendable {
  package init() {}

  private let now = Mutex<MonotonicTime>(1_000_000_000_000)

  package func advance(seconds: Double) { now.withLock { $0 += Int64(seconds * 1e9) } }

  package var clock: SteadyClock {
    SteadyClock(ClockReading(wall: WallTime.at(1_795_245_850_123_000_000), monotonic: 0)) { self.now.withLock { $0 } }
  }
}
