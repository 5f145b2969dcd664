internal import HTTP
internal import NIOCore
internal import NIOHTTP1
internal import Publishing
internal import Streams

/// `/live/{stream}/status.json` with the field `Weir-Until`: the state of a stream for a page that waits for it. The request is held
/// until there is something to play, so that the page need not ask often. Where no stream has that name the answer is 204, in place
/// of 404, which browsers write to their console each time. A field, since the address stands for the same state.
struct AwaitedState: Sendable {
  /// What is waited for: the value of the field. Another value is answered as `now`.
  enum Goal: String, Sendable {
    /// Nothing: the state as it is.
    case now
    /// The tracks of a publication are known: `stream.mp4` begins.
    case starting
    /// Playlists begin.
    case live
  }

  /// The longest that a request is held.
  static let longest = TimeAmount.seconds(1)
  /// Between two looks of all requests that are held for the same.
  static let step = TimeAmount.milliseconds(50)

  static let nothing = HTTPResponse(
    status: .noContent,
    headers: [HeaderField("Cache-Control", CachePolicy.missing.value), HeaderField("Vary", field)])

  private static let field = "Weir-Until"

  let streams: StreamRegistry
  let looks: AwaitedLooks
  let status: @Sendable (LiveStream) -> HTTPResponse

  /// Whether a request wants 204 where there is no such stream. Also asked of playlists.
  static func isWanted(_ request: HTTPRequest) -> Bool { request.header(field) != nil }

  func answer(to request: HTTPRequest, for name: StreamName, on eventLoop: any EventLoop) -> HTTPAnswer {
    let goal = request.header(Self.field).flatMap(Goal.init) ?? .now
    guard !isThere(name, goal) else { return .now(response(for: name)) }
    return .later(
      looks.wait(for: AwaitedLooks.Awaited(name: name, goal: goal), on: eventLoop) {
        isThere(name, goal)
      } response: {
        response(for: name)
      })
  }

  private func isThere(_ name: StreamName, _ goal: Goal) -> Bool {
    guard goal != .now else { return true }
    guard let stream = streams.stream(name) else { return false }
    switch stream.phase {
    case .live, .reconnecting, .offAir: return true
    case .starting: return goal == .starting && !stream.status.tracks.isEmpty
    case .ended: return false
    }
  }

  private func response(for name: StreamName) -> HTTPResponse { streams.stream(name).map(status) ?? Self.nothing }
}
