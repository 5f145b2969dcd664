internal import HTTP
internal import NIOCore
internal import NIOHTTP1
internal import Synchronization

/// Knows the one kind of player that means a segment's first part where it names the segment alone: Apple's own (seen with
/// Safari in June 2026; OvenMediaEngine, pull request 2207). It reloads part by part; at the end of a segment, of whose
/// successor its playlist has no part yet, it asks for the successor without `_HLS_part`, and would stall if it were told
/// of it only when all of it is there.
///
/// So it is told by what its connection asked for last, once a segment. It speaks HTTP/2, where all requests of a player are
/// on one connection. Its answer is its own: a cache, where one address means one thing, must not give it to others.
final class PartReloads: Sendable {
  /// A playlist on a connection.
  private struct Key: Hashable {
    let connection: SocketAddress
    let playlist: String
  }

  /// The segment of the last part that was asked for.
  private let last = Mutex<[Key: Int]>([:])

  /// Connections come and go: beyond this many entries all are forgotten, and a player waits once.
  static let limit = 10_000

  /// A part of this segment is asked for. `playlist` is the address without its query.
  func note(_ request: HTTPRequest, playlist: String, segment: Int) {
    guard let key = key(request, playlist) else { return }
    last.withLock { last in
      if last.count >= Self.limit, last[key] == nil { last = [:] }
      last[key] = segment
    }
  }

  /// Whether this request for a segment alone, right after one for a part of the segment before it, means its first part.
  func meansFirstPart(_ request: HTTPRequest, playlist: String, segment: Int) -> Bool {
    guard let key = key(request, playlist) else { return false }
    return last.withLock { last in
      // Whatever it is, what comes next is no part's successor any more.
      last.removeValue(forKey: key).map { $0 &+ 1 == segment } ?? false
    }
  }

  private func key(_ request: HTTPRequest, _ playlist: String) -> Key? {
    guard request.version.major >= 2, let address = request.source.peer else { return nil }
    return Key(connection: address, playlist: playlist)
  }
}
