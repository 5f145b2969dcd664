internal import FMP4
internal import NIOCore
internal import Publishing
internal import Synchronization

/// Takes a stream's events from its publisher's thread to the event loop of its viewers. Bounded: what exceeds it is left out,
/// and told.
final class SampleInbox: SampleFollower {
  private struct State {
    var events: [MediaEvent] = []
    var bytes = 0
    var hasLost = false
    var wake: (@Sendable () -> Void)?
  }

  private let state: Mutex<State>

  /// - Parameter wake: called on any thread when there is something to take.
  init(wake: @escaping @Sendable () -> Void) {
    state = Mutex(State(wake: wake))
  }

  func receive(_ event: MediaEvent) {
    let wake = state.withLock { state -> (@Sendable () -> Void)? in
      if case .sample(let sample) = event {
        // What comes behind a hole waits for `take`, so that it is told where the hole is.
        guard !state.hasLost, state.bytes + sample.payload.readableBytes <= WebRTCLimits.waitingBytes else {
          state.hasLost = true
          return nil
        }
        state.bytes += sample.payload.readableBytes
      }
      state.events.append(event)
      return state.events.count == 1 ? state.wake : nil
    }
    wake?()
  }

  /// What came since the last call, and whether some of it was left out.
  func take() -> (events: [MediaEvent], hasLost: Bool) {
    state.withLock { state in
      defer { (state.events, state.bytes, state.hasLost) = ([], 0, false) }
      return (state.events, state.hasLost)
    }
  }

  /// Nothing is wanted any more.
  func close() {
    state.withLock { $0 = State() }
  }
}
