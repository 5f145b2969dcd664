internal import Answers
internal import ArgumentParser
internal import Glibc
internal import NIOCore

/// `weir events`: what happened at the running server.
struct EventsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "events", abstract: "Print what happened at the running server, or follow it.",
    discussion: """
      Examples:
        weir events
        weir events --stream cam --kind 'recording.*'
        weir events --follow --json
        weir events --follow --since 1795689000123
      """)

  @Flag(name: [.short, .long], help: "Go on with what happens from now on; with --since, from there.")
  var follow = false
  @Option(help: ArgumentHelp("Only what follows this event; 0 for all that is kept.", valueName: "id"))
  var since: Int64?
  @Option(help: ArgumentHelp("Only this kind: stream.started or recording.*; may be repeated.", valueName: "kind"))
  var kind: [String] = []
  @Option(help: ArgumentHelp("Only those of this stream: a name or cam-*.", valueName: "name")) var stream: String?
  @Option(help: ArgumentHelp("How many, without --follow: at most 1000.", valueName: "count")) var limit = 100
  @OptionGroup var server: ControlOptions

  func run() async throws {
    var query = since.map { ["after=\($0)"] } ?? []
    if !kind.isEmpty { query.append("kind=\(kind.map(ControlClient.escaped).joined(separator: ","))") }
    if let stream { query.append("stream=\(ControlClient.escaped(stream))") }
    guard !follow else {
      return try await follow("/api/v1/events" + (query.isEmpty ? "" : "?\(query.joined(separator: "&"))"))
    }
    query.append("limit=\(limit)")
    try await server.run("/api/v1/events?\(query.joined(separator: "&"))", for: EventsAnswer.self) { page in
      if let gap = page.gap { Self.tell(gap) }
      if page.more { LogOutput.standardError.write("weir: there are more; go on with --since \(page.next)\n") }
      var table = TextTable("ID", "TIME", "KIND", "STREAM", "WHO", "DATA")
      for event in page.events { table.add(event.cells) }
      return table.text()
    }
  }

  private func follow(_ target: String) async throws {
    let client = try server.client()
    var last = since
    let end = try await client.follow(target) { message in
      if message.kind == "gap" {
        if let gap = JSONText.decode(EventsAnswer.Gap.self, ByteBuffer(string: message.data)) { Self.tell(gap) }
        return .more
      }
      guard let event = JSONText.decode(EventAnswer.self, ByteBuffer(string: message.data)) else {
        throw ControlClient.Failure(description: "the server is of another version: its event cannot be read")
      }
      last = event.id
      return Self.write((server.json ? message.data : event.text) + "\n") ? .more : .enough
    }
    guard end == .more else { return }
    throw ControlClient.Failure(
      description: "the server ended the stream of events" + (last.map { "; go on with --since \($0)" } ?? ""))
  }

  /// Each event is printed at once, also into a pipe. False when nobody reads it any longer.
  private static func write(_ text: String) -> Bool {
    var bytes = Array(text.utf8)[...]
    while !bytes.isEmpty {
      let count = bytes.withUnsafeBytes { Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return false }
      bytes = bytes.dropFirst(count)
    }
    return true
  }

  private static func tell(_ gap: EventsAnswer.Gap) {
    LogOutput.standardError.write("weir: events between \(gap.after) and \(gap.from) are not kept any more\n")
  }
}
