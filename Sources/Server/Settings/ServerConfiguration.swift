package import Base
package import Control
package import HTTP
package import LocalSources
package import Logging
package import Publishing
package import RecordingFiles
package import Streams

/// The whole configuration of `weir serve`, parsed and checked, from flags, environment and defaults. The checks against this
/// machine are in `ServerConfiguration+Places.swift`.
package struct ServerConfiguration: Sendable {
  // MARK: Listeners

  package var http: ListenAddress
  package var https: ListenAddress?
  package var rtmp: ListenAddress
  package var rtmps: ListenAddress?
  /// The Unix socket for commands.
  package var control: ControlSocket.Place
  package var srt: ListenAddress?
  package var webRTC: ListenAddress?
  /// Addresses that publishers by WebRTC are told; empty for those of the machine.
  package var webRTCAddresses: [PublicMediaAddress] = []
  /// Servers of STUN and TURN that they are told.
  package var iceServers: [ICEServerText] = []
  /// Set whenever `https` or `rtmps` is.
  package var tls: TLSFiles?
  /// The oldest TLS version of RTMPS; HTTPS has at least 1.2.
  package var minimumTLS: TLSMinimum
  /// The public address of the server, in front of proxies and caches if there are any; nil if not configured.
  package var publicURL: PublicURL?

  // MARK: Publishing

  /// The local sources; no two have the same name.
  package var sources: [SourceSpecification]
  package var sourcesBegin: SourceBeginning
  /// The keys of publishers; without any, every client may publish.
  package var publishKeys: PublishKeys
  /// Keys with names, which stand in the file alone.
  package var keys: [AccessKey]
  /// Whether publishers need a key.
  package var publishers: PublishersRule
  /// Who is asked about publishers; nil for nobody.
  package var callback: AuthorizationCallback.Settings?
  package var nameLimits: NameAllowance.Limits
  /// SRT connections at a time.
  package var srtConnections: Int
  /// The stream of SRT callers whose stream IDs name none; nil if they are refused.
  package var srtDefaultStream: StreamName?
  /// Bytes of media that one stream may keep in memory; nil for a quarter of what the process may have.
  package var streamMemory: Int?
  /// Bytes of media that all streams may keep in memory; nil for half of what the process may have.
  package var mediaMemory: Int?

  /// What the local sources do at start.
  package enum SourceBeginning: Sendable, Hashable {
    case onAir
    /// They are captured but not published.
    case offAir
  }

  // MARK: Streams

  package var streams: StreamProfiles
  /// The folder that segments and playlists are also written to; nil for none.
  package var segmentsFolder: String?
  /// The folder in which a process leaves the state of its streams to the next one; nil for none.
  package var stateFolder: String?

  // MARK: Viewers

  package var maxViewers: Int
  package var httpLimits: HTTPLimits
  /// The origins whose pages may read recordings and the API. Streams may be read by any page.
  package var crossOrigin: CrossOrigin
  /// The origins whose pages may embed the player; `*` stands for all.
  package var embedFrom: [String]
  /// How pages play.
  package var playerDefault: PlayerChoice
  /// Proxies that are trusted to name the clients of their requests and publications.
  package var trustedProxies: TrustedProxies
  /// Further names of this server, for requests over HTTP.
  package var allowedHosts: [String]
  /// The token for changes over HTTP; nil allows none.
  package var adminToken: Secret?
  /// The keys of tokens, and what tokens must state.
  package var jwt: JSONWebTokenSettings
  /// How long a cache may go by what it was told of a token.
  package var viewersRecheck: Duration
  /// The folder that pages are read from, anew on each request; nil for the embedded ones.
  package var webFolder: String?

  // MARK: Recordings

  /// The folder of recordings; nil if nothing is recorded.
  package var recordingsFolder: String?
  /// Recording stops while the disk has fewer free bytes than this.
  package var keepFree: Int64
  package var retention: RetentionSettings

  // MARK: Hooks

  /// Where events are told.
  package var hooks: [HookSettings]

  // MARK: Log

  package var logLevel: Logger.Level
  package var logFormat: LogFormat
}

extension ServerConfiguration {
  /// Parses and checks all settings.
  package init(loading given: SettingSources) throws(ConfigurationError) {
    try given.checkVariables()
    let options = ServerOptions()
    http = try given[options.listeners.http]
    https = try given[options.listeners.https]
    rtmp = try given[options.listeners.rtmp]
    rtmps = try given[options.listeners.rtmps]
    control = try given[options.listeners.control] ?? .standard
    srt = try given[options.listeners.srt]
    webRTC = try given[options.listeners.webRTC]
    webRTCAddresses = try given[options.listeners.webRTCAddress]
    iceServers = try given[options.listeners.iceServers]
    tls = try options.listeners.tls(given)
    minimumTLS = try given[options.listeners.tlsMin]
    publicURL = try given[options.listeners.publicURL]
    sources = try options.sources.specifications(given)
    sourcesBegin = try options.sources.beginning(given, adminToken: options.http.adminToken)
    publishKeys = try PublishKeys(loading: given)
    publishers = try given[options.access.publishers]
    callback = try options.access.callback(given)
    nameLimits = try options.publishers.names(given)
    srtConnections = try given[options.publishers.maxSRTConnections]
    srtDefaultStream = try given[options.publishers.srtDefaultStream]
    streamMemory = try given[options.publishers.streamMemory]
    mediaMemory = try given[options.publishers.mediaMemory]
    streams = try StreamProfiles(loading: given, publicURL: publicURL)
    segmentsFolder = try given[options.streams.segments]
    stateFolder = try given[options.streams.state]
    maxViewers = try given[options.http.maxViewers]
    httpLimits = try options.http.limits(given)
    crossOrigin = try options.http.crossOrigin(given)
    embedFrom = try given[options.http.embedFrom]
    playerDefault = try given[options.http.playerDefault]
    trustedProxies = TrustedProxies(try given[options.http.trustedProxy])
    allowedHosts = try given[options.http.allowedHost]
    adminToken = try given[options.http.adminToken]
    jwt = try options.jwt.settings(given)
    viewersRecheck = try given[options.http.viewersRecheck]
    webFolder = try given[options.http.web]
    recordingsFolder = try options.recordings.folder(given)
    keepFree = try given[options.recordings.keepFree]
    retention = try options.recordings.retention(given)
    hooks = given.file?.hooks.hooks ?? []
    keys = given.file?.keys.keys ?? []
    logLevel = try given[options.log.logLevel]
    logFormat = try given[options.log.log]
    try options.listeners.checkAddresses(given)
  }

  /// Viewers of some stream can go back on disk.
  var canRewind: Bool { streams.all.contains { $0.settings.rewind != nil } }

  /// The names under which HTTP answers, beside those of the certificate. Reads what the machine is called.
  package var hosts: AllowedHosts {
    AllowedHosts(allowedHosts + MachineNames.all() + (publicURL.map { [$0.host] } ?? []))
  }

  /// Number of sinks that keep the files of a stream open, beside its time-shift buffer.
  package var sinksPerStream: Int { [recordingsFolder, segmentsFolder].count { $0 != nil } }
}
