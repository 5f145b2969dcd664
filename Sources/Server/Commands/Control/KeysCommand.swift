internal import Answers
internal import ArgumentParser
internal import Base
internal import FMP4
internal import NIOHTTP1

/// `weir keys`: the keys with names of the running server.
struct KeysCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "keys", abstract: "List, add and revoke keys of the running server.",
    discussion: """
      The server keeps those that are added in its state folder (--state). Keys that stand in the file under keys: are listed, too,
      those of flags and of streams are not.

      Examples:
        weir keys
        weir keys add laptop --publish 'cam-*' --expires 30d
        weir keys revoke laptop
      """,
    subcommands: [List.self, Add.self, Revoke.self], defaultSubcommand: List.self)

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "list", abstract: "List them, without their texts.", discussion: "Example:\n  weir keys list --json")

    @OptionGroup var server: ControlOptions

    func run() async throws {
      try await server.runPages("/api/v1/keys", for: KeysAnswer.self) { answer in
        var table = TextTable("NAME", "PUBLISH", "WATCH", "RECORD", "ADMIN", "MADE", "EXPIRES")
        for key in answer.keys {
          table.add(
            key.name, Self.words(key.publish), Self.words(key.watch), Self.words(key.record), key.scope,
            key.madeAt ?? "in the file",
            key.isExpired ? "expired" : key.expiresAt)
        }
        return table.text()
      }
    }

    private static func words(_ patterns: [String]) -> String? {
      patterns.isEmpty ? nil : patterns.joined(separator: ",")
    }
  }

  struct Add: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "add", abstract: "Make a key. It is printed once, and kept nowhere as text.",
      discussion: """
        Standard output has the key alone.

        Examples:
          weir keys add laptop --publish 'cam-*' --expires 30d
          weir keys add family --watch garden --watch 'door-*'
          weir keys add console --admin operate
        """)

    @Argument(help: "A name for the key, which lists and logs show.") var name: String
    @Option(help: ArgumentHelp("Streams that it may publish: a name or cam-*; may be repeated.", valueName: "name"))
    var publish: [String] = []
    @Option(help: ArgumentHelp("Streams that it may watch; may be repeated.", valueName: "name"))
    var watch: [String] = []
    @Option(help: ArgumentHelp("Streams whose recording it may start and stop; may be repeated.", valueName: "name"))
    var record: [String] = []
    @Option(help: ArgumentHelp("What it may administer: read, operate or admin.", valueName: "scope"))
    var admin: String?
    @Option(
      help: ArgumentHelp("When it ends: 30d, or 2027-01-31T00:00:00Z; without it, never.", valueName: "time"))
    var expires: String?
    @OptionGroup var server: ControlOptions

    func run() async throws {
      let wanted = KeyRequest(
        name: name, publish: publish, watch: watch, record: record, scope: admin,
        expiresAt: try expires.map { try Self.time($0, now: ClockReading.now().wall) })
      try await server.run("/api/v1/keys", .POST, content: JSONText.encode(wanted), for: KeyAnswer.self) { answer in
        LogOutput.standardError.write("weir: \(LogText.escaped(answer.name)): keep this key, it is not shown again\n")
        if let note = answer.note { LogOutput.standardError.write("weir: warning: \(LogText.escaped(note))\n") }
        return (answer.key ?? "") + "\n"
      }
    }

    /// A time to come, as the API wants it.
    static func time(_ text: String, now: WallTime) throws -> String {
      if UTCText.read(text) != nil { return text }
      do throws(ValueError) {
        let milliseconds = try DurationText.parse(text).wholeMilliseconds
        let (time, isTooLate) = (now.nanoseconds / 1_000_000).addingReportingOverflow(milliseconds)
        guard !isTooLate, (0...latest).contains(time) else {
          throw ValueError("that is too far away", advice: "use some years at most")
        }
        return UTCText(WallTime(nanoseconds: time * 1_000_000)).internet
      } catch {
        throw ValidationError(
          "--expires \(text): \(error.reason); write 30d or 2027-01-31T00:00:00Z")
      }
    }

    /// The last moment that nanoseconds since 1970 can tell is in the year 2262. In milliseconds.
    private static let latest: Int64 = 9_223_000_000_000
  }

  struct Revoke: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "revoke", abstract: "Delete a key. What it publishes or watches ends.",
      discussion: "Example:\n  weir keys revoke laptop")

    @Argument(help: "The name of the key.") var name: String
    @OptionGroup var server: ControlOptions

    func run() async throws {
      try await server.run("/api/v1/keys/\(ControlClient.escaped(name))", .DELETE, for: KeyAnswer.self) {
        "\($0.name): revoked\n"
      }
    }
  }
}
