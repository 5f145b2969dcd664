/// Everything that can be set, once: the flag, its environment twin and the default all follow from the case, so
/// that help, errors and loading cannot drift apart.
enum Setting: String, CaseIterable, Sendable {
  case http
  case https
  case rtmp
  case rtmps
  case tlsCert = "tls-cert"
  case tlsKey = "tls-key"
  case tlsMin = "tls-min"
  case publicURL = "public-url"
  case source
  case testPattern = "test-pattern"
  case offAir = "off-air"
  case encoder
  case publishKey = "publish-key"
  case partDuration = "part-duration"
  case segmentDuration = "segment-duration"
  case targetDuration = "target-duration"
  case hlsLayout = "hls-layout"
  case partAddressing = "part-addressing"
  case ladder
  case audioCodec = "audio-codec"
  case window
  case rewind
  case reconnectWindow = "reconnect-window"
  case maxStreams = "max-streams"
  case streamMemory = "stream-memory"
  case mediaMemory = "media-memory"
  case maxNames = "max-names"
  case maxJumps = "max-jumps"
  case maxChanges = "max-changes"
  case maxViewers = "max-viewers"
  case pollLimit = "poll-limit"
  case cors
  case trustedProxy = "trusted-proxy"
  case maxConnectionsPerAddress = "max-connections-per-address"
  case record
  case noRecord = "no-record"
  case recordMode = "record-mode"
  case recordName = "record-name"
  case recordSync = "record-sync"
  case recordSplit = "record-split"
  case recordMaxDuration = "record-max-duration"
  case recordMaxSize = "record-max-size"
  case recordMaxFiles = "record-max-files"
  case keepFree = "keep-free"
  case retainAge = "retain-age"
  case retainSize = "retain-size"
  case retainStreamSize = "retain-stream-size"
  case retainDeleted = "retain-deleted"
  case whenFull = "when-full"
  case adminToken = "admin-token"
  case segments
  case state
  case logLevel = "log-level"
  case log
  case web

  /// The flag on the command line: `--part-duration`.
  var flag: String { "--" + rawValue }

  /// The environment variable that sets the same: `WEIR_PART_DURATION`.
  var variable: String {
    Self.variablePrefix + String(rawValue.map { $0 == "-" ? "_" : $0 }).uppercased()
  }

  static let variablePrefix = "WEIR_"

  /// Both, for errors.
  var origin: String { "\(flag) or \(variable)" }

  /// The text that is parsed when neither flag nor variable is given; nil where the setting is then off.
  var defaultText: String? {
    switch self {
    case .http: ":8080"
    case .rtmp: ":1935"
    case .tlsMin: "1.2"
    case .encoder: "auto"
    case .partDuration: "200ms"
    case .segmentDuration: "2s"
    case .targetDuration: "auto"
    case .hlsLayout: "interleaved"
    case .partAddressing: "url"
    case .window: "60s"
    case .reconnectWindow: "30s"
    case .maxStreams: "1000"
    case .maxNames: "64"
    case .maxJumps: "120"
    case .maxChanges: "30"
    case .maxViewers: "10000"
    case .pollLimit: "100"
    case .record: "./recordings"
    case .recordMode: "auto"
    case .recordName: "{stream}/{time}"
    case .recordSync: "1s"
    case .recordMaxFiles: "120"
    case .keepFree: "1GB"
    case .retainDeleted: "1h"
    case .whenFull: "stop"
    case .logLevel: "info"
    case .log: "text"
    case .https, .rtmps, .tlsCert, .tlsKey, .publicURL, .source, .testPattern, .offAir, .publishKey, .adminToken,
      .noRecord, .recordSplit, .recordMaxDuration, .recordMaxSize, .retainAge, .retainSize, .retainStreamSize,
      .segments, .state, .streamMemory, .mediaMemory, .cors, .trustedProxy, .maxConnectionsPerAddress, .rewind, .web,
      .ladder, .audioCodec:
      nil
    }
  }
}
