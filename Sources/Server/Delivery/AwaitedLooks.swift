internal import HTTP
internal import NIOCore
internal import Publishing
internal import Synchronization

/// Requests that wait for the state of a stream (`AwaitedState`). All that wait for the same are looked for with one look, and
/// answered with one response and one call per loop: ten thousand pages cost as many looks as one.
final class AwaitedLooks: Sendable {
  /// What is waited for.
  struct Awaited: Sendable, Hashable {
    let name: StreamName
    let goal: AwaitedState.Goal
  }

  private struct LoopGroup {
    let eventLoop: any EventLoop
    var promises: [EventLoopPromise<HTTPResponse>] = []

    func answer(_ response: HTTPResponse) {
      let promises = promises
      eventLoop.execute { for promise in promises { promise.succeed(response) } }
    }
  }

  /// Those that came between two looks, by their loops.
  private typealias Batch = [ObjectIdentifier: LoopGroup]

  /// Looks until a request is given up.
  private static let most = Int(AwaitedState.longest.nanoseconds / AwaitedState.step.nanoseconds)

  /// Oldest batch first.
  private let waiting = Mutex<[Awaited: [Batch]]>([:])

  /// Returns the response once the state is there, or after `AwaitedState.longest`. Both closures are those of the first request:
  /// they have to be the same for all that wait for the same.
  func wait(
    for awaited: Awaited, on eventLoop: any EventLoop, isThere: @escaping @Sendable () -> Bool,
    response: @escaping @Sendable () -> HTTPResponse
  ) -> EventLoopFuture<HTTPResponse> {
    let promise = eventLoop.makePromise(of: HTTPResponse.self)
    let isFirst = waiting.withLock { waiting in
      let newest = waiting[awaited].map { $0.count - 1 }
      if newest == nil { waiting[awaited] = [[:]] }
      waiting[awaited]?[newest ?? 0][ObjectIdentifier(eventLoop), default: LoopGroup(eventLoop: eventLoop)]
        .promises.append(promise)
      return newest == nil
    }
    if isFirst { lookLater(for: awaited, on: eventLoop, isThere, response) }
    return promise.futureResult
  }

  private func lookLater(
    for awaited: Awaited, on eventLoop: any EventLoop, _ isThere: @escaping @Sendable () -> Bool,
    _ response: @escaping @Sendable () -> HTTPResponse
  ) {
    eventLoop.scheduleTask(in: AwaitedState.step) {
      let goesOn = self.look(for: awaited, isThere(), response)
      if goesOn { self.lookLater(for: awaited, on: eventLoop, isThere, response) }
    }.futureResult.whenFailure { error in
      // The loop ends, and nobody looks any more. It executes nothing new, so promises fail here.
      let all = self.waiting.withLock { $0.removeValue(forKey: awaited) } ?? []
      for group in all.joined() { for promise in group.value.promises { promise.fail(error) } }
    }
  }

  /// Returns whether some still wait.
  private func look(for awaited: Awaited, _ isThere: Bool, _ response: () -> HTTPResponse) -> Bool {
    let (over, goesOn) = waiting.withLock { waiting -> ([Batch], Bool) in
      guard !isThere, var batches = waiting.removeValue(forKey: awaited) else {
        return (waiting.removeValue(forKey: awaited) ?? [], false)
      }
      batches.append([:])
      let late = batches.count > Self.most ? [batches.removeFirst()] : []
      let goesOn = batches.contains { !$0.isEmpty }
      if goesOn { waiting[awaited] = batches }
      return (late, goesOn)
    }
    guard over.contains(where: { !$0.isEmpty }) else { return goesOn }
    let response = response()
    for group in over.joined() { group.value.answer(response) }
    return goesOn
  }
}
