package import Base
package import FMP4
package import HTTP
package import NIOCore
package import Streams
internal import Synchronization

extension LiveStream {
  /// A playlist or manifest of the view, or of a later state. Takes no lock of the stream.
  package func rendered(_ kind: PlaylistCache.Kind, of view: StreamView, on eventLoop: any EventLoop) -> HTTPAnswer {
    let cache = view.renderings.kept { PlaylistCache() }
    if let known = cache.known(kind, of: view.epoch) { return .now(HTTPResponse(known)) }
    return cache.response(kind, of: view.epoch, on: eventLoop) { self.render(kind, view.epoch, cache) }
      .answer { .now(HTTPResponse($0)) }
  }

  /// The patch from the manifest published at `base` to the current one.
  package func patch(from base: WallTime, to view: StreamView, on eventLoop: any EventLoop) -> HTTPAnswer {
    let now = clock.wallTime
    switch rendered(.manifest, of: view, on: eventLoop).kind {
    case .now: return .now(patch(from: base, to: view, at: now))
    case .later(let manifest): return .later(manifest.map { _ in self.patch(from: base, to: view, at: now) })
    }
  }

  private func patch(from base: WallTime, to view: StreamView, at now: WallTime) -> HTTPResponse {
    let cache = view.renderings.kept { PlaylistCache() }
    return HTTPResponse(cache.dash.withLock { $0.patch(from: base, of: view.epoch, at: now) })
  }

  private func render(
    _ kind: PlaylistCache.Kind, _ epoch: EpochView, _ cache: PlaylistCache
  ) -> PreencodedResponse {
    var policy = epoch.cachePolicy
    let body: ByteBuffer
    switch kind {
    case .multivariant:
      body = HLSMultivariantPlaylist(epoch: epoch, layout: epoch.layout, rewind: epoch.presentation.rewind).render()
    case .videoMultivariant(let number):
      body =
        HLSMultivariantPlaylist(epoch: epoch, layout: .separate, rewind: epoch.presentation.rewind, video: number)
        .render()
    case .beginning(let start, let video):
      var playlist = HLSMultivariantPlaylist(
        epoch: epoch, layout: video == nil ? epoch.layout : .separate, rewind: epoch.presentation.rewind, video: video)
      playlist.query = start.query
      body = playlist.render()
    case .programme:
      body =
        HLSMultivariantPlaylist(epoch: epoch, layout: epoch.layout, mediaPlaylist: MediaName.programme).render()
    case .media(let rendition, let form, let isDelta, let start):
      policy = epoch.cachePolicy(form, of: rendition)
      var playlist = mediaPlaylist(rendition, epoch, isDelta: isDelta)
      playlist.start = start
      body = playlist.render()
    case .keyFrames(let rendition):
      body = HLSIFramePlaylist(window: epoch.window(of: rendition) ?? epoch.window, rendition: rendition).render()
    case .manifest:
      let now = clock.wallTime
      return cache.dash.withLock { $0.manifest(of: epoch, at: now) }
    }
    renders.wrappingAdd(1, ordering: .relaxed)
    return PreencodedResponse(type: .hls, cache: policy, headers: CrossOrigin.anyOrigin, body: body)
  }

  private func mediaPlaylist(_ rendition: Rendition, _ epoch: EpochView, isDelta: Bool) -> HLSMediaPlaylist {
    let window = epoch.window(of: rendition) ?? epoch.window
    guard epoch.hasParts(rendition) else { return HLSMediaPlaylist(window: window, rendition: rendition) }
    return HLSMediaPlaylist(
      window: window, rendition: rendition,
      lowLatency: HLSMediaPlaylist.LowLatency(
        addressing: epoch.presentation.addressing,
        siblings: epoch.presented(with: rendition).filter { $0 != rendition }.map { sibling in
          HLSMediaPlaylist.Sibling(rendition: sibling, window: epoch.window(of: sibling) ?? epoch.window)
        }, isDelta: isDelta))
  }

  /// How long a client counts as a viewer after each request: three target durations.
  package var viewerLifetime: MediaTime {
    MediaTime(milliseconds: 3000 * Int64(targetDuration ?? 2))
  }
}

extension EpochView {
  /// The renditions that players of one know of, from the multivariant playlist.
  fileprivate func presented(with rendition: Rendition) -> [Rendition] {
    switch layout {
    case .interleaved: [.interleaved]
    // Players that began before the stream had several tracks of a kind keep the interleaved layout.
    case .separate where rendition == .interleaved && presentation.layout == .interleaved: [.interleaved]
    case .separate: trackRenditions + (playableRungs + playableAudio).map(\.rendition)
    }
  }

  /// Whether playlists of a rendition have parts. The multivariant playlist names no other ones, so those get ordinary playlists.
  /// A rung that no longer grows stays available to its viewers.
  package func hasParts(_ rendition: Rendition) -> Bool {
    rendition.isRung || presented(with: rendition).contains(rendition)
  }

  /// The cache policy of multivariant playlists and manifests.
  var cachePolicy: CachePolicy { window.isEnded ? .endedPlaylist : .livePlaylist }

  /// The cache policy of a media playlist. That of a rung ends after that of the source.
  func cachePolicy(_ form: PlaylistCache.Form, of rendition: Rendition) -> CachePolicy {
    let isEnded = (self.window(of: rendition) ?? window).isEnded
    switch form {
    case .awaited where !isEnded:
      return .awaitedPlaylist(seconds: HLSMediaPlaylist.skipTargets * (window.targetDuration ?? 1))
    case .current, .awaited: return isEnded ? .endedPlaylist : .livePlaylist
    case .personal: return .never
    }
  }
}

extension Eventual {
  /// Maps the value to a response, now or when it arrives.
  package func answer(_ answer: @escaping @Sendable (Value) -> HTTPAnswer) -> HTTPAnswer {
    switch self {
    case .now(let value): answer(value)
    case .later(let future): .later(future.flatMap { answer($0).response(on: future.eventLoop) })
    }
  }
}
