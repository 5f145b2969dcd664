internal import ArgumentParser

/// The flags of all settings, made from their declarations (`ServerOptions`). ArgumentParser finds the flags of a type through a
/// mirror.
struct SettingFlags: ParsableArguments, CustomReflectable {
  /// The texts of the command line, in order.
  var given: [SettingName: [String]] = [:]

  init() {}

  init(from decoder: any Decoder) throws {
    let flags = try decoder.container(keyedBy: Key.self)
    for setting in ServerOptions.all {
      let key = Key(stringValue: setting.name.text)
      let texts =
        setting.form == nil
        ? try flags.decode(Flag<Bool>.self, forKey: key).wrappedValue ? ["1"] : []
        : try flags.decode(Option<[String]>.self, forKey: key).wrappedValue
      if !texts.isEmpty { given[setting.name] = texts }
    }
  }

  var customMirror: Mirror {
    Mirror(self, children: ServerOptions.all.map { setting -> Mirror.Child in (setting.name.text, Self.flag(setting)) })
  }

  private static func flag(_ setting: any SettingDeclaration) -> Any {
    let standard = setting.standard.map { "default \($0); " } ?? ""
    let help = ArgumentHelp(
      "\(setting.summary) (\(standard)\(setting.name.variable))", valueName: setting.form)
    let name = NameSpecification.customLong(setting.name.text)
    if setting.form == nil { return Flag(wrappedValue: false, name: name, help: help) }
    return Option(wrappedValue: [String](), name: name, help: help)
  }

  private struct Key: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }
}
