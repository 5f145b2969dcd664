@testable import RecordingFiles
import Testing

@Suite struct PageCacheTrimmerTests {
  @Test func whatIsOlderThanTheNewestGibibyteIsDroppedOnceInSteps() {
    var trail = PageCacheTrimmer()
    let (kept, step) = (PageCacheTrimmer.kept, PageCacheTrimmer.step)
    #expect(trail.advance(durable: 0) == nil)
    #expect(trail.advance(durable: kept + step - 1) == nil)
    #expect(trail.advance(durable: kept + step) == 0..<step)
    #expect(trail.advance(durable: kept + step) == nil)
    #expect(trail.advance(durable: kept + 2 * step - 1) == nil)
    #expect(trail.advance(durable: kept + 4 * step + 5) == step..<4 * step)
    // It was cut off behind what a disk has taken.
    #expect(trail.advance(durable: kept + step) == nil)
  }
}
