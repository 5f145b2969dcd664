internal import ArgumentParser
internal import Base
internal import Logging
internal import Settings
internal import Storage

/// `weir serve`: the flags as texts (`SettingFlags`). `ServerConfiguration` parses them, together with the environment.
struct ServeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "serve", abstract: "Run the server.", discussion: examples)

  static let examples = """
    Examples:
      weir serve --test-pattern demo
          A demo stream without a camera: http://localhost:8080/watch/demo
      weir serve --publish-key SECRET --record /srv/recordings
          Publish to rtmp://HOST/live, stream key cam?key=SECRET
      weir serve --srt :8890
          Publish to 'srt://HOST:8890?streamid=cam'
      weir serve --source cam=v4l2:/dev/video0,alsa:default
          A camera and a microphone of this machine; weir devices lists them
      weir serve --https :8443 --tls-cert cert.pem --tls-key key.pem
      WEIR_HTTP=:80 WEIR_PUBLISH_KEY=SECRET weir serve --no-record

    Each flag has an environment twin: WEIR_PART_DURATION is
    --part-duration. A flag beats its variable, and the log says so; a WEIR_
    variable that is no setting is an error. Every user of the machine can
    read a key on the command line; WEIR_PUBLISH_KEY keeps it to yourself.
    """

  @OptionGroup var settings: SettingFlags

  func run() async throws {
    try await Self.serve(settings.given, openingPage: false)
  }

  /// - Parameters:
  ///   - flags: the texts of the command line, by setting.
  ///   - openingPage: whether the first source's page is opened in a browser.
  ///   - defaults: used if neither a flag nor a variable is set.
  static func serve(
    _ flags: [SettingName: [String]], defaults: [SettingName: String] = [:], openingPage: Bool
  ) async throws {
    var sources = SettingSources(flags: flags, environment: Arguments.environment(), defaults: defaults)
    do {
      sources = try sources.readingFile()
      try await serve(sources, openingPage: openingPage)
    } catch let error as ConfigurationError
      where sources.texts(of: LogOptions().log).last?.text == LogFormat.json.rawValue
    {
      // A program that reads the log as JSON must be able to read this line as well.
      let logger = Logger(label: Version.name) {
        ConsoleLogHandler(label: $0, threshold: LogThreshold(.critical), format: .json, output: .standardError)
      }
      logger.critical("\(error)")
      throw ExitCode(error.exitCode)
    }
  }

  private static func serve(_ sources: SettingSources, openingPage: Bool) async throws {
    let configuration = try ServerConfiguration(loading: sources)
    let (level, format) = (configuration.logLevel, configuration.logFormat)
    let (rate, threshold) = (LogRate(), LogThreshold(level))
    LoggingSystem.bootstrap { label in
      ConsoleLogHandler(label: label, threshold: threshold, format: format, output: .standardError, rate: rate)
    }
    let logger = Logger(label: Version.name)
    for overruled in sources.overruled { logger.warning("\(overruled)") }
    if let file = sources.file, file.isPublic, file.hasSecrets {
      let name = LogText.escaped(file.name)
      logger.warning("\(name) has keys, and every user of this machine may read it: chmod 640 \(name)")
    }
    try DescriptorLimit.raiseForServer()
    SQLiteMemory.allocatePagesSingly()
    try configuration.prepareFolders()
    let inherited = try InheritedSockets(environment: Arguments.environment())
    try await WeirServer(
      configuration: configuration, from: sources, inherited: inherited, logger: logger,
      setLogLevel: { threshold.level = $0 }
    ).run(openingPage: openingPage)
  }
}
