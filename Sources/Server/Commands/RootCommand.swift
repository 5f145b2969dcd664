internal import API
internal import ArgumentParser
internal import Base
internal import LibAV

/// `weir` itself; runs `serve` if no command is named.
struct RootCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: Version.name,
    abstract: "A live server: publish by RTMP, watch by HLS, DASH and progressive MP4, keep an ordinary MP4.",
    discussion: ServeCommand.examples + "\n\nThe flags: weir serve --help",
    version: Version.textIfAsked,
    subcommands: [
      ServeCommand.self, CaptureCommand.self, RecordCommand.self, DevicesCommand.self, PatternCommand.self,
      DoctorCommand.self, ConfigCommand.self, StreamsCommand.self, SessionsCommand.self, RecordingsCommand.self,
      KeysCommand.self,
      EventsCommand.self, OpenAPICommand.self, VersionCommand.self, TranscodeWorkerCommand.self, SRTWorkerCommand.self,
    ],
    defaultSubcommand: ServeCommand.self)
}

/// `weir version`
struct VersionCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "version", abstract: "Print the version and what it is linked with.",
    discussion: "Example:\n  weir version")

  func run() {
    print(Version.text)
  }
}

/// `weir openapi`
struct OpenAPICommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "openapi", abstract: "Print the description of the API (OpenAPI 3.1).",
    discussion: "Example:\n  weir openapi > weir.openapi.json")

  func run() { print(OpenAPIDocument.text, terminator: "") }
}

extension Version {
  /// Name, release and licence, and the library whose licence applies to the binary as well.
  static var text: String {
    """
    \(name) \(number), Apache License 2.0
    \(CaptureLibrary.failure ?? "linked with \(CaptureLibrary.description)")
    """
  }

  /// The same for `--version`. The parser wants a text at each start; the library that this one names takes longer to load than
  /// all else.
  static var textIfAsked: String { Arguments.ofProcess().contains("--version") ? text : "\(name) \(number)" }
}
