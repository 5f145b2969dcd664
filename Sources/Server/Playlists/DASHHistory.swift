internal import FMP4
internal import HTTP
internal import NIOCore

/// The newest manifests of one epoch. Gives each version a publish time that never decreases (ISO/IEC 23009-1 §5.4), and
/// makes patches from an older version to the newest (§5.15). A value type; the caller passes the time.
struct DASHHistory: Sendable {
  /// How many manifests can be patched; the oldest is dropped.
  static let limit = 16

  private struct Edition {
    /// Milliseconds since 1970.
    let publishTime: Int64
    let root: XMLElement
  }

  /// Oldest first.
  private var editions: [Edition] = []
  private var newest: PreencodedResponse?
  /// Patches to the newest manifest, by the publish time of the manifest that they patch.
  private var patches: [Int64: PreencodedResponse] = [:]
  private var version: Int?

  /// The newest manifest. A manifest that has changed gets `now` as publish time (nanoseconds since 1970).
  mutating func manifest(of epoch: EpochView, wallNanoseconds now: Int64) -> PreencodedResponse {
    // A caller can hold an older view of the epoch.
    if let version, version >= epoch.version, let newest { return newest }
    version = epoch.version
    let manifest = DASHManifest(epoch: epoch, source: .server)
    if let last = editions.last, let newest, manifest.root(publishTime: last.publishTime) == last.root { return newest }
    let publishTime = max(now / 1_000_000, (editions.last?.publishTime ?? 0) &+ 1)
    let edition = Edition(publishTime: publishTime, root: manifest.root(publishTime: publishTime))
    if editions.count >= Self.limit { editions.removeFirst() }
    editions.append(edition)
    patches = [:]
    let response = PreencodedResponse(
      type: .dash, cache: epoch.cachePolicy, headers: CrossOrigin.anyOrigin, body: edition.root.document)
    newest = response
    return response
  }

  /// The patch from the manifest published at `base` (milliseconds since 1970) to the newest. When that manifest is unknown, or
  /// a patch cannot express the change, the patch removes the PatchLocation; the player then loads the whole manifest at its
  /// next update. An error would not do: dash.js stops for good at 404 or 410, and Shaka Player cannot read a manifest in
  /// place of a patch.
  mutating func patch(from base: Int64, of epoch: EpochView, wallNanoseconds now: Int64) -> PreencodedResponse {
    let whole = manifest(of: epoch, wallNanoseconds: now)
    guard let latest = editions.last else { return whole }
    if let patch = patches[base] { return patch }
    let old = editions.first { $0.publishTime == base }
    var root = latest.root
    let patch: ManifestPatch
    if let old, let exact = ManifestPatch(from: old.root, to: root) {
      patch = exact
    } else {
      // A separate version between the two.
      root = root.with("publishTime", moment(max(latest.publishTime &- 1, base &+ 1)))
      patch = ManifestPatch(endingPatchesOf: old?.root, to: root)
    }
    let element = XMLElement(
      "Patch",
      [
        "xmlns": "urn:mpeg:dash:schema:mpd-patch:2020", "mpdId": epoch.id, "originalPublishTime": moment(base),
        "publishTime": root["publishTime"],
      ], children: patch.operations)
    let response = PreencodedResponse(
      type: .dashPatch, cache: epoch.cachePolicy, headers: CrossOrigin.anyOrigin, body: element.document)
    // A client can request any base time: only patches from published manifests are kept.
    if old != nil { patches[base] = response }
    return response
  }

  private func moment(_ milliseconds: Int64) -> String { DASHManifest.moment(milliseconds: milliseconds) }
}
