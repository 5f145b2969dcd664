internal import HTTP

/// Rendered playlists and manifests of one epoch, each valid for one version of the window.
struct RenderCache: Sendable {
  /// What is rendered.
  enum Kind: Sendable, Hashable {
    case multivariant
    /// The multivariant playlist of the whole programme.
    case programme
    case media(Rendition, Form, isDelta: Bool)
    /// The I-frame playlist of a picture.
    case keyFrames(Rendition)
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

  /// How many playlists were rendered, over the stream's life.
  private(set) var renders = 0
  /// Manifests keep what they were, for patches.
  var dash = DASHHistory()
  private var entries: [Kind: (version: Int, response: PreencodedResponse)] = [:]

  init() {}

  /// That of the epoch after `last`.
  init(after last: RenderCache) {
    renders = last.renders
  }

  mutating func response(_ kind: Kind, version: Int, render: () -> PreencodedResponse) -> PreencodedResponse {
    if let entry = entries[kind], entry.version == version { return entry.response }
    renders += 1
    let response = render()
    entries[kind] = (version, response)
    return response
  }
}
