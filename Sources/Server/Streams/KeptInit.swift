internal import Control
internal import FMP4
package import NIOCore

/// An init segment that playlists and manifests named before an outage or a restart, and whose media has left the window or
/// belonged to another process. Who has such a list, or a kept Period, asks for it: players stop for good at 404.
package struct KeptInit: Sendable, Hashable {
  package var rendition: Rendition
  package var version: Int
  package var bytes: [UInt8]

  /// The most of an epoch; the newest are kept.
  static let limit = 64
  /// The most bytes of one; a longer one is not kept.
  static let longest = 16_384

  /// One line each: rendition, version and bytes in base64, separated by tabs.
  static func text(of inits: [KeptInit]) -> String {
    inits.map { "\($0.rendition.rawValue)\t\($0.version)\t\(Base64.encode($0.bytes))" }.joined(separator: "\n")
  }

  /// Nil for text that `text(of:)` cannot have written.
  static func parse(_ text: String) -> [KeptInit]? {
    guard text.utf8.count <= limit * (longest / 3 * 4 + 64) else { return nil }
    var inits: [KeptInit] = []
    for line in text.split(separator: "\n") {
      let parts = line.split(separator: "\t")
      guard parts.count == 3, let rendition = Rendition(pathSegment: String(parts[0])), let version = Int(parts[1]),
        (1..<1 << 40).contains(version), let bytes = Base64.decode(parts[2]), bytes.count <= longest,
        inits.count < limit
      else { return nil }
      inits.append(KeptInit(rendition: rendition, version: version, bytes: bytes))
    }
    return inits
  }
}

extension InitSegment {
  /// Its bytes in the layout of a rendition. Nil if the rendition has no track in it.
  package func bytes(of rendition: Rendition) -> ByteBuffer? {
    rendition.kind == nil ? interleaved : rendition.track(in: tracks).map(single)
  }
}
