package import Base

/// What a client noted about a recording: text for people, at most 2000 bytes of UTF-8, with line ends.
package struct RecordingNote: Sendable, Hashable, CustomStringConvertible {
  package let description: String

  static let maximumBytes = 2000

  package init(_ text: String) throws(ValueError) {
    let advice = "use at most \(Self.maximumBytes) bytes of UTF-8 without control characters"
    guard text.utf8.count <= Self.maximumBytes else {
      throw ValueError("it has \(text.utf8.count) bytes", advice: advice)
    }
    guard !text.unicodeScalars.contains(where: { Self.isForbidden($0) }) else {
      throw ValueError("it has a control character", advice: advice)
    }
    description = text
  }

  /// Controls, and what turns the direction of the text around it (UAX #9 §2). Joiners belong to words and emoji.
  private static func isForbidden(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x0A: false
    case 0x202A...0x202E, 0x2066...0x2069: true
    default: scalar.properties.generalCategory == .control
    }
  }
}
