import Glibc
import Logging
@testable import Server
import Settings
import Support
import Testing

@Suite struct LogTests {
  /// What a logger wrote, through a pipe.
  private func lines(_ format: LogFormat, _ use: (Logger) -> Void) throws -> String {
    var ends: [Int32] = [0, 0]
    try #require(pipe(&ends) == 0)
    defer { close(ends[0]) }
    let output = LogOutput(descriptor: ends[1])
    use(
      Logger(label: "rtmp") { label in
        ConsoleLogHandler(label: label, threshold: LogThreshold(.debug), format: format, output: output) {
          1_795_262_584_567_000_000
        }
      })
    close(ends[1])
    var bytes = [UInt8](repeating: 0, count: 65536)
    let count = read(ends[0], &bytes, bytes.count)
    return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
  }

  @Test func textNamesTimeLevelComponentStreamAndTheRestSorted() throws {
    let text = try lines(.text) { logger in
      logger.notice("connected", metadata: ["stream": "studio", "b": "2", "a": "1"])
      logger.trace("too quiet")
    }
    #expect(text == "12:03:04 notice rtmp studio: connected a=1 b=2\n")
  }

  @Test func jsonIsOneObjectALine() throws {
    let text = try lines(.json) { logger in
      logger.error("said \"no\"\n", metadata: ["stream": "studio", "a": "\\"])
    }
    #expect(
      text == #"{"time":"2026-11-21T12:03:04.567Z","level":"error","component":"rtmp","stream":"studio","#
        + #""message":"said \"no\"\u000a","a":"\\"}"# + "\n")
  }

  @Test func peersCannotForgeLines() throws {
    let text = try lines(.text) { $0.info("name \n12:00:00 critical forged\u{1b}[2J\u{202e}") }
    #expect(text.filter { $0 == "\n" }.count == 1)
    #expect(text.contains("\\n12:00:00 critical forged\\u{1B}[2J\\u{202E}"))
  }

  @Test func aFullPipeDropsLinesAndTellsHowMany() throws {
    var ends: [Int32] = [0, 0]
    try #require(pipe(&ends) == 0)
    defer {
      close(ends[0])
      close(ends[1])
    }
    let output = LogOutput(descriptor: ends[1])
    let line = String(repeating: "x", count: LogOutput.maximumLineBytes - 1) + "\n"
    for _ in 0..<20 { output.write(line) }  // A pipe holds 16 of them.
    var bytes = [UInt8](repeating: 0, count: 1 << 17)
    #expect(read(ends[0], &bytes, bytes.count) == 16 * LogOutput.maximumLineBytes)
    output.write("next\n")
    let count = read(ends[0], &bytes, bytes.count)
    #expect(
      String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
        == "weir: 4 log lines were dropped, because the reader of the log was too slow\nnext\n")
  }

  @Test func whatIsSaidOfDroppedLinesIsWrittenAsTheOthersAre() throws {
    var ends: [Int32] = [0, 0]
    try #require(pipe(&ends) == 0)
    defer {
      close(ends[0])
      close(ends[1])
    }
    let output = LogOutput(descriptor: ends[1])
    let logger = Logger(label: "weir") { label in
      ConsoleLogHandler(label: label, threshold: LogThreshold(.info), format: .json, output: output) {
        1_795_262_584_567_000_000
      }
    }
    // Of one text only a few are written at all.
    for letter in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN" {
      logger.info("\(String(repeating: letter, count: 4000))")
    }
    var bytes = [UInt8](repeating: 0, count: 1 << 17)
    try #require(read(ends[0], &bytes, bytes.count) > 0)
    logger.info("next")
    let count = read(ends[0], &bytes, bytes.count)
    let lines = String(decoding: bytes.prefix(max(0, count)), as: UTF8.self).split(separator: "\n")
    #expect(lines.count == 2)
    #expect(lines.allSatisfy { $0.hasPrefix(#"{"time":"2026-11-21T12:03:04.567Z","level":"#) && $0.hasSuffix("}") })
    #expect(lines.first?.contains("log lines were dropped") == true)
  }
}
