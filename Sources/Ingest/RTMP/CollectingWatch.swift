internal import NIOCore
internal import Synchronization

/// Looks for connections of one event loop that have fallen silent, so that what the system has collected of them is read. That
/// may be a command behind the last frame, or audio in a pause of the video. They share a timer: one for each would cost as
/// much as the reads that are saved. Used on the event loop.
final class CollectingWatch {
  private let loop: any EventLoop
  private var connections: [ObjectIdentifier: RTMPConnection] = [:]
  private var timer: RepeatedTask?

  init(on loop: any EventLoop) { self.loop = loop }

  func add(_ connection: RTMPConnection) {
    connections[ObjectIdentifier(connection)] = connection
    guard timer == nil else { return }
    let bound = NIOLoopBound(self, eventLoop: loop)
    let interval = TimeAmount.nanoseconds(RTMPLimits.collectingCheck)
    timer = loop.scheduleRepeatedTask(initialDelay: interval, delay: interval) { _ in bound.value.look() }
  }

  func remove(_ connection: RTMPConnection) {
    connections[ObjectIdentifier(connection)] = nil
    guard connections.isEmpty else { return }
    timer?.cancel()
    timer = nil
  }

  private func look() {
    for connection in connections.values { connection.checkCollected() }
  }
}

/// The watches of a listener's event loops.
final class CollectingWatches: Sendable {
  private let made = Mutex<[ObjectIdentifier: NIOLoopBound<CollectingWatch>]>([:])

  /// That of a loop. Called on it.
  func watch(on loop: any EventLoop) -> CollectingWatch {
    let bound = made.withLock { made in
      if let known = made[ObjectIdentifier(loop)] { return known }
      let new = NIOLoopBound(CollectingWatch(on: loop), eventLoop: loop)
      made[ObjectIdentifier(loop)] = new
      return new
    }
    return bound.value
  }
}
