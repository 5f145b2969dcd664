import Ingest
import Synchronization

@testable import Server

/// A clock that tests move.
final class ManualClock: Sendable {
  private let now = Mutex<Int64>(1_000_000_000_000)

  func advance(seconds: Double) { now.withLock { $0 += Int64(seconds * 1e9) } }

  var clock: SteadyClock { SteadyClock(wallOffset: EpochDriver.wall) { self.now.withLock { $0 } } }
}
