import FMP4
@testable import Recording
import Storage
@testable import Streams
import Support
import Testing

@Suite struct RecorderQueueTests {
  /// Fragments of six frames of 1000 bytes, in segments of sixty.
  private func fragments(_ frames: Int) throws -> [PublishedFragment] {
    try events(frames).compactMap { if case .fragment(let fragment) = $0 { fragment } else { nil } }
  }

  private func events(_ frames: Int, of tracks: [TrackDescription]? = nil) throws -> [StoredEvent] {
    var epoch = Epoch(id: "e", settings: StreamSettings())
    epoch.startPublication()
    var events = try epoch.receive(.tracks(try tracks ?? [SyntheticMedia.video()]))
    for index in 0..<frames {
      events += try epoch.receive(.sample(SyntheticMedia.frame(index, group: 60, size: 1000, isSteady: true)))
    }
    return events
  }

  /// The event that tells of these tracks.
  private func telling(_ tracks: [TrackDescription]) throws -> StoredEvent {
    try #require(
      try events(130, of: tracks).first { if case .initialization = $0 { true } else { false } })
  }

  private func kind(_ work: RecorderQueue.Work?) -> String {
    switch work {
    case .item(.event(.fragment)): "fragment"
    case .item(.shed): "shed"
    case .item(.shedUntil): "shed until"
    case .item(.keyless): "keyless"
    case .item(.stop): "stop"
    case .item, .tick: "other"
    case nil: "nothing"
    }
  }

  private func rest(of queue: inout RecorderQueue) -> [String] {
    var found: [String] = []
    while let work = queue.next() { found.append(kind(work)) }
    return found
  }

  /// Many streams may end at once, and a segment be larger than all that may wait.
  @Test func whereTheDiskKeepsUpTheLastFragmentIsRecordedHoweverLargeItsSegmentIs() throws {
    let budget = RecordingBudget(limit: 10_000)
    var queue = RecorderQueue(budget: budget)
    let fragments = try fragments(54)
    for fragment in fragments.dropLast() {
      let came = queue.admit(fragment, now: 0)
      let written = rest(of: &queue)
      #expect(came == .passed && written == ["fragment"])
    }
    _ = queue.admit(try #require(fragments.last), now: 0)
    let isFirstEnd = queue.close(with: .stop, now: 0)
    #expect(isFirstEnd)
    let left = rest(of: &queue)
    #expect(left == ["fragment", "stop"])
    #expect(budget.waiting == 0)
  }

  @Test func `Fragments whose key frame was given up are left out up to the next one`() throws {
    var queue = RecorderQueue(budget: RecordingBudget(limit: 1 << 20), trial: RecordingTrial())
    let fragments = try fragments(130)
    let next = try #require(fragments.dropFirst().firstIndex { $0.fragment.isIndependent })
    for fragment in fragments.prefix(2) { _ = queue.admit(fragment, now: 0) }
    for _ in 0..<3 { queue.add(.discontinuity(.publisher), now: 0) }
    for fragment in fragments.dropFirst(2) { _ = queue.admit(fragment, now: 0) }
    let left = rest(of: &queue)
    let breaks = Array(repeating: "other", count: 3)
    #expect(left == breaks + ["keyless"] + Array(repeating: "fragment", count: fragments.count - next))
  }

  @Test func `Dates that are set again give up nothing that is held`() throws {
    var queue = RecorderQueue(budget: RecordingBudget(limit: 1 << 20), trial: RecordingTrial())
    let fragments = try fragments(54)
    for fragment in fragments {
      queue.add(.discontinuity(.clock), now: 0)
      _ = queue.admit(fragment, now: 0)
    }
    #expect(rest(of: &queue).count { $0 == "fragment" } == fragments.count)
  }

  /// A browser begins with a small picture, and enlarges it within its first second.
  @Test(arguments: [(changes: 2, isKept: true), (changes: 3, isKept: false)])
  func `A picture that grows within the first second is recorded from its first frame`(
    changes: Int, isKept: Bool
  ) throws {
    let budget = RecordingBudget(limit: 1 << 20)
    var queue = RecorderQueue(budget: budget, trial: RecordingTrial())
    let tracks = try telling([SyntheticMedia.video()])
    queue.add(tracks, now: 0)
    let begins = rest(of: &queue)
    #expect(begins == ["other"])
    let fragments = try fragments(54)
    for (index, fragment) in fragments.enumerated() {
      if (1...changes).contains(index) {
        queue.add(.discontinuity(.publisher), now: 0)
        queue.add(tracks, now: 0)
      }
      _ = queue.admit(fragment, now: 0)
    }
    let left = rest(of: &queue)
    #expect(left.count { $0 == "fragment" } == (isKept ? fragments.count : 0))
    #expect(left.count { $0 == "other" } == 2 * changes)
    #expect(left.contains("keyless") == !isKept)
    #expect(budget.waiting == 0)
  }

  /// Further tracks come beside the fragment that has them: they are no further media.
  @Test func `Fragments beside another one do not make a moment long`() throws {
    var queue = RecorderQueue(budget: RecordingBudget(limit: 1 << 20), trial: RecordingTrial())
    let fragments = try fragments(54)
    _ = queue.admit(fragments[0], now: 0)
    _ = queue.admit(fragments[1], now: 0)
    var beside = fragments[1]
    (beside.fragment.isAside, beside.fragment.duration) = (true, .zero)
    for _ in 0..<10 { _ = queue.admit(beside, now: 0) }
    let written = rest(of: &queue)
    #expect(written.isEmpty)
  }

  @Test func `What was held of another codec is given up`() throws {
    var queue = RecorderQueue(budget: RecordingBudget(limit: 1 << 20), trial: RecordingTrial())
    queue.add(try telling([SyntheticMedia.video()]), now: 0)
    let fragments = try fragments(54)
    for fragment in fragments.prefix(2) { _ = queue.admit(fragment, now: 0) }
    queue.add(try telling([SyntheticMedia.hevc()]), now: 0)
    for fragment in fragments { _ = queue.admit(fragment, now: 0) }
    let left = rest(of: &queue)
    #expect(left == ["other", "other"] + Array(repeating: "fragment", count: fragments.count))
  }

  /// Once the window has left it, all of a segment counts: it is left out where that is too much.
  @Test func aSegmentThatOnlyTheQueueHasCountsAsAWhole() throws {
    let budget = RecordingBudget(limit: 70_000)
    var queue = RecorderQueue(budget: budget)
    let fragments = try fragments(130)
    let number = try #require(fragments.first?.sequenceNumberOfSegment)
    let first = fragments.filter { $0.sequenceNumberOfSegment == number }
    let second = fragments.filter { $0.sequenceNumberOfSegment == number + 1 }
    let size = first.reduce(0) { $0 + $1.range.length }
    for fragment in first.prefix(6) { _ = queue.admit(fragment, now: 0) }
    // Half of it is being written.
    for _ in 0..<5 { _ = queue.next() }
    for fragment in first.dropFirst(6) { _ = queue.admit(fragment, now: 0) }
    #expect(budget.waiting < size * 3 / 4)
    _ = queue.admit(try #require(second.first), now: 0)
    _ = queue.add(nil, windowStart: number + 1, now: 0)
    #expect(budget.waiting > size, "also what has been written")
    // Beside it there is room for nothing more.
    let came = second.dropFirst().map { queue.admit($0, now: 0) }
    #expect(came.contains(.beganShedding))
    _ = queue.add(nil, windowStart: number + 2, now: 0)
    #expect(budget.waiting <= 70_000)
    #expect(queue.isShedding)
    let isFirstEnd = queue.close(with: .stop, now: 0)
    #expect(isFirstEnd)
    let left = rest(of: &queue)
    #expect(left.suffix(2) == ["shed until", "stop"] && left.contains("shed"))
    #expect(left.count { $0 == "fragment" } == first.count - 5, "those of the first segment")
    #expect(budget.waiting == 0)
  }
}
