internal import Settings

/// The flags of `weir serve` where they are plain: `--name value`, `--name=value` and switches. ArgumentParser makes and looks
/// through a description of each flag first, which was a quarter of a start's processor time. Help, mistakes and whatever else is
/// left to it. For what is plain, both give the same (`PlainFlagsTests`).
enum PlainFlags {
  /// The texts by setting, in order; nil if any word is not plain, or another command is meant.
  static func read(_ arguments: [String]) -> [SettingName: [String]]? {
    guard arguments.first == "serve" else { return nil }
    var given: [SettingName: [String]] = [:]
    var words = arguments.dropFirst()
    while let word = words.popFirst() {
      let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard let setting = ServerOptions.all.first(where: { $0.name.flag == parts[0] }) else { return nil }
      if setting.form == nil {
        guard parts.count == 1 else { return nil }
        given[setting.name] = ["1"]
        continue
      }
      // What begins with a dash may be the next flag.
      guard let value = parts.count == 2 ? String(parts[1]) : words.popFirst(), !value.isEmpty, !value.hasPrefix("-")
      else { return nil }
      given[setting.name, default: []].append(value)
    }
    return given
  }
}
