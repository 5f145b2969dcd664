import Testing

@testable import Server

@Suite struct ValueTextTests {
  @Test(arguments: [
    ("200ms", Duration.milliseconds(200)), ("2s", .seconds(2)), ("1.5s", .milliseconds(1500)),
    ("1m", .seconds(60)), ("1h", .seconds(3600)), ("0s", .zero), ("33.366666666ms", .nanoseconds(33_366_666)),
  ])
  func durationsAreExact(text: String, expected: Duration) throws {
    #expect(try DurationText.parse(text) == expected)
  }

  @Test(arguments: ["", "2", "s", "2 s", "-2s", "2w", "1.s", ".5s", "1.2.3s", "9223372036854775807h", "٣s"])
  func otherDurationsAreRefused(text: String) {
    #expect(throws: ValueError.self) { try DurationText.parse(text) }
  }

  @Test(arguments: ["200ms", "2s", "1m", "2h", "90s", "1500ms", "0s"])
  func durationsAreWrittenAsTheyAreRead(text: String) throws {
    #expect(DurationText.text(try DurationText.parse(text)) == text)
  }

  @Test(arguments: [
    ("0", 0), ("512", 512), ("1KB", 1000), ("1.5GB", 1_500_000_000), ("1GiB", 1 << 30), ("1gb", 1_000_000_000),
    ("2T", 2_000_000_000_000),
  ])
  func sizesAreExact(text: String, expected: Int64) throws {
    #expect(try ByteSizeText.parse(text) == expected)
  }

  @Test(arguments: ["", "GB", "-1GB", "1XB", "1 GB", "9223372036854775807KB", "0x10"])
  func otherSizesAreRefused(text: String) {
    #expect(throws: ValueError.self) { try ByteSizeText.parse(text) }
  }
}
