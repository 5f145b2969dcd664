internal import Base
internal import NIOCore

/// Requests that wait for an event of a stream. Each condition is tested once for all of its requests, and they are woken
/// with one call per loop. A thousand players that wait for the next part cost one test.
package struct WaitQueue {
  /// A condition. Those of a rendition name the epoch by its id. A rung's last frames may come after the next epoch has begun.
  package enum Condition: Sendable, Hashable {
    /// The multivariant playlist, and playlists with parts, are available.
    case beginning
    /// All playlists are available.
    case release
    /// A part of a rendition, or a later one, is available.
    case part(PartPosition, Rendition, epoch: String)
    /// A whole segment of a rendition, by media sequence number, or a later one, is available.
    case segment(Int, Rendition, epoch: String)
  }

  private struct Waiter {
    let promise: EventLoopPromise<StreamView>
    /// Start and deadline of the wait.
    let start: MonotonicTime
    let deadline: MonotonicTime
  }

  private struct LoopGroup {
    let eventLoop: any EventLoop
    var waiters: [Waiter] = []

    /// Completes the promises later, on their loop: their callbacks may call the stream, whose lock is held here.
    func wake(_ view: StreamView) {
      let promises = waiters.map(\.promise)
      eventLoop.execute { for promise in promises { promise.succeed(view) } }
    }
  }

  private var groups: [Condition: [ObjectIdentifier: LoopGroup]] = [:]
  /// The finished waits: count and total length.
  private(set) var waits = Durations()

  var isEmpty: Bool { groups.isEmpty }

  /// Whether a request waits for this condition.
  func isAwaited(_ condition: Condition) -> Bool { groups[condition] != nil }

  /// Returns the view when the condition holds, nothing more can come, or the deadline is over. The deadline has the resolution of
  /// the calls of `giveUp`.
  mutating func add(
    _ condition: Condition, on eventLoop: any EventLoop, now: MonotonicTime, deadline: MonotonicTime
  ) -> EventLoopFuture<StreamView> {
    let promise = eventLoop.makePromise(of: StreamView.self)
    groups[condition, default: [:]][ObjectIdentifier(eventLoop), default: LoopGroup(eventLoop: eventLoop)]
      .waiters.append(Waiter(promise: promise, start: now, deadline: deadline))
    return promise.futureResult
  }

  /// Wakes the requests whose condition holds. `view` is called once.
  mutating func wake(now: MonotonicTime, with view: () -> StreamView, where isMet: (Condition) -> Bool = { _ in true })
  {
    let met = groups.keys.filter(isMet)
    guard !met.isEmpty else { return }
    let view = view()
    for group in met.compactMap({ groups.removeValue(forKey: $0) }).joined() { wake(group.value, now, view) }
  }

  private mutating func wake(_ group: LoopGroup, _ now: MonotonicTime, _ view: StreamView) {
    for waiter in group.waiters { waits.add(nanoseconds: now &- waiter.start) }
    group.wake(view)
  }

  /// Wakes the requests whose deadline is over.
  mutating func giveUp(now: MonotonicTime, with view: () -> StreamView) {
    for (condition, loops) in groups {
      for (key, group) in loops where group.waiters.contains(where: { $0.deadline <= now }) {
        var late = group
        late.waiters = group.waiters.filter { $0.deadline <= now }
        wake(late, now, view())
        let left = group.waiters.filter { $0.deadline > now }
        groups[condition]?[key]?.waiters = left
        if left.isEmpty { groups[condition]?[key] = nil }
      }
      if groups[condition]?.isEmpty == true { groups[condition] = nil }
    }
  }
}
