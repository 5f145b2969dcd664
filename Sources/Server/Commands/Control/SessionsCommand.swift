internal import Answers
internal import ArgumentParser
internal import NIOHTTP1

/// `weir sessions`: who is connected to the running server.
struct SessionsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sessions", abstract: "List the publishers and viewers of the running server, or disconnect one.",
    discussion: """
      Viewers of HLS and DASH are only counted: weir streams has their numbers.

      Examples:
        weir sessions --stream cam
        weir sessions end p-1x2k9f-3
      """,
    subcommands: [List.self, End.self], defaultSubcommand: List.self)

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "list", abstract: "List them.", discussion: "Example:\n  weir sessions list --json")

    @Option(help: ArgumentHelp("Only those of this stream.", valueName: "name")) var stream: String?
    @OptionGroup var server: ControlOptions

    func run() async throws {
      let query = stream.map { "?stream=\(ControlClient.escaped($0))" } ?? ""
      try await server.runPages("/api/v1/sessions\(query)", for: SessionsAnswer.self) { answer in
        var table = TextTable("ID", "STREAM", "PROTOCOL", "ADDRESS", "SINCE", "BYTES", "SOFTWARE")
        for session in answer.sessions {
          table.add(
            session.id, session.stream, session.protocol, session.address, session.since,
            session.bytes.map(String.init), session.software)
        }
        return table.text()
      }
    }
  }

  struct End: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "end", abstract: "Disconnect a publisher or a viewer. It may return.",
      discussion: "Example:\n  weir sessions end p-1x2k9f-3")

    @Argument(help: "The id, as weir sessions lists it.") var id: String
    @OptionGroup var server: ControlOptions

    func run() async throws {
      try await server.run("/api/v1/sessions/\(ControlClient.escaped(id))", .DELETE, for: SessionAnswer.self) {
        "\($0.id): ended\n"
      }
    }
  }
}
