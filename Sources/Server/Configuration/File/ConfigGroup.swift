internal import Basics

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

  /// All that a file may say.
  static let root = ConfigGroup(path: "", ServerOptions.inFile.map { ($0.path?.keys[...] ?? [], $0) })
  /// What it may say of a stream.
  static let stream: ConfigGroup = {
    guard case .group(let streams)? = root[SettingPath.streams],
      case .group(let stream)? = streams[StreamPattern.all.description]
    else { return ConfigGroup(path: SettingPath.streams, []) }
    return stream
  }()

  private init(path: String, _ settings: [(keys: ArraySlice<String>, setting: any SettingDeclaration)]) {
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

  /// What an unknown key probably means.
  func advice(for key: String) -> String {
    if let near = Suggestion.nearest(to: key, among: members.map(\.key)) { return "did you mean \(near)?" }
    let plain = Self.plain(key)
    let same = ServerOptions.inFile.first { setting in
      Self.plain(setting.name.text) == plain || setting.path?.keys.last.map(Self.plain) == plain
    }
    if let same, let path = same.path { return "did you mean \(path)?" }
    return "there are \(members.map(\.key).joined(separator: ", "))"
  }

  /// `part-duration`, `part_duration` and `partDuration` are the same.
  private static func plain(_ key: String) -> String {
    key.lowercased().filter { $0 != "-" && $0 != "_" }
  }
}
