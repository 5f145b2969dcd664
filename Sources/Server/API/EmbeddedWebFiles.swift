internal import CWeb
internal import HTTP
internal import NIOCore

/// The files of web/ that are embedded in the binary, by their path below web/ (`pages/index.html`).
struct EmbeddedWebFiles: Sendable {
  /// Those of this program. Made when a page is first asked for, since their hash is a millisecond of a start.
  static let ofProgram = EmbeddedWebFiles()

  /// Prefix of a build's name.
  static let buildPrefix = "build-"

  /// The first part of an address that always means these very files: `build-0123456789abcdef`.
  let build: String
  /// The place of each file in the table of the binary.
  private let places: [String: Int]

  init() {
    var places: [String: Int] = [:]
    var all = ContentHash()
    for index in 0..<weir_web_file_count {
      guard let file = weir_web_file_at(index) else { continue }
      let name = String(cString: file.pointee.path)
      places[name] = index
      all.add(ByteBuffer(string: name))
      all.add(UnsafeRawBufferPointer(start: file.pointee.bytes, count: file.pointee.length))
    }
    self.places = places
    build = Self.buildPrefix + all.text
  }

  /// A copy of a file.
  func bytes(of name: String) -> ByteBuffer? {
    guard let place = places[name], let file = weir_web_file_at(place) else { return nil }
    return ByteBuffer(bytes: UnsafeRawBufferPointer(start: file.pointee.bytes, count: file.pointee.length))
  }

  /// The file for an address without a build: what pages, and scripts for other sites, load has the address of the build.
  func current(_ name: String) -> ByteBuffer? {
    guard let bytes = bytes(of: name) else { return nil }
    if WebFiles.isPage(name) { return bytes.replacing("\"/web/", by: "\"/web/\(build)/") }
    // A script directly in web/ is for other sites.
    return name.contains("/") ? bytes : bytes.replacing("\"./", by: "\"./\(build)/")
  }
}

extension ByteBuffer {
  /// The text with another one in place of each `text`.
  func replacing(_ text: String, by other: String) -> ByteBuffer {
    let parts = String(buffer: self).split(separator: text, omittingEmptySubsequences: false)
    return ByteBuffer(string: parts.joined(separator: other))
  }
}
