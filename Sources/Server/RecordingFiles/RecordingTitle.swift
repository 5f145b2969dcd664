package import Base

/// The name that a client gave to a recording: text for people, at most 100 bytes of UTF-8. A file name contains what of it is
/// safe there, and the time.
package struct RecordingTitle: Sendable, Hashable, CustomStringConvertible {
  package let description: String

  static let maximumBytes = 100

  package init(_ text: String) throws(ValueError) {
    let advice = "use 1 to \(Self.maximumBytes) bytes of UTF-8 without control characters and slashes"
    guard (1...Self.maximumBytes).contains(text.utf8.count) else {
      throw ValueError("it has \(text.utf8.count) bytes", advice: advice)
    }
    guard !text.unicodeScalars.contains(where: { Self.isForbidden($0) }) else {
      throw ValueError("it has a control character or a slash", advice: advice)
    }
    guard text.unicodeScalars.contains(where: { !$0.properties.isWhitespace }) else {
      throw ValueError("it is blank", advice: advice)
    }
    description = text
  }

  /// Controls, directions and line ends, which break lines of text and headers; separators of paths.
  private static func isForbidden(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate: true
    default: scalar == "/" || scalar == "\\"
    }
  }

  /// For a header (RFC 8187 §3.2.1).
  package var percentEncoded: String {
    var text = ""
    for byte in description.utf8 {
      if RecordingName.isAllowed(byte) {
        text.unicodeScalars.append(Unicode.Scalar(byte))
      } else {
        text += (byte < 16 ? "%0" : "%") + String(byte, radix: 16, uppercase: true)
      }
    }
    return text
  }

  /// Its characters that are safe in a file name, with a hyphen for each run of others; nil if none is safe.
  package var fileName: String? {
    var bytes: [UInt8] = []
    for byte in description.utf8 {
      if RecordingName.isAllowed(byte) {
        bytes.append(byte)
      } else if bytes.last != UInt8(ascii: "-") {
        bytes.append(UInt8(ascii: "-"))
      }
    }
    let safe = bytes.drop { ".-_".utf8.contains($0) }
    let end = safe.lastIndex { !".-_".utf8.contains($0) }
    return end.map { String(decoding: safe[...$0], as: UTF8.self) }
  }
}
