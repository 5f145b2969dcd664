internal import ArgumentParser
internal import Base
internal import Control
internal import LocalSources
internal import Publishing
internal import Settings

extension SettingSources {
  /// The same sources with what is kept in the state folder.
  fileprivate func withState(of configuration: ServerConfiguration) throws -> SettingSources {
    guard let folder = configuration.stateFolder else { return self }
    let kept: ControlDatabase.StreamTexts?
    do {
      kept = try ControlDatabase.settings(in: folder)
    } catch {
      throw ConfigurationError(
        .configuration,
        "\(LogText.escaped(folder))/\(ControlDatabase.fileName) cannot be read: \(error); run this as the user of the server"
      )
    }
    return taking(kept?.texts ?? [:], publicURL: configuration.publicURL).sources
  }
}

/// `weir config`: checks a configuration file, shows what holds, writes a sample and the schema, and has a running server read
/// its file again.
struct ConfigCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "config", abstract: "Check a configuration file, show what holds, write a sample.",
    discussion: """
      Examples:
        weir config init > weir.yaml
        weir config check weir.yaml
        weir config show --config weir.yaml --stream cam-1
        weir config schema > weir.schema.json
        weir config reload
      """,
    subcommands: [Check.self, Show.self, Init.self, Schema.self, ReloadCommand.self])

  struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "check", abstract: "Read a configuration file as weir serve would, and tell its mistakes.",
      discussion: "Example:\n  weir config check /etc/weir/weir.yaml")

    @Argument(help: "The file.") var file: String

    func run() throws {
      let sources = try SettingSources(flags: ["config": [file]]).readingFile()
      _ = try ServerConfiguration(loading: sources)
      let count = sources.file?.entries.count ?? 0
      print("\(LogText.escaped(file)): ok" + (count == 0 ? "" : ", \(count) names and patterns of streams"))
    }
  }

  struct Show: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "show", abstract: "Print what holds, and where each value comes from.",
      discussion: """
        Takes the flags and variables of weir serve. With --state it also shows what was set over the API. Keys and tokens are
        not printed.

        Example:
          weir config show --config weir.yaml --stream cam-1
        """)

    @OptionGroup var settings: SettingFlags
    @Option(help: ArgumentHelp("What holds for this stream.", valueName: "name")) var stream: String?

    func run() throws {
      let sources = try SettingSources(flags: settings.given, environment: Arguments.environment()).readingFile()
      let configuration = try ServerConfiguration(loading: sources)
      let shown = try sources.withState(of: configuration)
      let name: StreamName?
      do throws(ValueError) {
        name = try stream.map { text throws(ValueError) in try StreamName(parsing: text) }
      } catch {
        throw ValidationError("\(error.reason). \(error.advice)")
      }
      print(try ConfigListing(shown, stream: name).text, terminator: "")
    }
  }

  struct Init: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "init", abstract: "Print a sample of a configuration file: all settings with their defaults.",
      discussion: "Example:\n  weir config init > weir.yaml")

    func run() { print(ConfigSample.text, terminator: "") }
  }

  struct Schema: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "schema", abstract: "Print the JSON Schema of the configuration file, for editors.",
      discussion: "Example:\n  weir config schema > weir.schema.json")

    func run() { print(ConfigSchema.text) }
  }
}
