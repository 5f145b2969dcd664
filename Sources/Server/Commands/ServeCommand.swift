internal import ArgumentParser
internal import Basics
internal import Logging

/// `weir serve`: the flags as texts. `ServerConfiguration` parses them, together with the environment.
struct ServeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "serve", abstract: "Run the server.", discussion: examples)

  static let examples = """
    Examples:
      weir serve --test-pattern demo
          A demo stream without a camera: http://localhost:8080/watch/demo
      weir serve --publish-key SECRET --record /srv/recordings
          Publish to rtmp://HOST/live, stream key cam?key=SECRET
      weir serve --source cam=v4l2:/dev/video0,alsa:default
          A camera and a microphone of this machine; weir devices lists them
      weir serve --https :8443 --tls-cert cert.pem --tls-key key.pem
      WEIR_HTTP=:80 WEIR_PUBLISH_KEY=SECRET weir serve --no-record

    Each flag has an environment twin: WEIR_PART_DURATION is
    --part-duration. A flag beats its variable, and the log says so; a WEIR_
    variable that is no setting is an error. Every user of the machine can
    read a key on the command line; WEIR_PUBLISH_KEY keeps it to yourself.
    """

  @Option(help: help(.http, "Address for pages, playlists and media.", "addr")) var http: String?
  @Option(help: help(.https, "The same over TLS.", "addr")) var https: String?
  @Option(help: help(.rtmp, "Address for RTMP publishers.", "addr")) var rtmp: String?
  @Option(help: help(.rtmps, "The same over TLS.", "addr")) var rtmps: String?
  @Option(help: help(.tlsCert, "Certificate chain (PEM) for HTTPS and RTMPS.", "file")) var tlsCert: String?
  @Option(help: help(.tlsKey, "Its private key (PEM).", "file")) var tlsKey: String?
  @Option(help: help(.tlsMin, "The oldest TLS of RTMPS: 1.0 or 1.1 for old encoders, 1.2, 1.3.", "version"))
  var tlsMin: String?
  @Option(help: help(.publicURL, "Where viewers find this server: https://live.example.com.", "url"))
  var publicUrl: String?
  @Option(
    help: help(
      .source, "A source that weir runs itself: test, file:PATH, v4l2:DEVICE, alsa:DEVICE; may be repeated.",
      "name=kind"))
  var source: [String] = []
  @Option(help: help(.testPattern, "The same as --source NAME=test; may be repeated.", "name"))
  var testPattern: [String] = []
  @Flag(help: help(.offAir, "Begin with these sources off the air: captured, and offered to nobody."))
  var offAir = false
  @Option(help: help(.encoder, "Encoder of cameras' pictures, as weir devices lists them.", "auto|name"))
  var encoder: String?
  @Option(
    help: help(
      .publishKey, "Key that publishers must give, of one name or of all; may be repeated; none lets anybody publish.",
      "[name=]key"))
  var publishKey: [String] = []
  @Option(help: help(.partDuration, "Length of a fragment.", "duration")) var partDuration: String?
  @Option(help: help(.segmentDuration, "Length of a segment.", "duration")) var segmentDuration: String?
  @Option(help: help(.targetDuration, "EXT-X-TARGETDURATION: auto, or seconds.", "auto|seconds"))
  var targetDuration: String?
  @Option(help: help(.hlsLayout, "Picture and sound in one HLS segment, or each in its own.", "interleaved|separate"))
  var hlsLayout: String?
  @Option(help: help(.partAddressing, "Parts by addresses of their own, or as ranges of segments.", "url|byterange"))
  var partAddressing: String?
  @Option(
    help: help(.ladder, "Make smaller pictures: 720p@3M,360p@800k, of all streams or of one.", "[name=]rungs"))
  var ladder: [String] = []
  @Option(
    help: help(
      .audioCodec, "Offer the sound in another codec, too: aac or opus, of all streams or of one.",
      "[name=]source|aac|opus"))
  var audioCodec: [String] = []
  @Option(help: help(.window, "Media kept in memory; viewers can go back half of it.", "duration")) var window: String?
  @Option(help: help(.rewind, "How far viewers can go back on disk: recordings, or a spool.", "duration"))
  var rewind: String?
  @Option(help: help(.reconnectWindow, "How long a stream waits for a lost publisher.", "duration"))
  var reconnectWindow: String?
  @Option(help: help(.maxStreams, "More streams are refused.", "count")) var maxStreams: String?
  @Option(
    help: help(.streamMemory, "Media of one stream kept in memory, at most; a quarter of it where not set.", "size"))
  var streamMemory: String?
  @Option(help: help(.mediaMemory, "Media of all streams kept in memory, at most; half of it where not set.", "size"))
  var mediaMemory: String?
  @Option(
    help: help(
      .maxNames, "New names that an address without a key may take at once; a quarter of them more a minute.", "count"))
  var maxNames: String?
  @Option(help: help(.maxJumps, "Jumps of timestamps a minute; a publisher with more is ended.", "count"))
  var maxJumps: String?
  @Option(help: help(.maxChanges, "Changes of codec or picture size a minute, likewise.", "count"))
  var maxChanges: String?
  @Option(help: help(.maxViewers, "More viewers get 503 with Retry-After.", "count")) var maxViewers: String?
  @Option(
    help: help(.pollLimit, "One playlist, unchanged, on one connection: more a second get 429; 0 for any.", "count"))
  var pollLimit: String?
  @Option(
    help: help(
      .trustedProxy, "Proxies that tell whose requests they pass on (X-Forwarded-For; PROXY protocol of RTMP).", "CIDR")
  )
  var trustedProxy: [String] = []
  @Option(
    help: help(.maxConnectionsPerAddress, "More of one address are closed, of HTTP and of RTMP each.", "count"))
  var maxConnectionsPerAddress: String?
  @Option(
    help: help(.cors, "Origins whose pages may read recordings and the API; streams any may read.", "origin|*"))
  var cors: [String] = []
  @Option(help: help(.record, "Folder for recordings.", "folder")) var record: String?
  @Flag(help: help(.noRecord, "Record nothing.")) var noRecord = false
  @Option(help: help(.recordMode, "Record streams by themselves, or when asked over the API.", "auto|manual"))
  var recordMode: String?
  @Option(
    help: help(
      .recordName, "Names of recordings: {stream}/, then {stream}, {time} or {year} … {second} (UTC).", "pattern"))
  var recordName: String?
  @Option(help: help(.recordSync, "How much of a recording a power failure may take.", "duration"))
  var recordSync: String?
  @Option(help: help(.recordSplit, "Another file at each whole 1h, 30m … (UTC), or each:1h after so much.", "duration"))
  var recordSplit: String?
  @Option(help: help(.recordMaxDuration, "A recording is complete after so much.", "duration"))
  var recordMaxDuration: String?
  @Option(help: help(.recordMaxSize, "A recording is complete when it is so large.", "size"))
  var recordMaxSize: String?
  @Option(
    help: help(.recordMaxFiles, "Files that a stream may begin in an hour, beside those of --record-split.", "count"))
  var recordMaxFiles: String?
  @Option(help: help(.keepFree, "Recording stops below this much free disk.", "size")) var keepFree: String?
  @Option(help: help(.retainAge, "Recordings go this long after they ended.", "duration")) var retainAge: String?
  @Option(help: help(.retainSize, "The oldest recordings go beyond this size in all.", "size")) var retainSize: String?
  @Option(help: help(.retainStreamSize, "The same for each stream's own.", "size")) var retainStreamSize: String?
  @Option(help: help(.retainDeleted, "How long a deleted recording can be restored.", "duration"))
  var retainDeleted: String?
  @Option(help: help(.whenFull, "At --keep-free: stop recording, or let the oldest recordings go.", "stop|evict"))
  var whenFull: String?
  @Option(help: help(.adminToken, "Token that admits to changing recordings over HTTP; none lets nobody.", "token"))
  var adminToken: String?
  @Option(help: help(.segments, "Folder to write rolling segments and playlists to.", "folder"))
  var segments: String?
  @Option(help: help(.state, "Folder that lets streams go on where weir stops, or dies, and starts again.", "folder"))
  var state: String?
  @Option(help: help(.logLevel, "trace, debug, info, notice, warning, error or critical.", "level"))
  var logLevel: String?
  @Option(help: help(.log, "text or json.", "format")) var log: String?
  @Option(help: help(.web, "Serve the pages from a folder, to work on them.", "folder")) var web: String?

  func run() async throws {
    try await serve(flags, openingPage: false)
  }

  /// - Parameters:
  ///   - flags: what the command line gave, by setting.
  ///   - openingPage: whether the first source's page is opened in a browser.
  ///   - defaults: what is meant where neither flag nor variable says anything.
  func serve(
    _ flags: [Setting: [String]], defaults: [Setting: String] = [:], openingPage: Bool
  ) async throws {
    let sources = SettingSources(flags: flags, environment: Arguments.environment(), defaults: defaults)
    do {
      try await serve(sources, openingPage: openingPage)
    } catch let error as ConfigurationError where sources.asksForJSONLog {
      // A program that reads the log as JSON must be able to read this line, too.
      let logger = Logger(label: Version.name) {
        ConsoleLogHandler(label: $0, level: .critical, format: .json, output: .standardError)
      }
      logger.critical("\(error)")
      throw ExitCode(error.exitCode)
    }
  }

  private func serve(_ sources: SettingSources, openingPage: Bool) async throws {
    let configuration = try ServerConfiguration(loading: sources)
    let (level, format) = (configuration.logLevel, configuration.logFormat)
    let rate = LogRate()
    LoggingSystem.bootstrap { label in
      ConsoleLogHandler(label: label, level: level, format: format, output: .standardError, rate: rate)
    }
    let logger = Logger(label: Version.name)
    for overruled in sources.overruled { logger.warning("\(overruled)") }
    try configuration.prepareFolders()
    let inherited = try InheritedSockets(environment: Arguments.environment())
    try await WeirServer(configuration: configuration, inherited: inherited, logger: logger)
      .run(openingPage: openingPage)
  }

  /// What the command line gave, by setting.
  var flags: [Setting: [String]] {
    let single: [(Setting, String?)] = [
      (.http, http), (.https, https), (.rtmp, rtmp), (.rtmps, rtmps), (.tlsCert, tlsCert), (.tlsKey, tlsKey),
      (.publicURL, publicUrl),
      (.offAir, offAir ? "1" : nil), (.encoder, encoder), (.partDuration, partDuration),
      (.segmentDuration, segmentDuration),
      (.targetDuration, targetDuration), (.hlsLayout, hlsLayout), (.partAddressing, partAddressing),
      (.window, window), (.rewind, rewind), (.reconnectWindow, reconnectWindow),
      (.maxStreams, maxStreams), (.streamMemory, streamMemory), (.mediaMemory, mediaMemory), (.maxNames, maxNames),
      (.maxJumps, maxJumps), (.maxChanges, maxChanges),
      (.maxViewers, maxViewers), (.pollLimit, pollLimit), (.maxConnectionsPerAddress, maxConnectionsPerAddress),
      (.tlsMin, tlsMin), (.record, record), (.noRecord, noRecord ? "1" : nil),
      (.keepFree, keepFree),
      (.recordMode, recordMode), (.recordName, recordName), (.recordSync, recordSync), (.recordSplit, recordSplit),
      (.recordMaxDuration, recordMaxDuration), (.recordMaxSize, recordMaxSize),
      (.recordMaxFiles, recordMaxFiles),
      (.retainAge, retainAge), (.retainSize, retainSize), (.retainStreamSize, retainStreamSize),
      (.retainDeleted, retainDeleted), (.whenFull, whenFull), (.adminToken, adminToken),
      (.segments, segments), (.state, state), (.logLevel, logLevel), (.log, log), (.web, web),
    ]
    var result: [Setting: [String]] = [
      .source: source, .testPattern: testPattern, .ladder: ladder, .audioCodec: audioCodec,
      .publishKey: publishKey, .trustedProxy: trustedProxy, .cors: cors,
    ]
    for case (let setting, let text?) in single { result[setting] = [text] }
    return result
  }

  /// The help of one setting: the text, its default and its variable.
  private static func help(_ setting: Setting, _ text: String, _ valueName: String? = nil) -> ArgumentHelp {
    let standard = setting.defaultText.map { "default \($0); " } ?? ""
    return ArgumentHelp("\(text) (\(standard)\(setting.variable))", valueName: valueName)
  }
}
