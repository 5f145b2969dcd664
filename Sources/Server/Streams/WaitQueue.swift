internal import Basics
internal import NIOCore

/// Requests that wait for something of a stream. Those that wait for the same thing are judged once and woken
/// together, each loop's by one call: a thousand players that wait for the next part cost one look at the window.
struct WaitQueue {
  /// What can be waited for, in the current epoch.
  enum Condition: Sendable, Hashable {
    /// The multivariant playlist, and playlists of parts, can be given out.
    case beginning
    /// All playlists can be given out.
    case release
    /// A part of a rendition, or a later one, is there.
    case part(PartPosition, Rendition)
    /// All of a segment of a rendition is there, by its media sequence number, or a later one.
    case segment(Int, Rendition)
  }

  private struct Waiter {
    let promise: EventLoopPromise<StreamView>
    /// From when and until when, in monotonic nanoseconds.
    let start: Int64
    let deadline: Int64
  }

  private struct LoopGroup {
    let eventLoop: any EventLoop
    var waiters: [Waiter] = []

    /// Later on the waiters' loop: what follows may ask the stream, whose lock is held here.
    func wake(_ view: StreamView) {
      let promises = waiters.map(\.promise)
      eventLoop.execute { for promise in promises { promise.succeed(view) } }
    }
  }

  private var groups: [Condition: [ObjectIdentifier: LoopGroup]] = [:]
  /// Those who waited, and how long.
  private(set) var waits = Durations()

  var isEmpty: Bool { groups.isEmpty }

  /// Somebody waits for just this.
  func isAwaited(_ condition: Condition) -> Bool { groups[condition] != nil }

  /// The future gives the stream at the moment at which the condition is met, the stream ends, or the deadline is over; the
  /// latter to the interval of `giveUp`. All times are monotonic nanoseconds.
  mutating func add(
    _ condition: Condition, on eventLoop: any EventLoop, now: Int64, deadline: Int64
  ) -> EventLoopFuture<StreamView> {
    let promise = eventLoop.makePromise(of: StreamView.self)
    groups[condition, default: [:]][ObjectIdentifier(eventLoop), default: LoopGroup(eventLoop: eventLoop)]
      .waiters.append(Waiter(promise: promise, start: now, deadline: deadline))
    return promise.futureResult
  }

  /// `view` makes the view that they get, once.
  mutating func wake(now: Int64, with view: () -> StreamView, where isMet: (Condition) -> Bool = { _ in true }) {
    let met = groups.keys.filter(isMet)
    guard !met.isEmpty else { return }
    let view = view()
    for group in met.compactMap({ groups.removeValue(forKey: $0) }).joined() { wake(group.value, now, view) }
  }

  private mutating func wake(_ group: LoopGroup, _ now: Int64, _ view: StreamView) {
    for waiter in group.waiters { waits.add(nanoseconds: now &- waiter.start) }
    group.wake(view)
  }

  /// Wakes those whose deadline is over.
  mutating func giveUp(now: Int64, with view: () -> StreamView) {
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
