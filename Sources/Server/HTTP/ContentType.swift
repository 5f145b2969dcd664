/// The media types that weir serves.
package enum ContentType: String, Sendable {
  /// RFC 8216 §4.
  case hls = "application/vnd.apple.mpegurl"
  /// ISO/IEC 23009-1 annex C.
  case dash = "application/dash+xml"
  /// ISO/IEC 23009-1 §5.15.
  case dashPatch = "application/dash-patch+xml"
  case mp4 = "video/mp4"
  case audioMP4 = "audio/mp4"
  case json = "application/json"
  /// RFC 9457.
  case problem = "application/problem+json"
  case text = "text/plain; charset=utf-8"
  /// Prometheus' text format.
  case metrics = "text/plain; version=0.0.4; charset=utf-8"
  case html = "text/html; charset=utf-8"
  case css = "text/css; charset=utf-8"
  case javascript = "text/javascript; charset=utf-8"
  case svg = "image/svg+xml"
  case png = "image/png"
  case jpeg = "image/jpeg"
  case icon = "image/x-icon"
  case woff2 = "font/woff2"
  case manifest = "application/manifest+json"
  case binary = "application/octet-stream"

  /// From the extension of a file name.
  package init(fileName: String) {
    let ending = fileName.utf8.lastIndex(of: UInt8(ascii: ".")).map { String(fileName[$0...].dropFirst()) }
    switch ending {
    case "html": self = .html
    case "css": self = .css
    case "js", "mjs": self = .javascript
    case "json": self = .json
    case "svg": self = .svg
    case "png": self = .png
    case "jpg", "jpeg": self = .jpeg
    case "ico": self = .icon
    case "woff2": self = .woff2
    case "webmanifest": self = .manifest
    case "txt": self = .text
    case "m3u8": self = .hls
    case "mpd": self = .dash
    case "mpp": self = .dashPatch
    case "mp4", "m4s": self = .mp4
    default: self = .binary
    }
  }

  /// Whether gzip makes it smaller. True for text, never for media.
  var isCompressible: Bool {
    switch self {
    case .hls, .dash, .dashPatch, .json, .problem, .text, .metrics, .html, .css, .javascript, .svg, .manifest: true
    case .mp4, .audioMP4, .png, .jpeg, .icon, .woff2, .binary: false
    }
  }
}
