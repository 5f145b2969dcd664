internal import Basics
internal import Ingest
internal import Logging

extension ServerConfiguration {
  /// Parses and checks everything that was given.
  init(loading sources: SettingSources) throws(ConfigurationError) {
    try sources.checkVariables()
    let loader = SettingLoader(sources)
    http = try loader.required(.http, ListenAddress.init(parsing:))
    https = try loader.optional(.https, ListenAddress.init(parsing:))
    rtmp = try loader.required(.rtmp, ListenAddress.init(parsing:))
    rtmps = try loader.optional(.rtmps, ListenAddress.init(parsing:))
    tls = try loader.tlsFiles()
    minimumTLS = try loader.required(.tlsMin, WordList.parse)
    publicURL = try loader.optional(.publicURL, PublicURL.init(parsing:))
    self.sources = try loader.sourceSpecifications()
    sourcesBegin = try loader.sourceBeginning()
    publishKeys = try loader.publishKeys()
    reconnectWindow = try loader.duration(.reconnectWindow, Limits.reconnectWindow)
    partDuration = try loader.duration(.partDuration, Limits.partDuration)
    segmentDuration = try loader.duration(.segmentDuration, Limits.segmentDuration)
    targetDuration = try loader.required(.targetDuration, TargetDuration.init(parsing:))
    hlsLayout = try loader.required(.hlsLayout, WordList.parse)
    partAddressing = try loader.required(.partAddressing, WordList.parse)
    ladders = try loader.ladders()
    sounds = try loader.sounds()
    window = try loader.duration(.window, Limits.window)
    rewind = try loader.optional(.rewind) { text throws(ValueError) in
      try SettingLoader.duration(text, Limits.rewind)
    }
    maxStreams = try loader.count(.maxStreams, Limits.maxStreams)
    streamMemory = try loader.optional(.streamMemory, Self.memory)
    mediaMemory = try loader.optional(.mediaMemory, Self.memory)
    maxNames = try loader.count(.maxNames, Limits.maxStreams)
    bounds = PublicationBounds.Limits(
      jumpsPerMinute: try loader.count(.maxJumps, Limits.perMinute),
      changesPerMinute: try loader.count(.maxChanges, Limits.perMinute))
    maxViewers = try loader.count(.maxViewers, Limits.maxViewers)
    pollLimit = try loader.count(.pollLimit, Limits.pollLimit)
    crossOrigin = try loader.crossOrigin()
    trustedProxies = try loader.trustedProxies()
    maxConnectionsPerAddress = try loader.optional(.maxConnectionsPerAddress) { text throws(ValueError) in
      try WholeNumber.parse(text, in: Limits.connectionsPerAddress)
    }
    recording = try loader.recording()
    recordingPolicy = try loader.recordingPolicy()
    keepFree = try loader.required(.keepFree, ByteSizeText.parse)
    retention = try loader.retention()
    adminToken = try loader.secret(.adminToken, whenAbsent: "to let nobody change anything over HTTP")
    segmentsFolder = try loader.optional(.segments, FolderName.parse)
    stateFolder = try loader.optional(.state, FolderName.parse)
    webFiles = try loader.optional(.web, FolderName.parse).map(WebFiles.folder) ?? .embedded
    logLevel = try loader.required(.logLevel, Logger.Level.init(parsing:))
    logFormat = try loader.required(.log, LogFormat.init(parsing:))
    try checkListeners(loader)
    try checkDurations(loader)
  }

  /// A size below which streams would not run.
  private static func memory(_ text: String) throws(ValueError) -> Int64 {
    let bytes = try ByteSizeText.parse(text)
    guard bytes >= Limits.leastMemory else {
      throw ValueError(
        "media need at least \(Limits.leastMemory >> 20) MiB", advice: "use \(Limits.leastMemory >> 20)MiB or more")
    }
    return bytes
  }

