/// Text of an operator within a page or its markup.
package enum MarkupText {
  /// Without control characters and characters that turn the direction of what follows (Unicode UAX #9 §2): in a title bar, or in
  /// another site's preview, they would reach beyond the text.
  package static func plain(_ text: String) -> String {
    var plain = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
      let isTurn = (0x202A...0x202E).contains(scalar.value) || (0x2066...0x2069).contains(scalar.value)
      if !isTurn, scalar.properties.generalCategory != .control { plain.append(scalar) }
    }
    return String(plain)
  }

  /// The same as the content of an element, or of an attribute in double quotes (HTML §13.1.2.3).
  package static func escaped(_ text: String) -> String {
    var escaped = ""
    for character in plain(text).unicodeScalars {
      switch character {
      case "&": escaped += "&amp;"
      case "<": escaped += "&lt;"
      case ">": escaped += "&gt;"
      case "\"": escaped += "&quot;"
      case "'": escaped += "&#39;"
      default: escaped.unicodeScalars.append(character)
      }
    }
    return escaped
  }
}
