package import Base
package import Publishing

/// The name of a setting, from which its flag and its environment variable are derived.
package struct SettingName: Sendable, Hashable, ExpressibleByStringLiteral {
  static let variablePrefix = "WEIR_"

  /// `part-duration`.
  package let text: String

  package init(stringLiteral text: String) { self.text = text }

  /// The flag on the command line: `--part-duration`.
  package var flag: String { "--" + text }

  /// The environment variable of the setting: `WEIR_PART_DURATION`.
  package var variable: String {
    // Byte by byte: a start asks for hundreds of them, and names are ASCII.
    let bytes = text.utf8.map { byte in
      switch byte {
      case UInt8(ascii: "-"): UInt8(ascii: "_")
      case UInt8(ascii: "a")...UInt8(ascii: "z"): byte - 0x20
      default: byte
      }
    }
    return Self.variablePrefix + String(decoding: bytes, as: UTF8.self)
  }

  /// Both names, for errors.
  var origin: String { "\(flag) or \(variable)" }
}

/// What is wrong with the text of a setting.
package typealias TextError = ValueError

/// The declaration of a setting, independent of the type of its value.
package protocol SettingDeclaration: Sendable {
  var name: SettingName { get }
  /// Where it stands in the configuration file; nil for what a file cannot say.
  var path: SettingPath? { get }
  /// How it is written there.
  var shape: SettingShape { get }
  /// What it does, for the help text.
  var summary: String { get }
  /// What follows the flag in the help text; nil for a switch.
  var form: String? { get }
  /// What texts it takes.
  var values: SettingValues { get }
  /// The default as text; nil if there is none.
  var standard: String? { get }
  /// A key or a token. No message repeats it, and an empty one is always an error.
  var isSecret: Bool { get }
  /// The setting that it contradicts.
  var opposite: SettingName? { get }
  /// Splits a variable into several texts, for a setting whose flag may be repeated.
  var split: @Sendable (String) -> [String] { get }
  /// Splits a text that is for one stream, `NAME=REST`; nil for a text that is for all.
  var named: @Sendable (String) throws(TextError) -> (stream: StreamName, rest: String)? { get }
  /// Reads texts and drops the value.
  func check(_ given: [GivenText]) throws(ConfigurationError)
}

/// A setting, declared once as a property of a `SettingGroup`. Its flag, help text, variable and error messages follow from the
/// declaration.
package struct Setting<Value: Sendable>: SettingDeclaration {
  package let name: SettingName
  package let path: SettingPath?
  package let shape: SettingShape
  package let summary: String
  package let form: String?
  package let values: SettingValues
  package let standard: String?
  package let isSecret: Bool
  package let opposite: SettingName?
  package let split: @Sendable (String) -> [String]
  package let named: @Sendable (String) throws(TextError) -> (stream: StreamName, rest: String)?
  /// Makes the value from the texts of the source with the highest priority.
  let read: @Sendable ([GivenText]) throws(ConfigurationError) -> Value

  init(
    _ name: SettingName, at path: SettingPath?, _ form: String?, values: SettingValues = .text,
    default standard: String? = nil,
    isSecret: Bool = false, opposite: SettingName? = nil, shape: SettingShape = .one,
    split: @escaping @Sendable (String) -> [String] = { [$0] },
    named: @escaping @Sendable (String) throws(TextError) -> (stream: StreamName, rest: String)? = { _ in nil },
    _ summary: String,
    read: @escaping @Sendable ([GivenText]) throws(ConfigurationError) -> Value
  ) {
    (self.name, self.path, self.shape) = (name, path, shape)
    (self.form, self.values, self.standard, self.summary) = (form, values, standard, summary)
    (self.isSecret, self.opposite, self.split, self.read) = (isSecret, opposite, split, read)
    self.named = named
  }

  /// A setting with one value.
  init(
    _ name: SettingName, at path: SettingPath?, _ text: SettingText<Value>, default standard: String, _ summary: String
  ) {
    self.init(name, at: path, text.form, values: text.values, default: standard, summary) {
      given throws(ConfigurationError) in
      try (given.last ?? GivenText(standard, .standard(name))).read(text.parse)
    }
  }

  /// A setting with one value or none.
  init<One>(
    _ name: SettingName, at path: SettingPath?, _ text: SettingText<One>, isSecret: Bool = false, _ summary: String
  )
  where Value == One? {
    self.init(name, at: path, text.form, values: text.values, isSecret: isSecret, summary) {
      given throws(ConfigurationError) in
      try given.last?.read(text.parse)
    }
  }

  /// A setting with any number of values; a variable separates them by commas.
  init<One>(
    each name: SettingName, at path: SettingPath?, _ text: SettingText<One>, isSecret: Bool = false, _ summary: String
  )
  where Value == [One] {
    self.init(
      name, at: path, text.form, values: text.values, isSecret: isSecret, shape: .list, split: { $0.commaSeparated },
      summary
    ) {
      given throws(ConfigurationError) in
      var values: [One] = []
      for one in given { values.append(try one.read(text.parse)) }
      return values
    }
  }

  /// A flag without a value; its variable is 1 or 0.
  init(switch name: SettingName, at path: SettingPath?, opposite: SettingName? = nil, _ summary: String)
  where Value == Bool {
    self.init(name, at: path, nil, opposite: opposite, shape: .yesOrNo, summary) { given throws(ConfigurationError) in
      try given.last?.read(Switch.parse) == .on
    }
  }
}

extension Setting {
  package func check(_ given: [GivenText]) throws(ConfigurationError) { _ = try read(given) }
}

/// A group of settings: each property is a setting or another group.
package protocol SettingGroup: Sendable {}

/// A group with a title, under which the help of the commands lists its flags. Several groups may share one.
package protocol TitledSettings: SettingGroup {
  static var title: String { get }

  init()
}

extension SettingGroup {
  /// All of them, in the order of their properties.
  package var declarations: [any SettingDeclaration] {
    Mirror(reflecting: self).children.flatMap { child -> [any SettingDeclaration] in
      if let setting = child.value as? any SettingDeclaration { return [setting] }
      return (child.value as? any SettingGroup)?.declarations ?? []
    }
  }
}
