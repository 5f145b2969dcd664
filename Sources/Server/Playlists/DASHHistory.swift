internal import FMP4
internal import HTTP
internal import NIOCore
internal import Streams

/// The newest manifests of one epoch. Gives each version a publish time that never decreases (ISO/IEC 23009-1 §5.4), and
/// makes patches from an older version to the newest (§5.15). A value type; the caller passes the time.
struct DASHHistory: Sendable {
  /// How many manifests can be patched; the oldest is dropped.
  static let limit = 16
  /// Publish times are told in milliseconds; here in nanoseconds.
  private static let step: Int64 = 1_000_000

  private struct Edition {
    /// Whole milliseconds.
    let publishTime: WallTime
    let root: XMLElement
  }

  /// Oldest first.
  private var editions: [Edition] = []
  private var newest: PreencodedResponse?
  /// Patches to the newest manifest, by the publish time of the manifest that they patch.
  private var patches: [WallTime: PreencodedResponse] = [:]
  private var version: Int?

  /// The newest manifest. A manifest that has changed gets `now` as publish time.
  mutating func manifest(of epoch: EpochView, at now: WallTime) -> PreencodedResponse {
    // A caller can hold an older view of the epoch.
    if let version, version >= epoch.version, let newest { return newest }
    version = epoch.version
    let manifest = DASHManifest(epoch: epoch, source: .server)
    if let last = editions.last, let newest, manifest.root(publishTime: last.publishTime) == last.root { return newest }
    let publishTime = max(WallTime(milliseconds: now.milliseconds), (editions.last?.publishTime ?? .zero) &+ Self.step)
    let edition = Edition(publishTime: publishTime, root: manifest.root(publishTime: publishTime))
    if editions.count >= Self.limit { editions.removeFirst() }
    editions.append(edition)
    patches = [:]
    let response = PreencodedResponse(
      type: .dash, cache: epoch.cachePolicy, headers: CrossOrigin.anyOrigin, body: edition.root.document)
    newest = response
    return response
  }

  /// The patch from the manifest published at `base` to the newest. When that manifest is unknown, or
  /// a patch cannot express the change, the patch removes the PatchLocation; the player then loads the whole manifest at its
  /// next update. An error would not do: dash.js stops for good at 404 or 410, and Shaka Player cannot read a manifest in
  /// place of a patch.
  mutating func patch(from base: WallTime, of epoch: EpochView, at now: WallTime) -> PreencodedResponse {
    let whole = manifest(of: epoch, at: now)
    guard let latest = editions.last else { return whole }
    if let patch = patches[base] { return patch }
    let old = editions.first { $0.publishTime == base }
    var root = latest.root
    let patch: ManifestPatch
    if let old, let exact = ManifestPatch(from: old.root, to: root) {
      patch = exact
    } else {
      // A separate version between the two.
      root = root.with("publishTime", moment(max(latest.publishTime &- Self.step, base &+ Self.step)))
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

  private func moment(_ time: WallTime) -> String { DASHManifest.moment(time) }
}
