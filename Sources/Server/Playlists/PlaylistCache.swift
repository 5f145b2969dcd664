internal import Base
internal import HTTP
internal import NIOCore
internal import NIOPosix
package import Streams
internal import Synchronization

/// The newest playlists and manifests of one epoch. Each version is rendered once, by the first request; concurrent requests
/// wait for the result. The stream is not blocked.
package final class PlaylistCache: Sendable {
  /// What is rendered.
  package enum Kind: Sendable, Hashable {
    case multivariant
    /// The multivariant playlist of a video by its number.
    case videoMultivariant(Int)
    /// The multivariant playlist, of a video or of all, whose media playlists begin with parts.
    case beginning(HLSStart, video: Int?)
    /// The multivariant playlist of the whole programme.
    case programme
    case media(Rendition, Form, isDelta: Bool, from: HLSStart = .wholeSegment)
    /// The I-frame playlist of a video rendition.
    case keyFrames(Rendition)
    /// The DASH manifest.
    case manifest
  }

  /// The cache lifetime of a playlist's response.
  package enum Form: Sendable, Hashable {
    /// The current playlist: the next request may get another.
    case current
    /// The result of a blocking reload: its address names a position, so the response stays valid.
    case awaited
    /// A response for one client, earlier than the address promises. Caches must not share it.
    case personal
  }

  private struct Position: Hashable {
    let kind: Kind
    let version: Int
  }

  /// Windows with more segments than this are not rendered on event loops.
  private static let longWindow = 1000

  private let newest = Mutex<[Kind: (version: Int, response: PreencodedResponse)]>([:])
  private let flight = SingleFlight<Position, PreencodedResponse>(
    limit: .max, on: NIOSingletons.posixBlockingThreadPool)
  /// Earlier manifests, for patches.
  let dash = Mutex(DASHHistory())

  /// The response for this version of the epoch, or a later one. Nil when none was rendered.
  func known(_ kind: Kind, of epoch: EpochView) -> PreencodedResponse? {
    let version = epoch.version(for: kind)
    return newest.withLock { newest in newest[kind].flatMap { $0.version >= version ? $0.response : nil } }
  }

  func response(
    _ kind: Kind, of epoch: EpochView, on eventLoop: any EventLoop, render: @escaping @Sendable () -> PreencodedResponse
  ) -> Eventual<PreencodedResponse> {
    let position = Position(kind: kind, version: epoch.version(for: kind))
    let make: @Sendable () -> PreencodedResponse = { [self] in
      // Another thread may have rendered it since the first look-up.
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
  /// Rises with each change that such a rendering can show.
  fileprivate func version(for kind: PlaylistCache.Kind) -> Int {
    switch kind {
    case .media(let rendition, _, _, _), .keyFrames(let rendition): window(of: rendition)?.version ?? 0
    case .programme: window.version
    case .multivariant, .videoMultivariant, .beginning, .manifest: version
    }
  }
}
