internal import ArgumentParser
internal import Base
internal import Settings

/// Finds a mistyped command before the parser takes it for an argument of `weir serve`.
enum CommandNames {
  /// Throws if the first words name no command: `weir servee`, `weir record lst`, `weir help recrod`.
  static func check(_ arguments: [String]) throws(ConfigurationError) {
    var command: any ParsableCommand.Type = RootCommand.self
    var path = [Version.name]
    for (index, word) in arguments.enumerated() {
      guard !word.hasPrefix("-") else { return }
      if index == 0, word == "help" { continue }
      let subcommands = command.configuration.subcommands
      guard !subcommands.isEmpty else { return }
      guard let next = subcommands.first(where: { $0.configuration.commandName == word }) else {
        // What follows is an argument of the subcommand that is left out: weir streams cam.
        if path.count > 1, command.configuration.defaultSubcommand != nil { return }
        throw unknown(word, below: path, among: subcommands)
      }
      command = next
      path.append(word)
    }
  }

  /// The same words with `help` in front, where it stands behind a command that has commands of its own: `weir record help clip`.
  static func helpInFront(_ arguments: [String]) -> [String] {
    var command: any ParsableCommand.Type = RootCommand.self
    for (index, word) in arguments.enumerated() {
      let subcommands = command.configuration.subcommands
      if index > 0, word == "help", !subcommands.isEmpty {
        return ["help"] + arguments[..<index] + arguments[(index + 1)...]
      }
      guard let next = subcommands.first(where: { $0.configuration.commandName == word }) else { return arguments }
      command = next
    }
    return arguments
  }

  private static func unknown(
    _ word: String, below path: [String], among subcommands: [any ParsableCommand.Type]
  ) -> ConfigurationError {
    let names = subcommands.map { $0.configuration }.filter { $0.shouldDisplay }.compactMap { $0.commandName }
    let parent = path.joined(separator: " ")
    let advice =
      Suggestion.nearest(to: word, among: names + ["help"]).map { "did you mean \(parent) \($0)?" }
      ?? "there are \(names.joined(separator: ", ")); see \(parent) --help"
    return ConfigurationError(.usage, "\(parent) \(LogText.escaped(word)): there is no such command; \(advice)")
  }
}
