internal import NIOCore

/// Detects clients that poll. A player, or a proxy with many players on one connection, requests media between playlists. A
/// connection that requests one unchanged playlist a hundred times per second, and nothing else, gains nothing. The limit is
/// per connection, not per address: a CDN is one address.
///
/// A token bucket of repeats, refilled by the ticks of the loop. Costs a few reference comparisons per request. Confined to
/// the loop.
struct PollLimit {
  private let loop: LoopContext
  private let capacity: Int
  private let refill: Int
  /// The last playlists that were sent, newest first: a client may also poll several unchanged playlists in turn.
  private var latest: [PreencodedResponse] = []
  private var repeats: Int
  private var tick: Int

  /// `repeatsPerSecond` is also the size of a burst; 0 for no limit.
  init(repeatsPerSecond: Int, loop: LoopContext) {
    self.loop = loop
    // Integer arithmetic: each tick adds `repeatsPerSecond`, and one repeat costs the number of ticks in a second.
    let ticks = max(1, loop.ticks(.seconds(1)) - 1)
    capacity = repeatsPerSecond * ticks
    refill = repeatsPerSecond
    unit = ticks
    repeats = capacity
    tick = loop.now
  }

  /// The number of playlists of a stream with three renditions, each whole and as a delta update.
  private static let memory = 8

  /// The cost of one repeat.
  private let unit: Int

  /// Whether this response is one repeat too many. `playlist` is nil for one that is no playlist.
  mutating func isExceeded(by playlist: PreencodedResponse?) -> Bool {
    guard capacity > 0 else { return false }
    guard let playlist else {
      // A client that requests media does not poll.
      repeats = capacity
      return false
    }
    guard latest.contains(where: { $0 === playlist }) else {
      if latest.count >= Self.memory { latest.removeLast() }
      latest.insert(playlist, at: 0)
      return false
    }
    if tick != loop.now {
      repeats = min(capacity, repeats &+ (loop.now &- tick) &* refill)
      tick = loop.now
    }
    guard repeats >= unit else { return true }
    repeats -= unit
    return false
  }
}
