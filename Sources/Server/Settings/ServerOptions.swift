/// All settings of `weir serve`.
package struct ServerOptions: SettingGroup {
  let file = FileOptions()
  let listeners = ListenerOptions()
  let sources = SourceOptions()
  let streams = StreamOptions()
  let publishers = PublisherOptions()
  let access = AccessOptions()
  let srt = SRTOptions()
  let http = HTTPOptions()
  let jwt = JWTOptions()
  let recordings = RecordingOptions()
  let log = LogOptions()

  package static let all = ServerOptions().declarations
  /// Those that the configuration file may have.
  static let inFile = all.filter { $0.path != nil }
  /// The groups, in the order of the help.
  package static let groups = Mirror(reflecting: ServerOptions()).children.compactMap {
    $0.value as? any TitledSettings
  }
}

/// The file with all other settings.
struct FileOptions: TitledSettings {
  static let title = "Configuration file"

  let config = Setting(
    "config", at: nil, .file, "Configuration file (YAML or JSON); with a - before it, it may be missing.")
}
