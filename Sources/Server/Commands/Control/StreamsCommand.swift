internal import Answers
internal import ArgumentParser
internal import Base
internal import NIOHTTP1

/// `weir streams`: the streams of the running server.
struct StreamsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "streams", abstract: "List the streams of the running server, show one, or end one.",
    discussion: """
      Examples:
        weir streams
        weir streams cam
        weir streams stop cam
      """,
    subcommands: [Show.self, Stop.self], defaultSubcommand: Show.self)

  struct Show: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "show", abstract: "List the streams, or show one.",
      discussion: "Examples:\n  weir streams\n  weir streams show cam --json")

    @Argument(help: "The name of a stream; without it all are listed.") var name: String?
    @OptionGroup var server: ControlOptions

    func run() async throws {
      guard let name else {
        return try await server.run("/api/v1/streams", for: ServerAnswer.self) { Self.table($0.streams).text() }
      }
      try await server.run("/api/v1/streams/\(ControlClient.escaped(name))", text: StreamsCommand.details)
    }

    static func table(_ streams: [StreamAnswer]) -> TextTable {
      var table = TextTable("NAME", "STATE", "PROTOCOL", "VIEWERS", "KBIT/S", "AGE", "RECORDING", "TRACKS")
      for stream in streams {
        table.add(
          stream.name, stream.state, stream.protocol, "\(stream.viewers)", "\(stream.bitrate / 1000)",
          StreamsCommand.age(stream.ageSeconds), stream.recording?.state,
          stream.tracks.map(StreamsCommand.words).joined(separator: ", "))
      }
      return table
    }
  }

  struct Stop: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "stop", abstract: "Disconnect the publisher of a stream, and end the stream.",
      discussion: "Example:\n  weir streams stop cam")

    @Argument(help: "The name of the stream.") var name: String
    @OptionGroup var server: ControlOptions

    func run() async throws {
      try await server.run("/api/v1/streams/\(ControlClient.escaped(name))", .DELETE, for: StreamAnswer.self) {
        "\($0.name): \($0.state)\n"
      }
    }
  }

  /// One line for each property.
  static func details(_ stream: StreamAnswer) -> String {
    var lines = [
      ("name", stream.name), ("state", stream.state), ("protocol", stream.protocol), ("began", stream.startedAt),
      ("viewers", "\(stream.viewers)"), ("kbit/s", "\(stream.bitrate / 1000)"),
    ]
    lines += stream.tracks.map { ($0.kind, words($0)) }
    if let recording = stream.recording { lines.append(("recording", recording.file ?? recording.state)) }
    lines += stream.warnings.map { ("warning", $0) }
    lines += stream.urls.sorted { $0.key < $1.key }
    return lines.map { name, value in
      "\(name)\(String(repeating: " ", count: max(1, 11 - name.count)))\(LogText.escaped(value))\n"
    }.joined()
  }

  /// `H.264 1920x1080`, `AAC 48000 Hz`.
  static func words(_ track: TrackAnswer) -> String {
    if let width = track.width, let height = track.height { return "\(track.codec) \(width)x\(height)" }
    return track.sampleRate.map { "\(track.codec) \($0) Hz" } ?? track.codec
  }

  /// `2:03:04`.
  static func age(_ seconds: Double) -> String {
    let whole = Int(max(0, min(seconds, 1e9)))
    let (hours, minutes, rest) = (whole / 3600, whole / 60 % 60, whole % 60)
    let pad = { (number: Int) in number < 10 ? "0\(number)" : "\(number)" }
    return "\(hours):\(pad(minutes)):\(pad(rest))"
  }
}
