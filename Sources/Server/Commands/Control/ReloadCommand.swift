internal import Answers
internal import ArgumentParser
internal import NIOHTTP1

/// `weir config reload`: the running server reads its configuration file again.
struct ReloadCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reload", abstract: "Have the running server read its file again; print what that changed.",
    discussion: """
      A file with a mistake changes nothing: the mistake is printed, and the exit status is 1.

      Example:
        weir config reload
      """)

  @OptionGroup var server: ControlOptions

  func run() async throws {
    try await server.run("/api/v1/settings/reload", .POST, for: ReloadAnswer.self) { answer in
      let lines = [
        ("changed", answer.changed), ("from the next epoch or recording on", answer.fromNextEpoch),
        ("needs a restart", answer.needRestart),
      ].filter { !$0.1.isEmpty }
      guard !lines.isEmpty else { return "nothing changed\n" }
      return lines.flatMap { words, places in places.map { "\(words): \($0)\n" } }.joined()
    }
  }
}
