internal import Answers
internal import ArgumentParser
internal import NIOCore
internal import NIOHTTP1

/// `weir recordings`: the recordings of the running server.
struct RecordingsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "recordings", abstract: "List, start, stop and delete recordings of the running server.",
    discussion: """
      weir record works on recordings without a server.

      Examples:
        weir recordings --stream cam
        weir recordings start cam --name Interview --tracks audio --duration 90m
        weir recordings stop cam
        weir recordings delete cam/20261121T072410Z.mp4
      """,
    subcommands: [
      List.self, Start.self, Stop.self, Cancel.self, Delete.self, Restore.self, Protect.self, Unprotect.self,
    ],
    defaultSubcommand: List.self)

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "list", abstract: "List them, the newest first.",
      discussion: "Example:\n  weir recordings list --state running")

    @Option(help: ArgumentHelp("Only this stream's.", valueName: "name")) var stream: String?
    @Option(help: ArgumentHelp("Only running, completed, failed or deleted ones.", valueName: "state"))
    var state: String?
    @Option(help: ArgumentHelp("How many.", valueName: "count")) var limit = 100
    @OptionGroup var server: ControlOptions

    func run() async throws {
      let given = [("stream", stream), ("state", state)].compactMap { name, value in
        value.map { "&\(name)=\(ControlClient.escaped($0))" }
      }
      try await server.run("/api/v1/recordings?limit=\(limit)\(given.joined())", for: RecordingsAnswer.self) { page in
        var table = TextTable("STREAM", "FILE", "STATE", "STARTED", "SECONDS", "BYTES")
        for entry in page.recordings {
          table.add(
            entry.stream, entry.file, entry.deletedAt == nil ? entry.state : "deleted", entry.startedAt,
            "\(Int(entry.seconds.rounded()))", "\(entry.bytes)")
        }
        return table.text()
      }
    }
  }

  struct Start: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "start", abstract: "Record a live stream.",
      discussion: """
        Examples:
          weir recordings start cam
          weir recordings start cam --name Interview --tracks audio --duration 90m --size 2GB
        """)

    @Argument(help: "The name of the stream.") var stream: String
    @Option(help: ArgumentHelp("Name of the recording and of its download.", valueName: "text")) var name: String?
    @Option(help: ArgumentHelp("all, audio, video, or numbers of tracks: 1,3.", valueName: "tracks"))
    var tracks: String?
    @Option(help: ArgumentHelp("End it after this time: 90m.", valueName: "duration")) var duration: String?
    @Option(help: ArgumentHelp("End it at this size: 2GB.", valueName: "size")) var size: String?
    @OptionGroup var server: ControlOptions

    func run() async throws {
      let order = RecordingOrderText(name: name, tracks: tracks, duration: duration, size: size)
      try await RecordingsCommand.control(stream, "start", server, content: order.json)
    }
  }

  struct Stop: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "stop", abstract: "End the recording of a stream; the stream goes on.",
      discussion: "Example:\n  weir recordings stop cam")

    @Argument(help: "The name of the stream.") var name: String
    @OptionGroup var server: ControlOptions

    func run() async throws { try await RecordingsCommand.control(name, "stop", server) }
  }

  struct Cancel: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "cancel", abstract: "End the recording of a stream, and drop its file.",
      discussion: "Example:\n  weir recordings cancel cam")

    @Argument(help: "The name of the stream.") var name: String
    @OptionGroup var server: ControlOptions

    func run() async throws { try await RecordingsCommand.control(name, "cancel", server) }
  }

  struct Delete: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "delete", abstract: "Move a recording aside, to be deleted later.",
      discussion: "Example:\n  weir recordings delete cam/20261121T072410Z.mp4")

    @Argument(help: "The recording, as STREAM/FILE.") var recording: String
    @OptionGroup var server: ControlOptions

    func run() async throws { try await RecordingsCommand.change(.DELETE, recording, "", server) }
  }

  struct Restore: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "restore", abstract: "Take a deletion back.",
      discussion: "Example:\n  weir recordings restore cam/20261121T072410Z.mp4")

    @Argument(help: "The recording, as STREAM/FILE.") var recording: String
    @OptionGroup var server: ControlOptions

    func run() async throws { try await RecordingsCommand.change(.POST, recording, "/restore", server) }
  }

  struct Protect: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "protect", abstract: "Keep a recording from being deleted.",
      discussion: "Example:\n  weir recordings protect cam/20261121T072410Z.mp4")

    @Argument(help: "The recording, as STREAM/FILE.") var recording: String
    @OptionGroup var server: ControlOptions

    func run() async throws { try await RecordingsCommand.change(.POST, recording, "/protect", server) }
  }

  struct Unprotect: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "unprotect", abstract: "Take the protection of a recording back.",
      discussion: "Example:\n  weir recordings unprotect cam/20261121T072410Z.mp4")

    @Argument(help: "The recording, as STREAM/FILE.") var recording: String
    @OptionGroup var server: ControlOptions

    func run() async throws { try await RecordingsCommand.change(.POST, recording, "/unprotect", server) }
  }

  private static func control(
    _ name: String, _ word: String, _ server: ControlOptions, content: ByteBuffer? = nil
  ) async throws {
    let target = "/api/v1/streams/\(ControlClient.escaped(name))/recording/\(word)"
    try await server.run(target, .POST, content: content, for: RecordingStateAnswer.self) { recording in
      "\(recording.state)\(recording.file.map { " " + $0 } ?? "")\n"
    }
  }

  private static func change(
    _ method: HTTPMethod, _ recording: String, _ action: String, _ server: ControlOptions
  ) async throws {
    let parts = recording.split(separator: "/").map(String.init)
    guard parts.count == 2 else { throw ValidationError("\(recording) is not a recording; write STREAM/FILE") }
    let target = "/api/v1/recordings/\(ControlClient.escaped(parts[0]))/\(ControlClient.escaped(parts[1]))\(action)"
    try await server.run(target, method, for: EntryAnswer.self) { entry in
      "\(entry.stream)/\(entry.file): \(entry.restorableUntil.map { "deleted, can be restored until \($0)" } ?? entry.state)\n"
    }
  }
}
