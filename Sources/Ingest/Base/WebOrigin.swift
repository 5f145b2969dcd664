/// An origin as browsers send it (RFC 6454 §6.2): `https://player.example`, without the usual port. What a header field may contain.
package enum WebOrigin {
  /// The most origins that one setting may list: all of them stand in a header field of each page.
  package static let most = 64

  /// Parses an origin, or `*` for all.
  package static func parse(_ text: String) throws(ValueError) -> String {
    let advice = "write https://player.example, without a path, or *"
    if text == "*" { return text }
    guard !text.contains("*") else {
      throw ValueError(
        "a wildcard within an origin is not supported", advice: "name each origin, or write * for all pages")
    }
    guard text.hasSuffix("/") == false, let url = try? PublicURL(parsing: text), url.path.isEmpty else {
      throw ValueError("that is not an origin", advice: advice)
    }
    let origin = url.description
    for (scheme, port) in [("https://", ":443"), ("http://", ":80")]
    where origin.hasPrefix(scheme) && origin.hasSuffix(port) {
      return String(origin.dropLast(port.utf8.count))
    }
    return origin
  }
}
