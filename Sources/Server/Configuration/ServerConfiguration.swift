internal import Basics
internal import HTTP
internal import Ingest
internal import Logging

/// Everything `weir serve` is told, parsed and checked: what the option groups make of flags, environment and defaults. What
/// this machine has to say about it is in `ServerConfiguration+Places.swift`.
struct ServerConfiguration: Sendable {
  // MARK: Listeners

  var http: ListenAddress
  var https: ListenAddress?
  var rtmp: ListenAddress
  var rtmps: ListenAddress?
  /// Set whenever `https` or `rtmps` is.
  var tls: TLSFiles?
  /// The oldest TLS of RTMPS; HTTPS has at least 1.2.
  var minimumTLS: TLSMinimum
  /// Where people and players find the server, behind proxies and caches if there are any; nil where nobody said.
  var publicURL: PublicURL?

  // MARK: Publishing

  /// The sources that weir runs itself; no two of one name.
  var sources: [SourceSpecification]
  var sourcesBegin: SourceBeginning
  /// The keys that admit publishers; none lets anybody publish.
  var publishKeys: PublishKeys
  var nameLimits: NameAllowance.Limits
  /// Bytes of media that one stream may keep in memory; nil for a quarter of what the process may have.
  var streamMemory: Int?
  /// Bytes of media that all streams may keep in memory; nil for half of what the process may have.
  var mediaMemory: Int?

  /// What weir's own sources do when it starts.
  enum SourceBeginning: Sendable, Hashable {
    case onAir
    /// They are captured, and offered to nobody.
    case offAir
  }

  // MARK: Streams

  var streamSettings: StreamSettings
  /// Which streams are also made in smaller sizes.
  var ladders: LadderProfiles
  /// Whose audio is also made in another codec.
  var audioProfiles: AudioProfiles
  /// The folder that segments and playlists are also written to; nil for none.
  var segmentsFolder: String?
  /// The folder in which a process leaves its streams to the next one; nil where none goes on with them.
  var stateFolder: String?

  // MARK: Viewers

  var maxViewers: Int
  var httpLimits: HTTPLimits
  /// Whose pages may read recordings and the API; streams anybody's.
  var crossOrigin: CrossOrigin
  /// Proxies that tell whose requests and publications they pass on.
  var trustedProxies: TrustedProxies
  /// The token that admits to changing things over HTTP; nil lets nobody.
  var adminToken: Secret?
  /// The folder that pages are read from, anew on each request; nil for the embedded ones.
  var webFolder: String?

  // MARK: Recordings

  /// Where recordings are; nil where nothing is recorded.
  var recordingsFolder: String?
  var recordingPolicy: RecordingPolicy
  /// Recording stops while the disk has fewer free bytes than this.
  var keepFree: Int64
  var retention: RetentionSettings

  // MARK: Log

  var logLevel: Logger.Level
  var logFormat: LogFormat
}

extension ServerConfiguration {
  /// Parses and checks everything that was given.
  init(loading given: SettingSources) throws(ConfigurationError) {
    try given.checkVariables()
    let options = ServerOptions()
    http = try given[options.listeners.http]
    https = try given[options.listeners.https]
    rtmp = try given[options.listeners.rtmp]
    rtmps = try given[options.listeners.rtmps]
    tls = try options.listeners.tls(given)
    minimumTLS = try given[options.listeners.tlsMin]
    publicURL = try given[options.listeners.publicURL]
    sources = try options.sources.specifications(given)
    sourcesBegin = try options.sources.beginning(given, adminToken: options.http.adminToken)
    publishKeys = try given[options.publishers.publishKey]
    nameLimits = try options.publishers.names(given)
    streamMemory = try given[options.publishers.streamMemory]
    mediaMemory = try given[options.publishers.mediaMemory]
    streamSettings = try options.streams.settings(given)
    streamSettings.publicURL = publicURL
    ladders = try given[options.streams.ladder]
    audioProfiles = try given[options.streams.audioCodec]
    segmentsFolder = try given[options.streams.segments]
    stateFolder = try given[options.streams.state]
    maxViewers = try given[options.http.maxViewers]
    httpLimits = try options.http.limits(given)
    crossOrigin = CrossOrigin(origins: try given[options.http.cors])
    trustedProxies = TrustedProxies(try given[options.http.trustedProxy])
    adminToken = try given[options.http.adminToken]
    webFolder = try given[options.http.web]
    recordingsFolder = try options.recordings.folder(given)
    recordingPolicy = try options.recordings.policy(given)
    keepFree = try given[options.recordings.keepFree]
    retention = try options.recordings.retention(given)
    logLevel = try given[options.log.logLevel]
    logFormat = try given[options.log.log]
    try options.listeners.checkAddresses(given)
  }

  /// Sinks that hold a stream's files open.
  var sinksPerStream: Int {
    [recordingsFolder, segmentsFolder].count { $0 != nil } + (streamSettings.rewind == nil ? 0 : 1)
  }
}
