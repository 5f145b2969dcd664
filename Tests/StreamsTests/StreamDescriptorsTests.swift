import Base
import FMP4
import Logging
import NIOCore
import Publishing
import Storage
@testable import Streams
import Support
import Synchronization
import Testing

@Suite struct StreamDescriptorsTests {
  private func descriptors(_ budget: DescriptorBudget, sinks: Int = 1, sharesMemory: Bool = true) -> StreamDescriptors {
    var made = StreamDescriptors(budget: budget, sinks: sinks)
    made.sharesMemory = sharesMemory
    return made
  }

  /// Viewers may read its media for longer than the stream is known.
  @Test func theDescriptorOfItsMemoryIsGivenBackWhenItIsClosed() throws {
    let budget = DescriptorBudget(limit: 600)
    let descriptors = descriptors(budget)
    let settings = StreamSettings()
    var reservation = descriptors.reserve(settings)
    var memory: SegmentMemory? = try SegmentMemory(in: #require(reservation).store)
    _ = try memory?.append([ByteBuffer(string: "media")])
    #expect(budget.taken.streams == 5)
    reservation = nil
    descriptors.giveBack(settings)
    #expect(budget.taken.streams == 1)
    memory = nil
    #expect(budget.taken.streams == 0)
  }

  @Test func whatDoesNotComeIsGivenBack() throws {
    let budget = DescriptorBudget(limit: 600)
    try #require(descriptors(budget).reserve(StreamSettings())).giveBack()
    #expect(budget.taken.streams == 0)
  }

  /// Where files may not be large each segment has a descriptor.
  @Test func segmentsInFilesOfTheirOwnAreCounted() throws {
    let budget = DescriptorBudget(limit: 600)
    let descriptors = descriptors(budget, sharesMemory: false)
    let settings = StreamSettings()
    #expect(descriptors.count(of: settings) == 1 + 120 + 3)
    #expect(descriptors.capacity(of: settings) == 3)
    var taken: [StreamDescriptors.Reservation] = []
    while let reservation = descriptors.reserve(settings) { taken.append(reservation) }
    #expect(taken.count == 3)
  }

  // MARK: Files of what is over

  /// A recorder whose disk takes its time.
  private final class SlowSink: FragmentSink {
    let isOpen = Mutex(true)
    private let isOver = Mutex(false)

    func receive(_ event: StoredEvent) {
      if case .end = event { isOver.withLock { $0 = true } }
    }

    var isClosing: Bool { isOver.withLock { $0 } && isOpen.withLock { $0 } }
  }

  @Test func filesThatTheDiskHasNotClosedCountWhenTheirStreamIsForgotten() async throws {
    let budget = DescriptorBudget(limit: 600)
    let clock = ManualClock()
    let slow = SlowSink()
    let registry = StreamRegistry(
      settings: { _ in StreamSettings() }, descriptors: budget, sinksPerStream: 1, clock: clock.clock,
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    ) { _, _, _, _ in [slow] }
    let room = budget.streams
    _ = try await registry.admit(try request("cam")).receive(.end(.finished))
    registry.tend()
    #expect(budget.roomForStreams == room - 5 - 3)
    clock.advance(seconds: 3600)
    registry.tend()
    #expect(registry.all.isEmpty)
    #expect(budget.roomForStreams == room - 3)
    slow.isOpen.withLock { $0 = false }
    registry.tend()
    #expect(budget.roomForStreams == room)
  }

  @Test func aStreamWhoseFilesAreNotClosedGetsNoMoreOfThem() async throws {
    let made = Mutex<[SlowSink]>([])
    let registry = StreamRegistry(
      settings: { _ in StreamSettings() }, descriptors: DescriptorBudget(limit: 600), sinksPerStream: 1,
      clock: ManualClock().clock, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    ) { _, _, _, _ in
      let sink = SlowSink()
      made.withLock { $0.append(sink) }
      return [sink]
    }
    func publish() async throws {
      _ = try await registry.admit(try request("cam")).receive(.end(.finished))
    }
    for _ in 0..<10 { try await publish() }
    #expect(made.withLock { $0.count } == ClosingSinks.limit)
    for sink in made.withLock({ $0 }) { sink.isOpen.withLock { $0 = false } }
    try await publish()
    #expect(made.withLock { $0.count } == ClosingSinks.limit + 1)
  }

  // MARK: At admission

  private func registry(_ budget: DescriptorBudget) -> StreamRegistry {
    StreamRegistry(
      settings: { _ in StreamSettings() }, descriptors: budget, clock: ManualClock().clock,
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    ) { _, _, _, _ in [] }
  }

  private func request(_ name: String) throws -> PublishRequest {
    PublishRequest(
      stream: try #require(StreamName(name)), key: nil, protocolName: "RTMP", remoteAddress: "10.0.0.1:5"
    ) { _ in }
  }

  @Test func aPublisherIsAdmittedWhenTheViewersHaveGoneThatWereAskedTo() async throws {
    let budget = DescriptorBudget(limit: 64)
    let registry = registry(budget)
    budget.onShortage { count in
      Task {
        try await Task.sleep(for: .milliseconds(50))
        for _ in 0..<count { budget.giveBackViewer() }
      }
    }
    while budget.takeViewer() {}
    // Of 44 descriptors 32 are viewers'.
    for number in 0..<12 {
      _ = try await registry.admit(try request("cam\(number)"))
      let (viewers, streams) = budget.taken
      #expect(viewers + streams <= 44)
    }
    #expect(budget.taken == (20, 24))
  }

  @Test func aPublisherIsRefusedWhereViewersDoNotGo() async throws {
    let budget = DescriptorBudget(limit: 64)
    let registry = registry(budget)
    while budget.takeViewer() {}
    for number in 0..<6 { _ = try await registry.admit(try request("cam\(number)")) }
    let late = try request("late")
    do throws(PublishRefusal) {
      _ = try await registry.admit(late)
      Issue.record("it was admitted")
    } catch {
      #expect(error.code == "room" && error.description.contains("ulimit -n"))
    }
    #expect(budget.taken.streams == 12)
    budget.giveBackViewer()
    budget.giveBackViewer()
    _ = try await registry.admit(late)
    #expect(budget.taken.streams == 14)
  }
}
