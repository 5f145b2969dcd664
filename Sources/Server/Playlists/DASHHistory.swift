internal import FMP4
internal import HTTP
internal import NIOCore

/// The newest manifests of one epoch: it gives each state of them a time of publication that never goes back
/// (ISO/IEC 23009-1 §5.4), and patches that lead from an older one to the newest (§5.15). A value; whoever has a clock
/// tells the time.
struct DASHHistory: Sendable {
  /// How many manifests can be patched; the oldest is forgotten.
  static let limit = 16

  private struct Edition {
    /// Milliseconds since 1970.
    let publishTime: Int64
    let root: XMLElement
  }

  /// Oldest first.
  private var editions: [Edition] = []
  private var newest: PreencodedResponse?
  /// Patches to the newest manifest, by the time of publication that they start from.
  private var patches: [Int64: PreencodedResponse] = [:]
  private var version: Int?

  /// The newest manifest; one that has changed was published now, in nanoseconds since 1970.
  mutating func manifest(of epoch: EpochView, wallNanoseconds now: Int64) -> PreencodedResponse {
    // Somebody may look at what was there before.
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
      type: .dash, cache: epoch.cachePolicy, headers: CrossOrigin.everybody, body: edition.root.document)
    newest = response
    return response
  }

  /// What leads from the manifest published at `base` (milliseconds since 1970) to the newest. Where that cannot be told
  /// by a patch, or nobody knows that manifest any more, the patch takes the PatchLocation away, and the player takes
  /// the whole manifest at its next update: dash.js gives up for good when it is answered 404 or 410, and Shaka Player
  /// cannot read a manifest where it expects a patch.
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
      // An edition of its own, between the two.
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
      type: .dashPatch, cache: epoch.cachePolicy, headers: CrossOrigin.everybody, body: element.document)
    // Anybody can ask from any time: only those that were given out are remembered.
    if old != nil { patches[base] = response }
    return response
  }

  private func moment(_ milliseconds: Int64) -> String { DASHManifest.moment(milliseconds: milliseconds) }
}
