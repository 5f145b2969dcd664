internal import FMP4
internal import HTTP
internal import Ingest
internal import Synchronization

extension LiveStream {
  /// The multivariant playlist of the current epoch.
  func multivariantPlaylist() -> PreencodedResponse? {
    rendered(.multivariant, epoch: nil) { epoch in
      PreencodedResponse(
        type: .hls, cache: epoch.cachePolicy, headers: CrossOrigin.everybody,
        body: HLSMultivariantPlaylist(epoch: epoch, layout: settings.layout, rewind: settings.rewind).render())
    }
  }

  /// The same for the whole programme, as far as rewinding reaches.
  func programmePlaylist() -> PreencodedResponse? {
    rendered(.programme, epoch: nil) { epoch in
      let playlist = HLSMultivariantPlaylist(
        epoch: epoch, layout: settings.layout, mediaPlaylist: MediaName.programme)
      return PreencodedResponse(
        type: .hls, cache: epoch.cachePolicy, headers: CrossOrigin.everybody, body: playlist.render())
    }
  }

  /// A media playlist of an epoch as the directives want it; nil when it is no longer available.
  func mediaPlaylist(
    _ rendition: Rendition, epoch id: String, _ directives: HLSDirectives, _ form: RenderCache.Form
  ) -> PreencodedResponse? {
    rendered(.media(rendition, form, isDelta: directives.skips), epoch: id) { epoch in
      PreencodedResponse(
        type: .hls, cache: epoch.cachePolicy(form), headers: CrossOrigin.everybody,
        body: mediaPlaylist(rendition, epoch, isDelta: directives.skips).render())
    }
  }

  /// The I-frame playlist of a picture; nil when it is no longer available.
  func keyFramePlaylist(_ rendition: Rendition, epoch id: String) -> PreencodedResponse? {
    rendered(.keyFrames(rendition), epoch: id) { epoch in
      PreencodedResponse(
        type: .hls, cache: epoch.cachePolicy, headers: CrossOrigin.everybody,
        body: HLSIFramePlaylist(window: epoch.window(of: rendition) ?? epoch.window).render())
    }
  }

  private func mediaPlaylist(_ rendition: Rendition, _ epoch: EpochView, isDelta: Bool) -> HLSMediaPlaylist {
    let presented: [Rendition]
    switch settings.layout {
    case .interleaved: presented = [.interleaved]
    case .separate:
      let kinds = epoch.window.currentInit?.tracks.map(\.kind) ?? []
      presented =
        [Rendition.video, .audio].filter { rendition in rendition.kind.map(kinds.contains) ?? false }
        + (epoch.playableRungs + epoch.playableSounds).map(\.rendition)
    }
    let window = epoch.window(of: rendition) ?? epoch.window
    // Other renditions can be had, but no multivariant playlist names them: they are ordinary. A rung that has fallen
    // silent goes on for those who play it.
    guard presented.contains(rendition) || rendition.isRung else {
      return HLSMediaPlaylist(window: window, rendition: rendition)
    }
    return HLSMediaPlaylist(
      window: window, rendition: rendition,
      lowLatency: HLSMediaPlaylist.LowLatency(
        addressing: settings.partAddressing,
        siblings: presented.filter { $0 != rendition }.map { sibling in
          HLSMediaPlaylist.Sibling(rendition: sibling, window: epoch.window(of: sibling) ?? epoch.window)
        }, isDelta: isDelta))
  }

  /// The DASH manifest of the current epoch.
  func dashManifest() -> PreencodedResponse {
    withManifests { history, epoch, now in history.manifest(of: epoch, wallNanoseconds: now) }
  }

  /// What leads from the manifest that was published at `base`, in milliseconds since 1970, to the current one.
  func dashPatch(from base: Int64) -> PreencodedResponse {
    withManifests { history, epoch, now in history.patch(from: base, of: epoch, wallNanoseconds: now) }
  }

  /// A rendered playlist: made once for each change of the window and shared by everybody who asks. `render` is called with
  /// the stream's lock held; nil when the epoch is gone.
  private func rendered(
    _ kind: RenderCache.Kind, epoch id: String?, render: (EpochView) -> PreencodedResponse
  ) -> PreencodedResponse? {
    state.withLock { state in
      if let id, state.epoch.id != id {
        guard let previous = state.previous, previous.epoch.id == id else { return nil }
        return render(previous.epoch.viewWithRungs)
      }
      state.epoch.isDated = true
      let playlists = state.playlists
      return playlists.cache.withLock { cache in
        cache.response(kind, version: state.epoch.version(for: kind)) { render(state.epoch.viewWithRungs) }
      }
    }
  }

  /// The manifests of the current epoch, with its view and the wall clock in nanoseconds since 1970. `body` is called
  /// with the stream's lock held.
  private func withManifests(
    _ body: (_ history: inout DASHHistory, _ epoch: EpochView, _ now: Int64) -> PreencodedResponse
  ) -> PreencodedResponse {
    state.withLock { state in
      state.epoch.isDated = true
      let (view, now) = (state.epoch.viewWithRungs, clock.wallNanoseconds)
      return state.playlists.cache.withLock { body(&$0.dash, view, now) }
    }
  }

  /// How long a client counts as a viewer after each request: three target durations.
  var viewerLifetime: MediaTime {
    MediaTime(milliseconds: 3000 * Int64(targetDuration ?? 2))
  }
}

extension EpochView {
  /// Of its playlists and manifests.
  var cachePolicy: CachePolicy { window.isEnded ? .endedPlaylist : .livePlaylist }

  /// Of a media playlist.
  func cachePolicy(_ form: RenderCache.Form) -> CachePolicy {
    switch form {
    case .awaited where !window.isEnded:
      .awaitedPlaylist(seconds: HLSMediaPlaylist.skipTargets * (window.targetDuration ?? 1))
    case .current, .awaited: cachePolicy
    case .personal: .never
    }
  }
}

extension Epoch {
  /// Rises with each change that a rendering of this kind can show.
  func version(for kind: RenderCache.Kind) -> Int {
    switch kind {
    case .media(let rendition, _, _), .keyFrames(let rendition): window(of: rendition)?.version ?? 0
    case .programme: window.version
    case .multivariant: version
    }
  }
}

extension LiveStream.State {
  /// Those of the current epoch.
  fileprivate var playlists: EpochPlaylists {
    mutating get {
      if let playlists = renderings as? EpochPlaylists { return playlists }
      let playlists = EpochPlaylists(RenderCache())
      renderings = playlists
      return playlists
    }
  }
}

/// The playlists and manifests of one epoch, which its stream keeps.
private final class EpochPlaylists: EpochRenderings {
  let cache: Mutex<RenderCache>

  init(_ cache: RenderCache) {
    self.cache = Mutex(cache)
  }

  var renders: Int { cache.withLock { $0.renders } }

  func next() -> any EpochRenderings { EpochPlaylists(RenderCache(after: cache.withLock { $0 })) }
}
