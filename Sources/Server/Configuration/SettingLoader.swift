internal import Basics
internal import HTTP
internal import Ingest

/// Reads single settings, and puts what is wrong with one into one line that names the flag or variable it came from.
struct SettingLoader {
  let sources: SettingSources

  init(_ sources: SettingSources) {
    self.sources = sources
  }

  /// A setting that has a default.
  func required<Value>(
    _ setting: Setting, _ parse: (String) throws(ValueError) -> Value
  ) throws(ConfigurationError) -> Value {
    guard let value = try optional(setting, parse) else {
      throw error(setting, nil, "is not set", "give it a value")
    }
    return value
  }

  /// A setting that may be absent.
  func optional<Value>(
    _ setting: Setting, _ parse: (String) throws(ValueError) -> Value
  ) throws(ConfigurationError) -> Value? {
    guard let given = sources.one(setting) else { return nil }
    return try value(given, parse)
  }

  func duration(_ setting: Setting, _ range: ClosedRange<Duration>) throws(ConfigurationError) -> Duration {
    try required(setting) { text throws(ValueError) in try Self.duration(text, range) }
  }

  func count(_ setting: Setting, _ range: ClosedRange<Int>) throws(ConfigurationError) -> Int {
    try required(setting) { text throws(ValueError) in try WholeNumber.parse(text, in: range) }
  }

  static func duration(_ text: String, _ range: ClosedRange<Duration>) throws(ValueError) -> Duration {
    let duration = try DurationText.parse(text)
    guard range.contains(duration) else {
      let (least, most) = (DurationText.text(range.lowerBound), DurationText.text(range.upperBound))
      throw ValueError("it is outside \(least) to \(most)", advice: "choose a duration in that range")
    }
    return duration
  }

  func sourceSpecifications() throws(ConfigurationError) -> [SourceSpecification] {
    var specifications: [SourceSpecification] = []
    func add(_ given: SettingSources.Given<String>, _ parse: (String) throws(ValueError) -> SourceSpecification)
      throws(ConfigurationError)
    {
      let specification = try value(given, parse)
      guard !specifications.contains(where: { $0.name == specification.name }) else {
        throw Self.error(given, "the name \"\(specification.name)\" is given twice", "give each source its own name")
      }
      specifications.append(specification)
    }
    let encoder = try required(.encoder) { text throws(ValueError) in try EncodingOptions.encoder("encoder", text) }
    for given in sources.all(.source) {
      try add(given) { text throws(ValueError) in try SourceSpecification(parsing: text, encoder: encoder) }
    }
    for given in sources.all(.testPattern) {
      try add(given) { text throws(ValueError) in
        SourceSpecification(name: try StreamName(parsing: text), kind: .test)
      }
    }
    return specifications
  }

  /// Who has them begin off the air needs a token to put them on it.
  func sourceBeginning() throws(ConfigurationError) -> ServerConfiguration.SourceBeginning {
    guard let given = sources.one(.offAir), try value(given, Switch.parse) == .on else { return .onAir }
    guard sources.one(.adminToken) != nil else {
      throw Self.error(given, "nobody could put them on air", "add \(Setting.adminToken.flag) TOKEN")
    }
    return .offAir
  }

  /// An empty token is refused wherever it comes from: it would quietly change who may do what.
  func secret(_ setting: Setting, whenAbsent: String) throws(ConfigurationError) -> Secret? {
    guard !sources.hasEmptyVariable(setting), sources.one(setting)?.value.isEmpty != true else {
      throw error(setting, nil, "the token is empty", "give a token, or leave the setting out \(whenAbsent)")
    }
    return sources.one(setting).map { Secret($0.value) }
  }

  /// How long recordings are kept, and how many.
  func retention() throws(ConfigurationError) -> RetentionSettings {
    func nanoseconds(_ duration: Duration) -> Int64 { duration.wholeMilliseconds.multipliedClamped(by: 1_000_000) }
    var settings = RetentionSettings()
    settings.maximumAge = try optional(.retainAge) { text throws(ValueError) in
      try Self.duration(text, ServerConfiguration.Limits.retainAge)
    }.map(nanoseconds)
    settings.maximumBytes = try optional(.retainSize, ByteSizeText.parse)
    settings.maximumBytesPerStream = try optional(.retainStreamSize, ByteSizeText.parse)
    settings.whenFull = try required(.whenFull, WordList.parse)
    settings.undoTime = nanoseconds(try duration(.retainDeleted, ServerConfiguration.Limits.retainDeleted))
    return settings
  }

  func tlsFiles() throws(ConfigurationError) -> TLSFiles? {
    switch (sources.one(.tlsCert)?.value, sources.one(.tlsKey)?.value) {
    case (nil, nil): return nil
    case (let certificate?, let key?):
      return TLSFiles(
        certificate: certificate, key: key, certificateOrigin: Setting.tlsCert.origin, keyOrigin: Setting.tlsKey.origin)
    case (.some, nil): throw error(.tlsCert, nil, "a certificate needs its private key", "add --tls-key FILE")
    case (nil, .some): throw error(.tlsKey, nil, "a private key needs its certificate", "add --tls-cert FILE")
    }
  }

  /// `--record` and `--no-record` contradict each other on a command line, where both are meant; between places the flag
  /// wins. Among variables, which are put together from several files, off wins: a unit names a folder for those who want
  /// recordings.
  func recording() throws(ConfigurationError) -> ServerConfiguration.Recording {
    let folder = sources.one(.record)
    if let off = sources.one(.noRecord), try value(off, Switch.parse) == .on {
      switch (off.origin, folder?.origin) {
      case (.flag, .flag):
        throw Self.error(off, "\(Setting.record.flag) asks for the opposite", "keep one of the two")
      case (.variable, .flag): break
      default: return .off
      }
    }
    return .folder(try required(.record, FolderName.parse))
  }

  func value<Value>(
    _ given: SettingSources.Given<String>, _ parse: (String) throws(ValueError) -> Value
  ) throws(ConfigurationError) -> Value {
    do {
      return try parse(given.value)
    } catch {
      throw Self.error(given, error.reason, error.advice)
    }
  }

  /// The error that blames a setting, at the place its value came from; the value is left out where it is nil.
  func error(_ setting: Setting, _ value: String?, _ reason: String, _ advice: String) -> ConfigurationError {
    let origin = sources.one(setting)?.origin ?? .standard(setting)
    return ConfigurationError(.usage, Self.line(origin, value, reason, advice))
  }

  static func error(
    _ given: SettingSources.Given<String>, _ reason: String, _ advice: String
  ) -> ConfigurationError {
    ConfigurationError(.usage, line(given.origin, given.value, reason, advice))
  }

  private static func line(
    _ origin: SettingSources.Origin, _ value: String?, _ reason: String, _ advice: String
  ) -> String {
    let separator = if case .variable = origin { "=" } else { " " }
    let subject = value.map { "\(origin)\(separator)\(LogText.escaped($0))" } ?? "\(origin)"
    return "\(subject): \(reason); \(advice)"
  }
}

extension Int64 {
  fileprivate func multipliedClamped(by other: Int64) -> Int64 {
    let (product, overflow) = multipliedReportingOverflow(by: other)
    return overflow ? .max : product
  }
}
