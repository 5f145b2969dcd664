internal import Basics

/// A text that a setting was given, and where.
struct GivenText: Sendable {
  enum Origin: Sendable, Hashable {
    case flag(SettingName)
    case variable(SettingName)
    case standard(SettingName)
  }

  let text: String
  let origin: Origin
  let isSecret: Bool

  init(_ text: String, _ origin: Origin, isSecret: Bool = false) {
    (self.text, self.origin, self.isSecret) = (text, origin, isSecret)
  }

  func read<Value>(_ parse: (String) throws(ValueError) -> Value) throws(ConfigurationError) -> Value {
    do {
      return try parse(text)
    } catch {
      throw self.error(error.reason, error.advice)
    }
  }

  /// One line that blames it.
  func error(_ reason: String, _ advice: String) -> ConfigurationError {
    let place =
      switch origin {
      case .flag(let name), .standard(let name): (name: name.flag, separator: " ")
      case .variable(let name): (name: name.variable, separator: "=")
      }
    let value = isSecret || text.isEmpty ? "" : place.separator + LogText.escaped(text)
    return ConfigurationError(.usage, "\(place.name)\(value): \(reason); \(advice)")
  }
}

/// The places that settings are given in, the best first: flags, environment variables, what a command has instead of the
/// usual defaults, defaults. A file would be one more.
struct SettingSources: Sendable {
  let flags: [SettingName: [String]]
  let environment: [String: String]
  private let defaults: [SettingName: String]

  /// - Parameters:
  ///   - flags: what the command line gave, in its order; several texts where a flag may be repeated.
  ///   - environment: the whole environment.
  ///   - defaults: what a command has instead of the usual defaults.
  init(
    flags: [SettingName: [String]] = [:], environment: [String: String] = [:], defaults: [SettingName: String] = [:]
  ) {
    (self.flags, self.environment, self.defaults) = (flags.filter { !$0.value.isEmpty }, environment, defaults)
  }

  /// The texts of a setting from the best place that has any; none where it is off. An empty variable counts as not set, as
  /// container files produce them; an empty secret would quietly change who may do what.
  func texts(of setting: some SettingDeclaration) -> [GivenText] {
    let (name, variable) = (setting.name, environment[setting.name.variable] ?? "")
    func given(_ texts: [String], _ origin: GivenText.Origin) -> [GivenText] {
      texts.map { GivenText($0, origin, isSecret: setting.isSecret) }
    }
    if setting.isSecret, variable.isEmpty, environment[name.variable] != nil { return given([""], .variable(name)) }
    if let texts = flags[name] { return given(texts, .flag(name)) }
    if !variable.isEmpty { return given(setting.split(variable), .variable(name)) }
    return given((defaults[name] ?? setting.standard).map { [$0] } ?? [], .standard(name))
  }

  subscript<Value>(_ setting: Setting<Value>) -> Value {
    get throws(ConfigurationError) { try setting.read(texts(of: setting)) }
  }

  /// The error that blames a setting, at the place its value came from.
  func error(_ setting: some SettingDeclaration, _ reason: String, _ advice: String) -> ConfigurationError {
    (texts(of: setting).last ?? GivenText("", .standard(setting.name))).error(reason, advice)
  }
}
