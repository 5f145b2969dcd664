internal import Synchronization

/// Lets one task that tends things at intervals sleep for long while there is nothing to tend: whatever begins, wakes it.
package final class Waker: Sendable {
  private struct State {
    var count = 0
    var sleeper: Latch?
  }

  private let state = Mutex(State())

  package init() {}

  /// Something has begun. Returns at once; may be called under any named lock.
  package func wake() {
    let sleeper = state.withLock { state in
      state.count &+= 1
      return state.sleeper.take()
    }
    sleeper?.set()
  }

  /// Changes with each `wake`.
  package var count: Int { state.withLock { $0.count } }

  /// Returns after `time`, or at a `wake` that came after `count` was read, or when the task is cancelled.
  package func sleep(for time: Duration, since count: Int) async {
    let latch = Latch()
    let mustSleep = state.withLock { state in
      guard state.count == count else { return false }
      state.sleeper = latch
      return true
    }
    guard mustSleep else { return }
    await withTaskCancellationHandler {
      _ = await latch.wait(patience: time)
    } onCancel: {
      latch.set()
    }
  }
}
