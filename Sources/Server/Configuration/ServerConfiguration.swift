internal import Basics
internal import HTTP
internal import Ingest
internal import Logging

/// Everything `weir serve` is told, parsed and checked. How flags, environment and defaults become one of these is
/// in `ServerConfiguration+Loading.swift`; what this machine has to say about it in `ServerConfiguration+Places.swift`.
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
  /// How long a stream waits for its publisher to come back.
  var reconnectWindow: Duration

  /// What weir's own sources do when it starts.
  enum SourceBeginning: Sendable, Hashable {
    case onAir
    /// They are captured, and offered to nobody.
    case offAir
  }

  // MARK: Cutting

  /// What a fragment aims at; shorter than a segment.
  var partDuration: Duration
  /// What a segment aims at.
  var segmentDuration: Duration
  var targetDuration: TargetDuration
  var hlsLayout: StreamSettings.HLSLayout
  var partAddressing: StreamSettings.PartAddressing
  /// Which streams are also made in smaller sizes.
  var ladders: Ladders
  /// Whose sound is also made in another codec.
  var sounds: Sounds
  /// How much of a stream is kept in memory for viewers; at least three segments.
  var window: Duration
  /// How far back viewers can go beyond the window, on disk; nil for no further.
  var rewind: Duration?

  /// What EXT-X-TARGETDURATION promises.
  enum TargetDuration: Sendable, Hashable {
    /// Measured: the longer of the segment duration and the distance between key frames.
    case automatic
    /// Whole seconds, promised from the first part on.
    case seconds(Int)
  }

  // MARK: Bounds of publishers

  /// Streams at a time.
  var maxStreams: Int
  /// Bytes of media that one stream may keep in memory; nil for a quarter of what the process may have.
  var streamMemory: Int64?
  /// Bytes of media that all streams may keep in memory; nil for half of what the process may have.
  var mediaMemory: Int64?
  /// New names that an address without a key may take at once; a quarter of them more each minute.
  var maxNames: Int
  /// What a stream's timeline and parameters may do in a minute.
  var bounds: PublicationBounds.Limits

  // MARK: Viewers and disk

  var maxViewers: Int
  /// Whose pages may read recordings and the API; streams anybody's.
  var crossOrigin: CrossOrigin
  /// Proxies that tell whose requests and publications they pass on.
  var trustedProxies: TrustedProxies
  /// Connections that one address may have at a time, of viewers and of publishers each; nil for any number.
  var maxConnectionsPerAddress: Int?
  /// Repeats of an unchanged playlist that one connection may ask for, a second; 0 for no limit.
  var pollLimit: Int
  var recording: Recording
  var recordingPolicy: RecordingPolicy
  /// Recording stops while the disk has fewer free bytes than this.
  var keepFree: Int64
  var retention: RetentionSettings
  /// The token that admits to changing things over HTTP; nil lets nobody.
  var adminToken: Secret?
  /// The folder that segments and playlists are also written to; nil for none.
  var segmentsFolder: String?
  /// The folder in which a process leaves its streams to the next one; nil where none goes on with them.
  var stateFolder: String?
  var webFiles: WebFiles

  /// Whether streams are recorded, and where.
  enum Recording: Sendable, Hashable {
    case off
    case folder(String)
  }

  /// Where the pages come from.
  enum WebFiles: Sendable, Hashable {
    case embedded
    /// A folder that is read anew on each request, for work on the pages.
    case folder(String)
  }

  // MARK: Log

  var logLevel: Logger.Level
  var logFormat: LogFormat
}
