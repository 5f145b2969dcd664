import ArgumentParser
@testable import Server
import Settings
import Support
import Testing

/// What is read without ArgumentParser is what ArgumentParser would have read.
@Suite struct PlainFlagsTests {
  private func parsed(_ arguments: [String]) throws -> [SettingName: [String]] {
    try #require(try RootCommand.parseAsRoot(arguments) as? ServeCommand).settings.given
  }

  @Test func everySettingIsReadAlike() throws {
    for setting in ServerOptions.all {
      let flag = setting.name.flag
      let ways =
        setting.form == nil
        ? [[flag], [flag, flag]]
        : [
          [flag, "text"], ["\(flag)=a=b"], [flag, "one", "\(flag)=-two"],
        ] + (isLong ? [["\(flag)=text"], [flag, "a=b"], [flag, "a b"]] : [])
      for words in ways {
        guard let plain = PlainFlags.read(["serve"] + words) else {
          #expect(words.contains { $0.contains("=-") }, "\(words) are plain")
          continue
        }
        #expect(try plain == parsed(["serve"] + words), "\(words)")
      }
    }
  }

  @Test func anyOrderIsReadAlike() throws {
    var numbers = SystemRandomNumberGenerator()
    for _ in 0..<30 {
      let words = (0..<6).flatMap { _ -> [String] in
        guard let setting = ServerOptions.all.randomElement(using: &numbers) else { return [] }
        let flag = setting.name.flag
        guard setting.form != nil else { return [flag] }
        let text = ["serve", "cam=test", "rtmp://host:1/live?a=b", "é", "1"].randomElement(using: &numbers) ?? ""
        return Bool.random(using: &numbers) ? [flag, text] : ["\(flag)=\(text)"]
      }
      #expect(try PlainFlags.read(["serve"] + words) == parsed(["serve"] + words), "\(words)")
    }
    #expect(PlainFlags.read(["serve"]) == [:])
  }

  /// Help, versions, mistakes, and what other commands take.
  @Test(arguments: [
    [], ["--http", ":1"], ["servee"], ["doctor"], ["serve", "--help"], ["serve", "-h"], ["serve", "--version"],
    ["serve", "word"], ["serve", "--"], ["serve", "--", "--http", ":1"], ["serve", "--nothing"], ["serve", "--http"],
    ["serve", "--http="], ["serve", "--http", ""], ["serve", "--http", "--rtmp"], ["serve", "--http", "-1"],
    ["serve", "-http", ":1"], ["serve", "---http", ":1"], ["serve", "--no-record=1"], ["serve", "--no-record", "1"],
    ["serve", "--http", ":1", "word"], ["serve", "--htt", ":1"], ["capture", "--http", ":1"],
  ])
  func theRestIsLeftToArgumentParser(_ arguments: [String]) {
    #expect(PlainFlags.read(arguments) == nil)
  }
}
