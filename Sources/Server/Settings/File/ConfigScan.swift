/// Finds what weir does not read of YAML, before the YAML is parsed: anchors and aliases, of which a few lines can stand for
/// gigabytes, and texts that would hide one from this scan.
struct ConfigScan {
  struct Finding {
    var line: Int
    var column: Int
    var reason: String
    var advice: String
  }

  private enum State: Equatable {
    case outside
    case comment
    case quoted(UInt8)
    /// Behind a backslash within double quotes.
    case escaped
    /// Behind a single quote within single quotes; two are one.
    case closing
  }

  private var state = State.outside
  private var line = 1
  private var column = 0
  private var before = UInt8(ascii: " ")
  /// Within a text without quotes.
  private var isPlain = false
  /// The byte before ended a text in double quotes.
  private var hasClosed = false
  /// The `&` or `*` that was read last, where a value may begin.
  private var mark: UInt8?

  /// The first of it; nil without any.
  static func refused(in text: String) -> Finding? {
    var scan = ConfigScan()
    for byte in text.utf8 {
      if let finding = scan.read(byte) { return finding }
    }
    return nil
  }

  private mutating func read(_ byte: UInt8) -> Finding? {
    // Columns count characters.
    if byte & 0xc0 != 0x80 { column += 1 }
    defer { if !endLine(byte) { before = byte } }
    let isBehindQuotes = hasClosed || state == .closing
    hasClosed = false
    switch state {
    case .comment: return nil
    case .escaped: state = .quoted(UInt8(ascii: "\""))
    case .quoted(let quote) where byte == UInt8(ascii: "\\") && quote == UInt8(ascii: "\""): state = .escaped
    case .quoted(let quote) where byte == quote:
      hasClosed = quote == UInt8(ascii: "\"")
      state = hasClosed ? .outside : .closing
    case .quoted: break
    case .closing where byte == UInt8(ascii: "'"): state = .quoted(byte)
    case .closing, .outside:
      state = .outside
      return readOutside(byte, isBehindQuotes: isBehindQuotes)
    }
    return nil
  }

  private mutating func readOutside(_ byte: UInt8, isBehindQuotes: Bool) -> Finding? {
    let isBlank = byte <= 0x20 || byte >= 0x80
    if let name = mark {
      mark = nil
      if !isBlank, !",]}:".utf8.contains(byte) {
        let what = name == UInt8(ascii: "*") ? "aliases (*name)" : "anchors (&name)"
        return finding("\(what) of YAML are not read", "write the value out, or put a text in quotes", back: 1)
      }
    }
    // Behind a key in quotes a value may follow its colon at once.
    if byte == UInt8(ascii: ":"), isBehindQuotes {
      isPlain = false
      return nil
    }
    let isStart = before <= 0x20 || before >= 0x80 || ",[]{}".utf8.contains(before) || !isPlain
    switch byte {
    case UInt8(ascii: "#") where before <= 0x20 || before >= 0x80: state = .comment
    case _ where isBlank:
      if before == UInt8(ascii: ":") { isPlain = false }
    case UInt8(ascii: "\""), UInt8(ascii: "'"):
      guard isStart else { break }
      guard !isPlain else {
        return finding("a quote within a text without quotes", "put the whole text in quotes")
      }
      state = .quoted(byte)
    case UInt8(ascii: "&"), UInt8(ascii: "*"): if isStart { mark = byte } else { isPlain = true }
    case UInt8(ascii: "|"), UInt8(ascii: ">"):
      guard isPlain else {
        return finding("texts of several lines (| and >) are not read", "write the text in one line, in quotes")
      }
    case UInt8(ascii: ","), UInt8(ascii: "["), UInt8(ascii: "]"), UInt8(ascii: "{"), UInt8(ascii: "}"): isPlain = false
    case UInt8(ascii: "-"), UInt8(ascii: "?"), UInt8(ascii: ":"): break
    default: isPlain = true
    }
    return nil
  }

  /// Ends the line at each character that YAML 1.1 takes for a line break, and says whether it did.
  private mutating func endLine(_ byte: UInt8) -> Bool {
    let isBreak =
      byte == 0x0a || byte == 0x0d || (before == 0xc2 && byte == 0x85)
      || (before == 0x80 && (byte == 0xa8 || byte == 0xa9))
    guard isBreak else { return false }
    if byte == 0x0a { (line, column) = (line + 1, 0) }
    before = UInt8(ascii: " ")
    switch state {
    case .quoted, .escaped: break
    case .comment, .closing, .outside: (state, isPlain, mark) = (.outside, false, nil)
    }
    return true
  }

  private func finding(_ reason: String, _ advice: String, back: Int = 0) -> Finding {
    Finding(line: line, column: column - back, reason: reason, advice: advice)
  }
}
