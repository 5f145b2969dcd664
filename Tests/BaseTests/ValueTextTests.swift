import Base
import Testing

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
    ("0", 0), ("0.0", 0), ("512B", 512), ("1KB", 1000), ("1.5GB", 1_500_000_000), ("1GiB", 1 << 30),
    ("1gb", 1_000_000_000),
    ("2T", 2_000_000_000_000),
  ])
  func sizesAreExact(text: String, expected: Int64) throws {
    #expect(try ByteSizeText.parse(text) == expected)
  }

  @Test func aSizeWithoutAUnitSaysWhatToWrite() {
    let error = #expect(throws: ValueError.self) { try ByteSizeText.parse("10") }
    #expect(error == ValueError("a size needs a unit", advice: "write 10MB or 10GB, or 10B for bytes"))
  }

  @Test(arguments: [
    ("00:01:00", 60_000_000_000), ("1:30", 90_000_000_000), ("0:00", 0), ("2:00:00.5", 7_200_500_000_000),
    ("100:00:59.999999999", 360_059_999_999_999), ("90:00", 5_400_000_000_000),
  ])
  func placesAreReadAsPlayersShowThem(text: String, expected: Int64) {
    #expect(ClockText.nanoseconds(text) == expected)
  }

  @Test(arguments: [
    "", ":", "1", "1:", ":1", "1:60", "1:60:00", "1:2:3:4", "-1:00", "1:-1", "1:1s", "1:001", "123456:00", "1:٣",
  ])
  func otherPlacesAreRefused(text: String) {
    #expect(ClockText.nanoseconds(text) == nil)
  }

  @Test(arguments: ["", "GB", "10", "0.5", "-1GB", "1XB", "1 GB", "9223372036854775807KB", "0x10"])
  func otherSizesAreRefused(text: String) {
    #expect(throws: ValueError.self) { try ByteSizeText.parse(text) }
  }
}
