internal import Base
internal import Control

extension ConfigGroup {
  /// All that a file may say.
  static let root = ConfigGroup(path: "", ServerOptions.inFile.map { ($0.path?.keys[...] ?? [], $0) })
  /// What it may say of a stream.
  static let stream: ConfigGroup = {
    guard case .group(let streams)? = root[SettingPath.streams],
      case .group(let stream)? = streams[StreamPattern.all.description]
    else { return ConfigGroup(path: SettingPath.streams, []) }
    return stream
  }()

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
