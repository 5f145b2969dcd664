internal import Base
internal import Control
internal import Publishing

/// Finds settings that have no effect.
extension SettingSources {
  /// A variable without effect, and the flag that overrules it.
  package struct Overruled: Sendable, Hashable, CustomStringConvertible {
    /// The variable, or the place in the file and the setting.
    var variable: String
    var flag: String

    package var description: String { "\(variable) has no effect: \(flag) says otherwise" }
  }

  /// What the command line overrules of the variables, and both of the file.
  package var overruled: [Overruled] { overruledVariables + overruledInFile }

  private var overruledInFile: [Overruled] {
    (file?.texts ?? [:]).values.compactMap { given -> (FilePlace, Overruled)? in
      guard let first = given.first, case .file(let place, let path, _) = first.origin,
        let setting = ServerOptions.all.first(where: { $0.path == path })
      else { return nil }
      let effective = texts(of: setting)
      guard effective.map(\.text) != given.map(\.text) else { return nil }
      switch effective.first?.origin {
      case .flag(let name): return (place, Overruled(variable: "\(place): \(path)", flag: name.flag))
      case .variable(let name): return (place, Overruled(variable: "\(place): \(path)", flag: name.variable))
      case .file, .api, .standard, nil: return nil
      }
    }.sorted { ($0.0.line, $0.0.column) < ($1.0.line, $1.0.column) }.map(\.1)
  }

  /// Variables that differ from the command line, which has priority.
  private var overruledVariables: [Overruled] {
    let all = ServerOptions.all
    return all.compactMap { setting in
      guard let text = environment[setting.name.variable], !text.isEmpty else { return nil }
      if let given = flags[setting.name] {
        return given == [text] || given == setting.split(text) ? nil : overruled(setting, by: setting.name)
      }
      if let opposite = setting.opposite, flags[opposite] != nil, (try? Switch.parse(text)) == .on {
        return overruled(setting, by: opposite)
      }
      let against = all.first { $0.opposite == setting.name && flags[$0.name] != nil }
      return against.flatMap { overruled(setting, by: $0.name) }
    }
  }

  private func overruled(_ setting: any SettingDeclaration, by name: SettingName) -> Overruled? {
    Overruled(variable: setting.name.variable, flag: name.flag)
  }

  /// Why a text of a flag or a variable is no value, if it begins with the name of a stream: most flags are for all streams.
  static func naming(_ given: GivenText, _ setting: some SettingDeclaration) -> ConfigurationError? {
    guard given.mayName, !given.isSecret, let path = setting.path, path.isOfStreams,
      let sign = given.text.firstIndex(of: "="), let stream = StreamName(String(given.text[..<sign]))
    else { return nil }
    let rest = given.with(text: String(given.text[given.text.index(after: sign)...]))
    // Some values have such a sign of their own.
    let isPlain = setting.form?.contains("=") == false
    guard (try? setting.check([given])) == nil, isPlain || (try? setting.check([rest])) != nil else { return nil }
    let place = SettingPath.place(path.description, of: StreamPattern(stream))
    return given.error(
      "it is for all streams, and has no NAME=", "one stream's value stands in the configuration file, at \(place)")
  }

  /// Throws if a variable looks like a setting but is none: a misspelt variable could open a server to every client.
  func checkVariables() throws(ConfigurationError) {
    let given = environment.keys.filter { $0.hasPrefix(SettingName.variablePrefix) }
    guard !given.isEmpty else { return }
    let known = ServerOptions.all.map(\.name.variable)
    let unknown = given.filter { name in !known.contains(name) && !isOfService(name) }
    guard let unknown = unknown.min() else { return }
    let advice =
      Suggestion.nearest(to: unknown, among: known).map { "write \($0), or unset it" }
      ?? "unset it; weir serve --help has all settings"
    throw ConfigurationError(.usage, "\(LogText.escaped(unknown)): weir has no such setting; \(advice)")
  }

  /// Whether the variable is one that Kubernetes, or Docker with links, sets for a service called weir or weir-something:
  /// `WEIR_SERVICE_HOST`, `WEIR_SERVICE_PORT_HTTP`, `WEIR_PORT=tcp://10.0.0.1:80`, `WEIR_PORT_80_TCP_ADDR`.
  private func isOfService(_ name: String) -> Bool {
    let words = name.split(separator: "_", omittingEmptySubsequences: false)
    if name.hasSuffix("_SERVICE_HOST") || name.hasSuffix("_SERVICE_PORT") || name.contains("_SERVICE_PORT_") {
      return true
    }
    // The first PORT: WEIR_PORT_80_TCP_PORT has two.
    guard let port = words.firstIndex(of: "PORT") else { return false }
    let rest = words[(port + 1)...]
    guard let number = rest.first else { return environment[name]?.contains("://") == true }
    return number.utf8.allSatisfy { (0x30...0x39).contains($0) } && !number.isEmpty
      && rest.dropFirst().first.map { ["TCP", "UDP", "SCTP"].contains($0) } == true
  }
}
