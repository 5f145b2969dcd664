internal import NIOCore

/// Tells a client that polls from one that plays. A player, or a proxy that carries any number of them on one
/// connection, asks for media between its playlists; who asks on one connection for one unchanged playlist a hundred
/// times a second, and for nothing else, learns nothing from it. Addresses do not matter: a CDN is one address.
///
/// A bucket of repeats that is filled with time, counted in the loop's ticks. Costs a comparison of a few references a
/// request. Confined to the loop.
struct PollLimit {
  private let loop: LoopContext
  private let capacity: Int
  private let refill: Int
  /// The playlists it was given last, the newest first: who goes round a few unchanged ones learns nothing either.
  private var latest: [PreencodedResponse] = []
  private var repeats: Int
  private var tick: Int

  /// `repeatsPerSecond` is also how many may come at once; 0 for no limit.
  init(repeatsPerSecond: Int, loop: LoopContext) {
    self.loop = loop
    // Whole tokens a tick, and tokens as large as there are ticks in a second.
    let ticks = max(1, loop.ticks(.seconds(1)) - 1)
    capacity = repeatsPerSecond * ticks
    refill = repeatsPerSecond
    unit = ticks
    repeats = capacity
    tick = loop.now
  }

  /// A stream has as many playlists with three renditions, each whole and skipped.
  private static let memory = 8

  /// What one repeat takes of the bucket.
  private let unit: Int

  /// Whether this answer repeats the one before once too often.
  mutating func isExceeded(by response: HTTPResponse) -> Bool {
    guard capacity > 0 else { return false }
    guard case .preencoded(let playlist) = response.body else {
      // Who takes media is no poller.
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
