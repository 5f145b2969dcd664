import Publishing
@testable import Recording
import RecordingFiles
import Support
import Testing

@Suite struct RecordingFileRateTests {
  private static let hour: Int64 = 3_600_000_000_000

  private func name(_ text: String) throws -> StreamName { try #require(StreamName(text)) }

  @Test func aStreamBeginsSoManyFilesInAnHour() throws {
    let rate = RecordingFileRate()
    for number in 0..<3 { try rate.take(name("cam"), limit: 3, now: .at(Int64(number))) }
    #expect(throws: RecordingError.self) { try rate.take(name("cam"), limit: 3, now: 3) }
    try rate.take(name("other"), limit: 3, now: 3)
    try rate.take(name("cam"), limit: 3, now: .at(Self.hour))
    #expect(throws: RecordingError.self) { try rate.take(name("cam"), limit: 3, now: .at(Self.hour)) }
  }

  @Test func whatIsRememberedIsBoundedAndWhoHasManyIsNotForgotten() throws {
    let rate = RecordingFileRate()
    for number in 0..<3 { try rate.take(name("busy"), limit: 3, now: .at(Int64(number))) }
    for number in 0..<20_000 { try rate.take(name("n\(number)"), limit: 3, now: .at(Int64(10 + number))) }
    #expect(rate.remembered <= 4096)
    #expect(throws: RecordingError.self) { try rate.take(name("busy"), limit: 3, now: 30_000) }
  }
}
