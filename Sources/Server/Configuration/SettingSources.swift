/// The texts that settings are given as: by flags and by environment variables. Flag beats environment beats default.
struct SettingSources: Sendable {
  /// Where a value came from, for messages.
  enum Origin: Sendable, Hashable, CustomStringConvertible {
    case flag(Setting)
    case variable(Setting)
    case standard(Setting)

    var description: String {
      switch self {
      case .flag(let setting), .standard(let setting): setting.flag
      case .variable(let setting): setting.variable
      }
    }
  }

  /// A value with where it came from.
  struct Given<Value: Sendable>: Sendable {
    var value: Value
    var origin: Origin
  }

  private let flags: [Setting: [String]]
  private let environment: [String: String]
  private let defaults: [Setting: String]

  /// - Parameters:
  ///   - flags: what the command line gave, in its order; several texts where a flag may be repeated.
  ///   - environment: the whole environment.
  ///   - defaults: what a command has instead of the usual defaults.
  init(
    flags: [Setting: [String]] = [:], environment: [String: String] = [:], defaults: [Setting: String] = [:]
  ) {
    self.flags = flags.filter { !$0.value.isEmpty }
    self.environment = environment
    self.defaults = defaults
  }

  /// The texts of a setting from the best place that has any. A variable may hold several, separated by commas,
  /// where the flag may be repeated. An empty variable counts as not set, as container files produce them.
  func all(_ setting: Setting) -> [Given<String>] {
    if let texts = flags[setting] { return texts.map { Given(value: $0, origin: .flag(setting)) } }
    if let text = environment[setting.variable], !text.isEmpty {
      let texts = setting == .source ? SourceSpecification.list(text) : text.split(separator: ",").map(String.init)
      return texts.map { Given(value: $0, origin: .variable(setting)) }
    }
    return []
  }

  /// The texts of a setting that may be repeated and has commas of its own: a variable separates them by semicolons.
  func lists(_ setting: Setting) -> [Given<String>] {
    if flags[setting] != nil { return all(setting) }
    guard let text = environment[setting.variable] else { return [] }
    return text.split(separator: ";").map { Given(value: String($0), origin: .variable(setting)) }
  }

  /// The one text of a setting, or its default; nil where it is off.
  func one(_ setting: Setting) -> Given<String>? {
    if let text = flags[setting]?.last { return Given(value: text, origin: .flag(setting)) }
    if let text = environment[setting.variable], !text.isEmpty {
      return Given(value: text, origin: .variable(setting))
    }
    return (defaults[setting] ?? setting.defaultText).map { Given(value: $0, origin: .standard(setting)) }
  }

  /// Whether lines of the log are JSON, asked before all settings have been read.
  var asksForJSONLog: Bool { one(.log)?.value == LogFormat.json.rawValue }

  /// True where the variable is there but empty.
  func hasEmptyVariable(_ setting: Setting) -> Bool {
    environment[setting.variable]?.isEmpty == true
  }

  // MARK: As they were given

  /// What the command line says of a setting; nil for nothing.
  func flags(_ setting: Setting) -> [String]? { flags[setting] }

  func variable(_ setting: Setting) -> String? { environment[setting.variable] }

  /// Names of all variables, weir's and others.
  var names: [String] { Array(environment.keys) }

  func value(of name: String) -> String? { environment[name] }
}
