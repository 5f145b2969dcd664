internal import FMP4
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

  /// What a patch from an older manifest is.
  enum Patch: Sendable {
    case found(PreencodedResponse)
    /// There was such a manifest, or may have been: too long ago.
    case forgotten
    /// No manifest was published at that time.
    case unknown
  }

  /// Oldest first.
  private var editions: [Edition] = []
  private var newest: PreencodedResponse?
  /// Patches to the newest manifest, by the time of publication that they start from.
  private var patches: [Int64: PreencodedResponse] = [:]
  private var version: Int?

  /// The newest manifest; one that has changed was published now, in nanoseconds since 1970.
  mutating func manifest(of epoch: EpochView, wallNanoseconds now: Int64) -> PreencodedResponse {
    if version == epoch.version, let newest { return newest }
    version = epoch.version
    let manifest = DASHManifest(epoch: epoch, source: .server)
    if let last = editions.last, let newest, manifest.root(publishTime: last.publishTime) == last.root { return newest }
    let publishTime = max(now / 1_000_000, (editions.last?.publishTime ?? 0) &+ 1)
    let edition = Edition(publishTime: publishTime, root: manifest.root(publishTime: publishTime))
    if editions.count >= Self.limit { editions.removeFirst() }
    editions.append(edition)
    patches = [:]
    let response = PreencodedResponse(type: .dash, cache: epoch.cachePolicy, body: edition.root.document)
    newest = response
    return response
  }

  /// What leads from the manifest published at `base` (milliseconds since 1970) to the newest.
  mutating func patch(from base: Int64, of epoch: EpochView, wallNanoseconds now: Int64) -> Patch {
    _ = manifest(of: epoch, wallNanoseconds: now)
    if let patch = patches[base] { return .found(patch) }
    guard let latest = editions.last, let old = editions.first(where: { $0.publishTime == base }) else {
      let oldest = editions.first?.publishTime ?? .max
      return base < oldest ? .forgotten : .unknown
    }
    var operations = XMLDifference(from: old.root, to: latest.root).operations
    // A patch has at least one operation, also when there is nothing new.
    let published = DASHManifest.moment(milliseconds: latest.publishTime)
    if operations.isEmpty { operations = [XMLElement("replace", ["sel": "/MPD/@publishTime"], text: published)] }
    let patch = XMLElement(
      "Patch",
      [
        "xmlns": "urn:mpeg:dash:schema:mpd-patch:2020", "mpdId": epoch.id,
        "originalPublishTime": DASHManifest.moment(milliseconds: old.publishTime), "publishTime": published,
      ], children: operations)
    let response = PreencodedResponse(type: .dashPatch, cache: epoch.cachePolicy, body: patch.document)
    patches[base] = response
    return .found(response)
  }
}
