internal import Base

/// Writes settings as a configuration file.
struct ConfigWriter {
  /// A value, and what stands beside it.
  struct Value {
    /// As they are given: one, or several where the shape of the setting allows it.
    var texts: [String]
    /// Behind the value, after `#`.
    var note: String?
  }

  private(set) var text = ""

  /// Writes a group.
  ///
  /// - Parameters:
  ///   - depth: how deep it stands, in steps of two spaces.
  ///   - write: what is written of a setting.
  mutating func add(_ group: ConfigGroup, depth: Int, write: (inout ConfigWriter, any SettingDeclaration, Int) -> Void)
  {
    for (key, member) in group.members {
      switch member {
      case .setting(let setting): write(&self, setting, depth)
      case .group(let inner):
        var writer = ConfigWriter()
        writer.add(inner, depth: depth + 1, write: write)
        guard !writer.text.isEmpty else { continue }
        addLine("\(Self.quoted(key)):", depth)
        text += writer.text
      }
    }
  }

  mutating func addLine(_ line: String, _ depth: Int) {
    text += String(repeating: "  ", count: depth) + line + "\n"
  }

  /// A setting with its value.
  mutating func add(_ setting: any SettingDeclaration, _ value: Value, depth: Int) {
    guard let key = setting.path?.keys.last else { return }
    let note = value.note.map { "  # \($0)" } ?? ""
    guard setting.shape == .byName else {
      return addLine("\(key): \(Self.inline(value.texts, of: setting))\(note)", depth)
    }
    addLine("\(key):\(note)", depth)
    for text in value.texts {
      let halves = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      addLine("\(Self.quoted(String(halves[0]))): \(Self.quoted(String(halves.last ?? "")))", depth + 1)
    }
  }

  private static func inline(_ texts: [String], of setting: any SettingDeclaration) -> String {
    switch setting.shape {
    case .yesOrNo: return (try? Switch.parse(texts.last ?? "")) == .on ? "true" : "false"
    case .one: return quoted(texts.last ?? "")
    case .list: return "[\(texts.map(quoted).joined(separator: ", "))]"
    case .joined: return "[\(texts.flatMap(\.commaSeparated).map(quoted).joined(separator: ", "))]"
    case .byName: return ""
    }
  }

  /// A text as YAML: plain where it may be, else as JSON, which is YAML as well.
  static func quoted(_ text: String) -> String {
    let isWord = text.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
      case UInt8(ascii: "0")...UInt8(ascii: "9"): true
      default: "./@_-".utf8.contains(byte)
      }
    }
    let isPlain = isWord && text.first.map { $0.isLetter || $0.isNumber || $0 == "." || $0 == "/" } == true
    if isPlain, !["true", "false", "null", "yes", "no", "on", "off"].contains(text.lowercased()) { return text }
    return LogText.json(text)
  }
}
