/// The groups of settings that a configuration file has, made from the settings' paths.
struct ConfigGroup: Sendable {
  enum Member: Sendable {
    case setting(any SettingDeclaration)
    case group(ConfigGroup)
  }

  /// `recordings.retain`; empty for the whole file.
  let path: String
  /// In the order of the declarations; streams stand last.
  private(set) var members: [(key: String, member: Member)] = []

  init(path: String, _ settings: [(keys: ArraySlice<String>, setting: any SettingDeclaration)]) {
    self.path = path
    for (keys, setting) in settings {
      guard let key = keys.first, self[key] == nil else { continue }
      if keys.count == 1 {
        members.append((key, .setting(setting)))
        continue
      }
      let inner = settings.filter { $0.keys.first == key }.map { (keys: $0.keys.dropFirst(), setting: $0.setting) }
      members.append((key, .group(ConfigGroup(path: path.isEmpty ? key : "\(path).\(key)", inner))))
    }
    if let streams = members.firstIndex(where: { $0.key == SettingPath.streams }) {
      members.append(members.remove(at: streams))
    }
  }

  subscript(key: String) -> Member? { members.first { $0.key == key }?.member }

  /// Its members are names and patterns of streams.
  var isOfStreams: Bool { path == SettingPath.streams }

  /// `listen: …`, for advice.
  var example: String { isOfStreams ? "NAME:" : "\(members.first?.key ?? "a setting"):" }
}
