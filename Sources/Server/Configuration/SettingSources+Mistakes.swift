internal import Basics

/// What somebody set who may believe that it counts.
extension SettingSources {
  /// A variable without effect, and the flag that is heard instead.
  struct Overruled: Sendable, Hashable, CustomStringConvertible {
    var variable: String
    var flag: String

    var description: String { "\(variable) has no effect: \(flag) on the command line says otherwise" }
  }

  /// Variables that say something else than the command line, which wins.
  var overruled: [Overruled] {
    Setting.allCases.compactMap { setting in
      guard let text = variable(setting), !text.isEmpty else { return nil }
      if let given = flags(setting) {
        return given == [text] || given.joined(separator: setting.separator) == text
          ? nil : Overruled(variable: setting.variable, flag: setting.flag)
      }
      switch setting {
      case .record where flags(.noRecord) != nil:
        return Overruled(variable: setting.variable, flag: Setting.noRecord.flag)
      case .noRecord where flags(.record) != nil && (try? Switch.parse(text)) == .on:
        return Overruled(variable: setting.variable, flag: Setting.record.flag)
      default: return nil
      }
    }
  }

  /// A variable that looks like a setting and is none: a slip of the keyboard could open a server to everybody.
  func checkVariables() throws(ConfigurationError) {
    let known = Setting.allCases.map(\.variable)
    guard let unknown = unknownVariables.first else { return }
    let advice =
      Suggestion.nearest(to: unknown, among: known).map { "write \($0), or unset it" }
      ?? "unset it; weir serve --help has all settings"
    throw ConfigurationError(.usage, "\(LogText.escaped(unknown)): weir has no such setting; \(advice)")
  }

  /// Variables that begin as settings of weir do and are none of them.
  var unknownVariables: [String] {
    let known = Set(Setting.allCases.map(\.variable))
    return names.filter { name in
      name.hasPrefix(Setting.variablePrefix) && !known.contains(name) && !isOfService(name)
    }.sorted()
  }

  /// What Kubernetes, and Docker with links, puts into every container for a service called weir, or weir-something:
  /// `WEIR_SERVICE_HOST`, `WEIR_SERVICE_PORT_HTTP`, `WEIR_PORT=tcp://10.0.0.1:80`, `WEIR_PORT_80_TCP_ADDR`.
  private func isOfService(_ name: String) -> Bool {
    let words = name.split(separator: "_", omittingEmptySubsequences: false)
    if name.hasSuffix("_SERVICE_HOST") || name.hasSuffix("_SERVICE_PORT") || name.contains("_SERVICE_PORT_") {
      return true
    }
    // The first one: WEIR_PORT_80_TCP_PORT has two.
    guard let port = words.firstIndex(of: "PORT") else { return false }
    let rest = words[(port + 1)...]
    guard let number = rest.first else { return value(of: name)?.contains("://") == true }
    return number.utf8.allSatisfy { (0x30...0x39).contains($0) } && !number.isEmpty
      && rest.dropFirst().first.map { ["TCP", "UDP", "SCTP"].contains($0) } == true
  }
}

extension Setting {
  /// What separates several texts in a variable, where the flag may be repeated.
  fileprivate var separator: String { self == .ladder || self == .audioCodec ? ";" : "," }
}
