internal import Basics

/// The text given for a setting, and its origin.
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

  /// An error of one line that names the setting.
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

/// The sources of settings in order of priority: flags, environment variables, the defaults of a command, the usual defaults.
struct SettingSources: Sendable {
  let flags: [SettingName: [String]]
  let environment: [String: String]
  private let defaults: [SettingName: String]

  /// - Parameters:
  ///   - flags: the texts of the command line, in order; several if a flag may be repeated.
  ///   - environment: the whole environment.
  ///   - defaults: the defaults of a command, which replace the usual ones.
  init(
    flags: [SettingName: [String]] = [:], environment: [String: String] = [:], defaults: [SettingName: String] = [:]
  ) {
    (self.flags, self.environment, self.defaults) = (flags.filter { !$0.value.isEmpty }, environment, defaults)
  }

  /// The texts of a setting from the source with the highest priority; none if it is off. An empty variable counts as not set, as
  /// container files produce them. An empty secret does not, because it would change access rights without notice.
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

  /// An error that names the setting at its origin.
  func error(_ setting: some SettingDeclaration, _ reason: String, _ advice: String) -> ConfigurationError {
    (texts(of: setting).last ?? GivenText("", .standard(setting.name))).error(reason, advice)
  }
}
