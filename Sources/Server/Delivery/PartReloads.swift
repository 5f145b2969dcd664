internal import HTTP
internal import NIOCore
internal import NIOHTTP1
internal import Synchronization

/// Recognises the one kind of player that requests a segment's first part by naming the segment alone: Apple's own (seen with
/// Safari in June 2026; OvenMediaEngine, pull request 2207). It reloads part by part. At the end of a segment, while its playlist
/// has no part of the next one, it requests the next segment without `_HLS_part`. It would stall if the response came only with
/// the complete segment.
///
/// It is recognised by the last request of its connection, once in each segment. It uses HTTP/2, where all requests of a player
/// share a connection. The response is for that player alone: a cache serves one response per address and must not store it.
final class PartReloads: Sendable {
  /// A playlist on a connection.
  private struct Key: Hashable {
    let connection: SocketAddress
    let playlist: String
  }

  /// The segment of the last requested part.
  private let last = Mutex<[Key: Int]>([:])

  /// Beyond this many entries all are forgotten, and a player waits once.
  static let limit = 10_000

  /// A part of this segment is requested. `playlist` is the address without its query.
  func note(_ request: HTTPRequest, playlist: String, segment: Int) {
    if request.version.major >= 2, let address = request.source.peer {
      note(address, playlist: playlist, segment: segment)
    }
  }

  /// The same for a client at the other end of a connection of HTTP/2.
  func note(_ peer: SocketAddress, playlist: String, segment: Int) {
    let key = Key(connection: peer, playlist: playlist)
    last.withLock { last in
      if last.count >= Self.limit, last[key] == nil { last = [:] }
      last[key] = segment
    }
  }

  /// Whether this request for a segment, right after one for a part of the segment before it, means its first part.
  func meansFirstPart(_ request: HTTPRequest, playlist: String, segment: Int) -> Bool {
    guard let key = key(request, playlist) else { return false }
    return last.withLock { last in
      // The entry is used once: the following request is no successor of that part.
      last.removeValue(forKey: key).map { $0 &+ 1 == segment } ?? false
    }
  }

  private func key(_ request: HTTPRequest, _ playlist: String) -> Key? {
    guard request.version.major >= 2, let address = request.source.peer else { return nil }
    return Key(connection: address, playlist: playlist)
  }
}
