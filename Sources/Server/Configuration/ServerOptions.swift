/// All settings of `weir serve`.
struct ServerOptions: SettingGroup {
  let listeners = ListenerOptions()
  let sources = SourceOptions()
  let streams = StreamOptions()
  let publishers = PublisherOptions()
  let http = HTTPOptions()
  let recordings = RecordingOptions()
  let log = LogOptions()

  static let all = ServerOptions().declarations
}
