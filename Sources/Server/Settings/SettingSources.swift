package import Publishing

/// The sources of settings, in order of priority: flags, environment variables, the configuration file, the defaults of a command,
/// the usual defaults. What is said of one stream beats what is said of all.
package struct SettingSources: Sendable {
  let flags: [SettingName: [String]]
  let environment: [String: String]
  let defaults: [SettingName: String]
  /// Nil when there is none.
  package let file: ConfigFile?
  /// What was set over the API, by stream. It beats the file, and flags beat it.
  package var setByAPI: [StreamName: [SettingName: [GivenText]]] = [:]
  /// What a stream has of its own; empty for all streams.
  var own: [SettingName: [GivenText]] = [:]

  /// - Parameters:
  ///   - flags: the texts of the command line, in order; several if a flag may be repeated.
  ///   - environment: the whole environment.
  ///   - file: the configuration file.
  ///   - defaults: the defaults of a command, which replace the usual ones.
  package init(
    flags: [SettingName: [String]] = [:], environment: [String: String] = [:], file: ConfigFile? = nil,
    defaults: [SettingName: String] = [:]
  ) {
    (self.flags, self.environment, self.defaults) = (flags.filter { !$0.value.isEmpty }, environment, defaults)
    self.file = file
  }

  /// The texts of a setting from the source with the highest priority; none if it is off. Texts for one stream are left out of
  /// what is for all.
  package func texts(of setting: any SettingDeclaration) -> [GivenText] {
    if let texts = own[setting.name] { return texts }
    for texts in sources(of: setting) {
      let forAll = texts.filter { !$0.mayName || (try? setting.named($0.text)) == nil }
      if !forAll.isEmpty { return forAll }
    }
    return []
  }

  /// An empty variable counts as not set, as container files produce them. An empty secret does not, because it would change
  /// access rights without notice.
  private func sources(of setting: any SettingDeclaration) -> [[GivenText]] {
    let (name, variable) = (setting.name, environment[setting.name.variable] ?? "")
    func given(_ texts: [String], _ origin: GivenText.Origin) -> [GivenText] {
      texts.map { GivenText($0, origin, isSecret: setting.isSecret) }
    }
    if setting.isSecret, variable.isEmpty, environment[name.variable] != nil { return [given([""], .variable(name))] }
    return [
      given(flags[name] ?? [], .flag(name)), given(variable.isEmpty ? [] : setting.split(variable), .variable(name)),
      file?.texts[name] ?? [], given((defaults[name] ?? setting.standard).map { [$0] } ?? [], .standard(name)),
    ]
  }

  /// The texts of the source with the highest priority.
  func allTexts(of setting: any SettingDeclaration) -> [GivenText] {
    sources(of: setting).first { !$0.isEmpty } ?? []
  }

  /// Nobody has set it.
  func isStandard(_ setting: some SettingDeclaration) -> Bool {
    texts(of: setting).allSatisfy { if case .standard = $0.origin { true } else { false } }
  }

  /// The texts that a stream has of its own.
  func ownTexts(of setting: some SettingDeclaration) -> [GivenText] { own[setting.name] ?? [] }

  package subscript<Value>(_ setting: Setting<Value>) -> Value {
    get throws(ConfigurationError) {
      let given = texts(of: setting)
      do throws(ConfigurationError) {
        return try setting.read(given)
      } catch {
        for one in given { if let naming = Self.naming(one, setting) { throw naming } }
        throw error
      }
    }
  }

  /// An error that names the setting at its origin.
  func error(_ setting: some SettingDeclaration, _ reason: String, _ advice: String) -> ConfigurationError {
    (texts(of: setting).last ?? GivenText("", .standard(setting.name))).error(reason, advice)
  }
}
