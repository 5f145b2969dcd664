internal import Basics
internal import NIOCore

/// The clocks that a client compares its own with (ISO/IEC 23009-1 §5.8.4.11), the best first.
extension DASHManifest {
  /// The clock that is asked for the time. Where the server's public address is known, it is absolute: ExoPlayer resolves
  /// it against nothing. Else it is relative to the server, so that a cache in front serves it too. Of a folder it is the
  /// `Date` that the manifest comes with, whoever serves it.
  var askedClock: XMLElement {
    source == .folder
      ? Self.clock("http-head", "manifest.mpd")
      : Self.clock("http-iso", (epoch.publicURL?.description ?? "") + PublicURL.timePath)
  }

  /// Players that try clocks in their order ask for the time; ExoPlayer, which takes the last one, reads it from the
  /// manifest: when this was published. That is late by the age of the manifest, so it stands only where there is no
  /// address that every player can ask, and in nothing but the newest manifest of a live stream, which is seconds old.
  func clocks(publishTime: Int64) -> [XMLElement] {
    guard source == .server, epoch.publicURL == nil else { return [askedClock] }
    return [askedClock, Self.clock(Self.direct, Self.moment(milliseconds: publishTime))]
  }

  private static func clock(_ scheme: String, _ value: String) -> XMLElement {
    XMLElement("UTCTiming", ["schemeIdUri": identifier(scheme), "value": value])
  }

  fileprivate static let direct = "direct"

  fileprivate static func identifier(_ scheme: String) -> String { "urn:mpeg:dash:utc:\(scheme):2014" }
}

extension XMLElement {
  /// A manifest that tells the time as an older one did. When a manifest was made is no change of the presentation:
  /// players read it when they take a manifest whole, and patches leave it alone.
  func withDirectClock(of older: XMLElement) -> XMLElement {
    let isDirect = { (child: XMLElement) in child["schemeIdUri"] == DASHManifest.identifier(DASHManifest.direct) }
    guard let known = older.children.first(where: isDirect) else { return self }
    return XMLElement(
      name: name, attributes: attributes, text: text, children: children.map { isDirect($0) ? known : $0 })
  }
}
