import ArgumentParser
import Testing

@testable import Server

@Suite struct CommandLineTests {
  private func serve(_ arguments: String...) throws -> ServeCommand {
    try #require(try RootCommand.parseAsRoot(arguments) as? ServeCommand)
  }

  @Test func serveIsTheDefaultCommand() throws {
    #expect(try serve("--http", ":1").flags[.http] == [":1"])
    #expect(try serve("serve", "--http=:1").flags[.http] == [":1"])
    #expect(try serve().flags[.http] == nil)
  }

  @Test func everySettingHasAFlagThatReachesIt() throws {
    for setting in Setting.allCases {
      let isSwitch = setting == .noRecord || setting == .offAir
      let arguments = isSwitch ? ["serve", setting.flag] : ["serve", setting.flag, "text"]
      let command = try #require(try RootCommand.parseAsRoot(arguments) as? ServeCommand)
      #expect(command.flags[setting] == [isSwitch ? "1" : "text"], "\(setting.flag)")
    }
  }

  @Test func helpNamesEveryFlagItsVariableAndItsDefault() {
    let help = ServeCommand.helpMessage(columns: 200)
    for setting in Setting.allCases {
      #expect(help.contains(setting.flag))
      #expect(help.contains(setting.variable))
      if let standard = setting.defaultText { #expect(help.contains("default \(standard)")) }
    }
    #expect(help.contains("weir serve --test-pattern demo"))
  }

  @Test func sourcesMayBeRepeated() throws {
    #expect(try serve("--source", "a=test", "--source", "b=test").flags[.source] == ["a=test", "b=test"])
  }

  @Test func argumentsAreReadFromTheKernelWhenTheProcessHasNone() {
    #expect(Arguments.split(Array("weir\0serve\0\0".utf8)) == ["weir", "serve", ""])
    #expect(Arguments.kernelCopy() == CommandLine.arguments)
  }
}