  /// What each duration and count may be, inclusive.
  enum Limits {
    static let partDuration = Duration.milliseconds(20)...Duration.seconds(10)
    static let segmentDuration = Duration.milliseconds(100)...Duration.seconds(60)
    static let window = Duration.seconds(1)...Duration.seconds(86_400)
    static let rewind = Duration.seconds(1)...Duration.seconds(7 * 86_400)
    static let reconnectWindow = Duration.zero...Duration.seconds(86_400)
    static let retainDeleted = Duration.zero...Duration.seconds(31_536_000)
    static let retainAge = Duration.seconds(1)...Duration.seconds(3_153_600_000)
    static let leastMemory: Int64 = 16 << 20
    static let maxStreams = 1...100_000
    static let perMinute = 1...100_000
    static let maxViewers = 1...1_000_000
    static let recordSync = Duration.zero...Duration.seconds(60)
    static let recordDuration = Duration.seconds(1)...Duration.seconds(366 * 86_400)
    static let pollLimit = 0...1_000_000
    static let connectionsPerAddress = 1...1_000_000
    static let targetSeconds = 1...120
    /// A window holds at least this many segments, or a player that joins finds too little
    /// (RFC 8216 §6.2.2: three target durations).
    static let segmentsInWindow = 3
  }

  private func checkListeners(_ loader: SettingLoader) throws(ConfigurationError) {
    for (setting, address) in [(Setting.https, https), (.rtmps, rtmps)] {
      guard let address, tls == nil else { continue }
      throw loader.error(setting, "\(address)", "needs a certificate", "add --tls-cert FILE and --tls-key FILE")
    }
    if tls != nil, https == nil, rtmps == nil {
      throw loader.error(.tlsCert, nil, "no listener uses the certificate", "add --https :8443 or --rtmps :1936")
    }
    var taken: [(Setting, ListenAddress)] = []
    for case (let setting, let address?) in [(Setting.http, http), (.https, https), (.rtmp, rtmp), (.rtmps, rtmps)]
    where address.port != 0 {
      if let (other, _) = taken.first(where: { $0.1 == address }) {
        throw loader.error(setting, "\(address)", "\(other.flag) listens there already", "choose another port")
      }
      taken.append((setting, address))
    }
  }

  private func checkDurations(_ loader: SettingLoader) throws(ConfigurationError) {
    let segment = DurationText.text(segmentDuration)
    guard partDuration < segmentDuration else {
      throw loader.error(
        .partDuration, DurationText.text(partDuration), "a part must be shorter than a segment (\(segment))",
        "shorten it or lengthen --segment-duration")
    }
    let least = segmentDuration * Limits.segmentsInWindow
    guard window >= least else {
      throw loader.error(
        .window, DurationText.text(window), "the window must hold \(Limits.segmentsInWindow) segments of \(segment)",
        "use at least \(DurationText.text(least))")
    }
    if case .seconds(let seconds) = targetDuration, Duration.seconds(seconds) < segmentDuration {
      throw loader.error(
        .targetDuration, "\(seconds)", "no segment may last longer than it, and segments aim at \(segment)",
        "use \(segmentDuration.wholeSecondsRoundedUp) or more, or auto")
    }
  }
}

extension ServerConfiguration.TargetDuration {
  /// Parses `auto` or a whole number of seconds (`6`, `6s`).
  init(parsing text: String) throws(ValueError) {
    if text == "auto" {
      self = .automatic
      return
    }
    let digits = text.hasSuffix("s") ? String(text.dropLast()) : text
    self = .seconds(try WholeNumber.parse(digits, in: ServerConfiguration.Limits.targetSeconds, orElse: "auto"))
  }
}

extension Logger.Level {
  /// Parses swift-log's names of the levels.
  init(parsing text: String) throws(ValueError) {
    guard let level = Logger.Level(rawValue: text) else {
      let names = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")
      throw ValueError("there is no such level", advice: "use one of \(names)")
    }
    self = level
  }
}

extension Duration {
  /// Whole seconds, rounded up.
  fileprivate var wholeSecondsRoundedUp: Int64 { (wholeMilliseconds &+ 999) / 1000 }
}
