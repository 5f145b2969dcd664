internal import Base
internal import FMP4
internal import NIOCore
internal import Streams

/// UTCTiming elements: clocks that clients synchronise with (ISO/IEC 23009-1 §5.8.4.11), best first.
extension DASHManifest {
  /// The clock that a client requests. The address is absolute when the server's public address is known, because ExoPlayer
  /// does not resolve relative ones. Otherwise it is relative to the server, so that a cache in front serves it too. For a
  /// folder it is the `Date` field of the manifest's response.
  var askedClock: XMLElement {
    source == .folder
      ? Self.clock("http-head", "manifest.mpd")
      : Self.clock("http-iso", (epoch.publicURL?.description ?? "") + PublicURL.timePath)
  }

  /// The clocks of a manifest. Players that try clocks in order request the time. ExoPlayer takes the last clock, so it reads
  /// the publish time from the manifest. This is late by the age of the manifest. It is thus added only when the public address
  /// is unknown, and only to the newest manifest of a live stream, which is seconds old.
  func clocks(publishTime: WallTime) -> [XMLElement] {
    guard source == .server, epoch.publicURL == nil else { return [askedClock] }
    return [askedClock, Self.clock(Self.direct, Self.moment(publishTime))]
  }

  private static func clock(_ scheme: String, _ value: String) -> XMLElement {
    XMLElement("UTCTiming", ["schemeIdUri": identifier(scheme), "value": value])
  }

  fileprivate static let direct = "direct"

  fileprivate static func identifier(_ scheme: String) -> String { "urn:mpeg:dash:utc:\(scheme):2014" }
}

extension XMLElement {
  /// The manifest with the direct clock of an older one. The publish time is no change of the presentation: players read it
  /// from whole manifests, and patches do not change it.
  func withDirectClock(of older: XMLElement) -> XMLElement {
    let isDirect = { (child: XMLElement) in child["schemeIdUri"] == DASHManifest.identifier(DASHManifest.direct) }
    guard let known = older.children.first(where: isDirect) else { return self }
    return XMLElement(
      name: name, attributes: attributes, text: text, children: children.map { isDirect($0) ? known : $0 })
  }
}
