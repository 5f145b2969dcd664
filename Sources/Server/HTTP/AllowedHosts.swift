package import Base
internal import NIOCore

/// The names under which this server answers. A page of another site whose name leads to the server's address (DNS rebinding) has,
/// for its browser, the server's own origin. The name that the request has is all that tells it from the server's own pages.
package struct AllowedHosts: Sendable, Hashable {
  /// Ends of names that no site on the Internet can have (RFC 6761 §6.3, RFC 6762 §3, RFC 8375 §3, and ICANN's
  /// `internal`).
  package static let localEnds = ["localhost", "local", "internal", "home.arpa"]
  /// The longest name, in characters (RFC 1035 §2.3.4): no more of one is told.
  static let longest = 253

  /// Beside addresses, names without a dot, and those of `localEnds`. In lower case, without a dot at the end.
  package let names: Set<String>

  /// `*.example.org` stands for the names with one label in front, as in certificates (RFC 6125 §6.4.3).
  package init(_ names: some Sequence<String> = []) { self.names = Set(names.map(Self.plain)) }

  /// Whether a request may name this host, with or without a port. `further` are names that count as well; asked for only where
  /// nothing else allows the host.
  func allow(_ host: Span<UInt8>, or further: () -> AllowedHosts? = { nil }) -> Bool {
    let form = Self.form(of: host)
    guard case .name(let range) = form else { return form == .address }
    let name = host.extracting(range)
    guard name.indices.contains(where: { name[$0] == UInt8(ascii: ".") }), !Self.isIPv4(name) else { return true }
    let text = String(copying: name).lowercased()
    if Self.localEnds.contains(where: { text.hasSuffix(".\($0)") }) { return true }
    return has(text) || further()?.has(text) ?? false
  }

  private func has(_ name: String) -> Bool {
    names.contains(name) || names.contains("*" + name.drop { $0 != "." })
  }

  private static func plain(_ name: String) -> String {
    let name = name.lowercased()
    return name.hasSuffix(".") ? String(name.dropLast()) : name
  }

  // MARK: Syntax (RFC 3986 §3.2.2)

  private enum Form: Equatable {
    /// An address in brackets.
    case address
    /// Where the name stands, without a dot at its end. Empty where the request names nothing.
    case name(Range<Int>)
    case malformed
  }

  private static func form(of host: Span<UInt8>) -> Form {
    var end = 0
    let isBracketed = host.count > 0 && host[0] == UInt8(ascii: "[")
    if isBracketed {
      while end < host.count, host[end] != UInt8(ascii: "]") { end &+= 1 }
      guard end < host.count else { return .malformed }
      end &+= 1
    } else {
      while end < host.count, isOfName(host[end]) { end &+= 1 }
    }
    var rest = end
    if rest < host.count, host[rest] == UInt8(ascii: ":") {
      rest &+= 1
      while rest < host.count, host[rest].isDigit { rest &+= 1 }
    }
    guard rest == host.count else { return .malformed }
    if isBracketed { return .address }
    return .name(0..<(end > 0 && host[end &- 1] == UInt8(ascii: ".") ? end &- 1 : end))
  }

  /// Letters, digits, hyphens, underscores and dots.
  private static func isOfName(_ byte: UInt8) -> Bool {
    byte.isDigit || 0x61...0x7A ~= byte.lowercased || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".")
      || byte == UInt8(ascii: "_")
  }

  /// Whether the text is four numbers up to 255.
  private static func isIPv4(_ text: Span<UInt8>) -> Bool {
    var (numbers, digits, value) = (1, 0, 0)
    for index in text.indices {
      if text[index] == UInt8(ascii: ".") {
        guard digits > 0 else { return false }
        (numbers, digits, value) = (numbers &+ 1, 0, 0)
      } else {
        guard text[index].isDigit, digits < 3 else { return false }
        (digits, value) = (digits &+ 1, value &* 10 &+ Int(text[index] & 0x0F))
        guard value < 256 else { return false }
      }
    }
    return numbers == 4 && digits > 0
  }
}

extension AllowedHosts {
  /// Parses the name of a host, or `*.example.org`, for a setting.
  package static func parse(_ text: String) throws(ValueError) -> String {
    let name = plain(text)
    let rest = name.hasPrefix("*.") ? name.dropFirst(2) : name[...]
    guard !rest.contains(where: { ":/".contains($0) }), (try? PublicURL(parsing: "http://\(rest)")) != nil else {
      throw ValueError("that is no name of a host", advice: "write live.example.org or *.example.org, without a port")
    }
    return name
  }

  /// The 421 for a request under another name (RFC 9110 §15.5.20).
  static func refusal(of host: Span<UInt8>) -> Problem {
    let told = LogText.escaped(String(String(copying: host).prefix(longest)))
    return Problem(
      .hostNotAllowed, "The request is for the host \"\(told)\", which is none of this server's names.",
      help: "If it is one, start weir with --allowed-host NAME (http.allowedHosts), or give it by --public-url or its"
        + " certificate. Proxies that pass other names on are named by --trusted-proxy.")
  }
}
