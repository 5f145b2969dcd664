import Storage
@testable import Streams
import StreamSupport
import Testing

@Suite struct DroppedSegmentsTests {
  @Test func anEpochsSegmentsCountWhenItsWindowDropsThem() throws {
    let leftovers = LeftoverBudget(limit: .max)
    var driver = EpochDriver()
    driver.epoch = Epoch(
      id: "e", settings: StreamSettings(), store: SegmentStore(name: "weir-store-test", leftovers: leftovers))
    try driver.publish(seconds: 12)
    // Events bring segments to recorders, which bound what they keep themselves.
    var epoch = driver.epoch
    driver = EpochDriver()
    let bytes = epoch.window.segments.filter(\.isComplete).map(\.memory.byteCount)
    let readers = epoch.window.segments.filter(\.isComplete).map(\.memory.file)
    try #require(bytes.count > 3)
    #expect(leftovers.bytes == 0)
    _ = epoch.shrink(to: 0)
    #expect(leftovers.bytes == bytes.dropLast().reduce(0, +))
    epoch = driver.epoch
    #expect(leftovers.bytes == bytes.reduce(0, +))
    withExtendedLifetime(readers) {}
  }
}
