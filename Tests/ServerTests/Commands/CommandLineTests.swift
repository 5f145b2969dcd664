import ArgumentParser
import FoundationEssentials
@testable import Server
import Settings
import Testing

@Suite struct CommandLineTests {
  private func serve(_ arguments: String...) throws -> ServeCommand {
    try #require(try RootCommand.parseAsRoot(arguments) as? ServeCommand)
  }

  @Test func serveIsTheDefaultCommand() throws {
    #expect(try serve("--http", ":1").settings.given["http"] == [":1"])
    #expect(try serve("serve", "--http=:1").settings.given["http"] == [":1"])
    #expect(try serve().settings.given["http"] == nil)
  }

  @Test func everySettingHasAFlagThatReachesIt() throws {
    for setting in ServerOptions.all {
      let (flag, isSwitch) = (setting.name.flag, setting.form == nil)
      let arguments = isSwitch ? ["serve", flag] : ["serve", flag, "text"]
      let command = try #require(try RootCommand.parseAsRoot(arguments) as? ServeCommand)
      #expect(command.settings.given == [setting.name: [isSwitch ? "1" : "text"]], "\(flag)")
    }
  }

  @Test func noTwoSettingsHaveOneName() {
    #expect(Set(ServerOptions.all.map(\.name)).count == ServerOptions.all.count)
  }

  @Test func helpNamesEveryFlagItsVariableAndItsDefault() {
    let help = ServeCommand.helpMessage(columns: 200)
    for setting in ServerOptions.all {
      #expect(help.contains(setting.name.flag))
      #expect(help.contains(setting.name.variable))
      if let standard = setting.standard { #expect(help.contains("default \(standard)")) }
    }
    #expect(help.contains("weir serve --test-pattern demo"))
  }

  @Test func helpHasASectionForEachTitleInOrder() throws {
    let lines = ServeCommand.helpMessage(columns: 200).split(separator: "\n").map(String.init)
    let titles = ServerOptions.groups.map { type(of: $0).title.uppercased() + ":" }
    let once = titles.enumerated().filter { $0.offset == 0 || titles[$0.offset - 1] != $0.element }.map(\.element)
    #expect(lines.filter { titles.contains($0) } == once)
    let plain = try #require(lines.split(separator: "OPTIONS:", omittingEmptySubsequences: false).last)
    #expect(plain.count > 0 && !plain.contains { $0.contains("WEIR_") }, "a flag stands in no section")
  }

  /// An end-to-end test compares the whole document, and the flags of the other commands.
  @Test func theTablesOfFlagsAreWhatTheHelpSays() throws {
    let rows = Set(try text(of: "docs/flags.md").split(separator: "\n").map(String.init))
    for setting in ServerOptions.all {
      let form = setting.form.map { " <\($0)>" } ?? ""
      let cells = ["`\(setting.name.flag)\(form)`", setting.standard.map { "`\($0)`" } ?? "", setting.summary]
      let row = "| " + cells.map { $0.replacing("|", with: "\\|") }.joined(separator: " | ")
      // The help of a secret goes on with where it is given better.
      #expect(
        rows.contains { $0 == row + " |" || setting.isSecret && $0.hasPrefix(row + " On a command line") },
        "docs/flags.md is stale: run make docs")
    }
  }

  /// A server does not start where a variable is no setting.
  @Test(arguments: ["docs/service.md", "docs/publishing.md", "packaging/systemd/weir.service"])
  func whatDocumentsSaySetsSomething(file: String) throws {
    let known = Set(ServerOptions.all.map(\.name.variable))
    let others: Set = ["WEIR_", "WEIR_SERVICE_HOST", "WEIR_PORT_8080_TCP"]
    for word in try text(of: file).split(whereSeparator: { !$0.isLetter && !$0.isNumber && $0 != "_" })
    where word.hasPrefix("WEIR_") {
      #expect(known.union(others).contains(String(word)), "\(word)")
    }
  }

  private func text(of file: String) throws -> String {
    let folder = "\(#filePath)".split(separator: "/").dropLast(4).joined(separator: "/")
    return try String(contentsOfFile: "/\(folder)/\(file)", encoding: .utf8)
  }

  @Test func sourcesMayBeRepeated() throws {
    #expect(try serve("--source", "a=test", "--source", "b=test").settings.given["source"] == ["a=test", "b=test"])
  }

  @Test func argumentsAreReadFromTheKernelWhenTheProcessHasNone() {
    #expect(Arguments.split(Array("weir\0serve\0\0".utf8)) == ["weir", "serve", ""])
    #expect(Arguments.kernelCopy() == CommandLine.arguments)
  }
}
