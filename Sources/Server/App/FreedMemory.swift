internal import CMachine
internal import NIOCore
internal import NIOPosix

/// Gives memory back to the system after a crowd of viewers has left. The C library keeps what connections have freed on event
/// loops for the next ones: 42 of the 45 MB that 6,000 took. A look takes a few comparisons.
struct FreedMemory {
  /// The fewest connections that must have left, beside half of all: about 4 MB.
  static let fewest = 500
  /// Looks from then on, each half a second after the other. A crowd mostly leaves within seconds, and giving back 90 MB holds up
  /// whoever allocates from that heap for some 30 ms: so it is done once.
  static let looks = 20
  /// So many that have left suffice where more than half stay. Those lie between what is free: of 4,500 that had left 5,000
  /// others, 5 of 17 MiB came back over HTTP/1.1, and 57 of 112 over HTTP/2 with TLS.
  static let many = 2000
  /// The fewest looks from one time to the next: 40 s.
  static let pause = 80

  /// The most connections since memory was given back last.
  private var most = 0
  private var looksSince = 0
  /// Looks until it may be given back again.
  private var rest = 0

  /// A crowd has left, and its memory is still here.
  var isAwaited: Bool { looksSince > 0 }

  /// Whether memory is to be given back now.
  ///
  /// - Parameter connections: the most that were open at once since the last look.
  mutating func isDue(connections: Int) -> Bool {
    most = max(most, connections)
    rest = max(rest - 1, 0)
    let gone = most - connections
    guard gone >= Self.many || (gone >= Self.fewest && connections <= most / 2) else {
      looksSince = 0
      return false
    }
    looksSince += 1
    guard looksSince > Self.looks, rest == 0 else { return false }
    (most, looksSince, rest) = (connections, 0, Self.pause)
    return true
  }

  /// Returns at once: what else its caller tends does not wait for a thread of the pool.
  static func giveBack() {
    NIOSingletons.posixBlockingThreadPool.submit { state in
      if state == .active { _ = weir_give_back_memory() }
    }
  }
}
