internal import Answers
internal import ArgumentParser
internal import Settings

/// The flags of all settings, made from their declarations (`ServerOptions`), a section of the help for each title.
/// ArgumentParser finds the flags of a type through a mirror.
struct SettingFlags: ParsableArguments, CustomReflectable {
  /// The texts of the command line, in order.
  var given: [SettingName: [String]] = [:]

  init() {}

  init(from decoder: any Decoder) throws {
    let groups = try decoder.container(keyedBy: AnyKey.self)
    for group in ServerOptions.groups { try take(group, from: groups) }
  }

  private mutating func take<Group: TitledSettings>(
    _ group: Group, from groups: KeyedDecodingContainer<AnyKey>
  ) throws {
    let flags = try groups.decode(OptionGroup<GroupFlags<Group>>.self, forKey: AnyKey(of: Group.self)).wrappedValue
    given.merge(flags.given) { $1 }
  }

  var customMirror: Mirror {
    Mirror(self, children: ServerOptions.groups.map { Self.section($0) })
  }

  private static func section<Group: TitledSettings>(_ group: Group) -> Mirror.Child {
    (AnyKey(of: Group.self).stringValue, OptionGroup<GroupFlags<Group>>(title: Group.title))
  }
}

/// The flags of one group of settings.
private struct GroupFlags<Group: TitledSettings>: ParsableArguments, CustomReflectable {
  var given: [SettingName: [String]] = [:]

  init() {}

  init(from decoder: any Decoder) throws {
    let flags = try decoder.container(keyedBy: AnyKey.self)
    for setting in Group().declarations {
      let key = AnyKey(stringValue: setting.name.text)
      let texts =
        setting.form == nil
        ? try flags.decode(Flag<Bool>.self, forKey: key).wrappedValue ? ["1"] : []
        : try flags.decode(Option<[String]>.self, forKey: key).wrappedValue
      if !texts.isEmpty { given[setting.name] = texts }
    }
  }

  var customMirror: Mirror {
    Mirror(
      self, children: Group().declarations.map { setting -> Mirror.Child in (setting.name.text, Self.flag(setting)) })
  }

  private static func flag(_ setting: any SettingDeclaration) -> Any {
    let standard = setting.standard.map { "default \($0); " } ?? ""
    let help = ArgumentHelp(
      "\(setting.summary)\(advice(setting)) (\(standard)\(setting.name.variable))", valueName: setting.form)
    let name = NameSpecification.customLong(setting.name.text)
    if setting.form == nil { return Flag(wrappedValue: false, name: name, help: help) }
    return Option(wrappedValue: [String](), name: name, help: help, completion: completion(of: setting))
  }

  /// Where a secret is given better than here.
  private static func advice(_ setting: any SettingDeclaration) -> String {
    guard setting.isSecret else { return "" }
    let file = setting.path.map { ", or \($0) of the file" } ?? ""
    return " On a command line every user of the machine can read it: better \(setting.name.variable)\(file)."
  }

  /// What a shell offers: words, files or folders.
  private static func completion(of setting: any SettingDeclaration) -> CompletionKind {
    switch (setting.values, setting.form) {
    case (.words(let words), _): .list(words)
    case (_, "file"): .file()
    case (_, "folder"): .directory
    default: .default
    }
  }
}

extension AnyKey {
  /// The key of a group's flags.
  fileprivate init(of group: any TitledSettings.Type) { self.init(stringValue: "\(group)") }
}
