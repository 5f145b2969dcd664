internal import Basics
internal import HTTP
internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// The newest playlists and manifests of one epoch. Each state of one is rendered once, by the first request for it; the
/// others wait for that. The stream goes on meanwhile.
final class PlaylistCache: Sendable {
  /// What is rendered.
  enum Kind: Sendable, Hashable {
    case multivariant
    /// The multivariant playlist of the whole programme.
    case programme
    case media(Rendition, Form, isDelta: Bool)
    /// The I-frame playlist of a picture.
    case keyFrames(Rendition)
    /// The DASH manifest.
    case manifest
  }

  /// The same playlist may be kept for different times.
  enum Form: Sendable, Hashable {
    /// What there is now: the next request may have another answer.
    case current
    /// What a client waited for: the address names a position, and the answer stays good.
    case awaited
    /// What one client is given earlier than its address says to others: nobody else may have it.
    case personal
  }

  private struct Position: Hashable {
    let kind: Kind
    let version: Int
  }

  /// Windows with more segments are not rendered on event loops.
  private static let longWindow = 1000

  private let newest = Mutex<[Kind: (version: Int, response: PreencodedResponse)]>([:])
  private let flight = SingleFlight<Position, PreencodedResponse>(
    limit: .max, on: NIOSingletons.posixBlockingThreadPool)
  /// Manifests keep what they were, for patches.
  let dash = Mutex(DASHHistory())

  /// What has been rendered of that state of the epoch, or a later one.
  func known(_ kind: Kind, of epoch: EpochView) -> PreencodedResponse? {
    let version = epoch.version(for: kind)
    return newest.withLock { newest in newest[kind].flatMap { $0.version >= version ? $0.response : nil } }
  }

  func response(
    _ kind: Kind, of epoch: EpochView, on eventLoop: any EventLoop, render: @escaping @Sendable () -> PreencodedResponse
  ) -> Eventual<PreencodedResponse> {
    let position = Position(kind: kind, version: epoch.version(for: kind))
    let make: @Sendable () -> PreencodedResponse = { [self] in
      // Another may have made it between the look and the flight.
      if let known = known(kind, of: epoch) { return known }
      let response = render()
      newest.withLock { newest in
        if newest[kind].map({ $0.version < position.version }) ?? true { newest[kind] = (position.version, response) }
      }
      return response
    }
    if epoch.window.segments.count > Self.longWindow, let future = flight.value(of: position, on: eventLoop, make: make)
    {
      return .later(future)
    }
    return flight.valueHere(of: position, on: eventLoop, make: make)
  }
}

extension EpochView {
  /// Rises with each change that a rendering of this kind can show.
  fileprivate func version(for kind: PlaylistCache.Kind) -> Int {
    switch kind {
    case .media(let rendition, _, _), .keyFrames(let rendition): window(of: rendition)?.version ?? 0
    case .programme: window.version
    case .multivariant, .manifest: version
    }
  }
}
