import Base
import FMP4
@testable import Recording
@testable import Settings
import Support
import Testing

@Suite struct RecordingSplitTests {
  @Test func filesAreSplitAtTheClockOrByTheirLength() throws {
    let hour: Int64 = 3_600_000_000_000
    let start: WallTime = 1_795_245_850_000_000_000  // 07:24:10
    let clock = try RecordingSplit(parsing: "1h")
    #expect(clock == .clock(hour))
    let full = start - 850_000_000_000 - 600_000_000_000 + hour  // 08:00:00
    #expect(!clock.isDue(at: full - 1, fileStart: start, seconds: 9999))
    #expect(clock.isDue(at: full, fileStart: start, seconds: 0))
    #expect(!clock.isDue(at: full + 1, fileStart: full, seconds: 9999))
    let length = try RecordingSplit(parsing: "each:90m")
    #expect(length == .length(90 * 60_000_000_000))
    #expect(!length.isDue(at: 0, fileStart: 0, seconds: 5399.9))
    #expect(length.isDue(at: 0, fileStart: 0, seconds: 5400))
    #expect(!RecordingSplit.never.isDue(at: .max, fileStart: 0, seconds: .infinity))
  }

  @Test(arguments: ["7h", "0s", "1", "each:", "each:1ms", "48h", "hourly", "500ms"])
  func splitsThatMakeNoSenseAreRefused(_ text: String) {
    #expect(throws: ValueError.self) { try RecordingSplit(parsing: text) }
  }
}
