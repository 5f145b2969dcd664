@testable import FMP4
import NIOCore
import Support
import Testing

/// Ticks of 1/30000 s; frames of 1000.
@Suite("Where the leading track's fragments and segments end")
struct LeadingTrackTests {
  private func queue(_ frames: Range<Int> = 0..<0) throws -> SampleQueue {
    var queue = SampleQueue(track: try SyntheticMedia.video())
    for index in frames { _ = queue.append(SyntheticMedia.frame(index, isSteady: true)) }
    return queue
  }

  private func sample(at time: Int64, offset: Int32 = 0, isSync: Bool = false) -> Sample {
    Sample(
      track: .video, decodeTime: time, compositionOffset: offset, isSync: isSync,
      payload: ByteBuffer(repeating: 1, count: 100))
  }

  /// A segment that began at 0 with a key frame, and has it.
  private func begun() -> LeadingTrack {
    var leading = LeadingTrack()
    leading.openSegment(at: 0, presentationStart: 0, isSync: true)
    leading.add(sample(at: 0, isSync: true), duration: 1000)
    return leading
  }

  // MARK: Fragments

  /// 200 ms are 6000 ticks; as long as no limit is known the target is 85 % of it: 7059.
  @Test(
    arguments: [(5999, 1060, false), (5999, 1061, true), (6000, 0, true), (0, 90_000, false)] as [(Int64, Int64, Bool)])
  func `A fragment ends at its target, or where one more sample would be too many`(
    _ time: Int64, _ next: Int64, _ ends: Bool
  ) throws {
    #expect(begun().fragmentEnds(at: time, next: next, in: try queue(), CutPolicy()) == ends)
  }

  @Test func `An empty fragment does not end and the first of all is short`() throws {
    var leading = LeadingTrack()
    #expect(!leading.fragmentEnds(at: 90_000, next: 0, in: try queue(), CutPolicy()))
    leading.openFragment(at: 0, isIndependent: true)
    #expect(!leading.fragmentEnds(at: 90_000, next: 0, in: try queue(), CutPolicy()))
    leading = begun()
    leading.isBeginning = true
    #expect(!leading.fragmentEnds(at: 1499, next: 1, in: try queue(), CutPolicy()))
    #expect(leading.fragmentEnds(at: 1500, next: 1, in: try queue(), CutPolicy()), "50 ms")
  }

  @Test func `A fragment ends where its bytes or its samples are many`() throws {
    var policy = CutPolicy()
    policy.segmentBytes = 300
    #expect(!begun().fragmentEnds(at: 1, next: 0, in: try queue(0..<2), policy))
    #expect(begun().fragmentEnds(at: 1, next: 0, in: try queue(0..<3), policy))
    let limit = CutPolicy.fragmentSampleLimit
    #expect(!begun().fragmentEnds(at: 1, next: 0, in: try queue(0..<limit - 1), CutPolicy()))
    #expect(begun().fragmentEnds(at: 1, next: 0, in: try queue(0..<limit), CutPolicy()))
  }

  // MARK: Segments

  /// Two seconds are 60000 ticks; 5 ms of rounding are forgiven.
  @Test func `A key frame ends a segment that is as long as it should be`() throws {
    let (leading, queue) = (begun(), try queue())
    for (time, ends) in [(59_849, false), (59_850, true), (90_000, true)] as [(Int64, Bool)] {
      let next = sample(at: time, isSync: true)
      #expect(leading.segmentEnds(before: next, at: time, in: queue, CutPolicy()) == ends, "\(time)")
    }
  }

  @Test func `A key frame ends a segment into which one more group would not fit`() throws {
    let policy = CutPolicy(wholeSecondLimit: 2)
    // Two groups of 37485 last as long as the limit, two of 37486 longer.
    for (group, ends) in [(30_000, false), (37_485, false), (37_486, true), (45_000, true)] as [(Int64, Bool)] {
      var leading = begun()
      _ = leading.cadence.note(syncAt: -group, timescale: 30_000)
      _ = leading.cadence.note(syncAt: 0, timescale: 30_000)
      let next = sample(at: group, isSync: true)
      #expect(leading.segmentEnds(before: next, at: group, in: try queue(), policy) == ends, "\(group)")
    }
  }

  @Test func `Without a key frame a segment ends where no frame is shown before one of its own`() throws {
    let policy = CutPolicy(wholeSecondLimit: 2)
    var leading = begun()
    leading.add(sample(at: 60_000, offset: 1000), duration: 1000)
    #expect(leading.presentationEnd == 62_000)
    for (time, offset, ends) in [
      (60_000, 9000, false), (60_001, 1998, false), (60_001, 1999, true), (74_970, -13_000, false),
      (74_971, -13_000, true),
    ] as [(Int64, Int32, Bool)] {
      let next = sample(at: time, offset: offset)
      #expect(leading.segmentEnds(before: next, at: time, in: try queue(), policy) == ends, "\(time) \(offset)")
    }
  }

  @Test func `A cut without a key frame waits for one that is due before the limit`() throws {
    let policy = CutPolicy(wholeSecondLimit: 2)
    var leading = begun()
    for time in [-140_000, -70_000, 0] as [Int64] { _ = leading.cadence.note(syncAt: time, timescale: 30_000) }
    let next = sample(at: 61_000)
    #expect(!leading.segmentEnds(before: next, at: 61_000, in: try queue(), policy), "the key frame comes at 70000")
    var late = begun()
    for time in [-160_000, -80_000, 0] as [Int64] { _ = late.cadence.note(syncAt: time, timescale: 30_000) }
    #expect(late.segmentEnds(before: next, at: 61_000, in: try queue(), policy), "80000 is beyond the limit of 74970")
  }

  @Test func `A distance of key frames that is certain counts before the second one has come`() throws {
    var policy = CutPolicy(wholeSecondLimit: 2)
    var leading = begun()
    _ = leading.cadence.note(syncAt: 0, timescale: 30_000)
    let (early, late) = (sample(at: 20_000, isSync: true), sample(at: 61_000))
    #expect(!leading.segmentEnds(before: early, at: 20_000, in: try queue(), policy))
    #expect(leading.segmentEnds(before: late, at: 61_000, in: try queue(), policy))
    policy.syncDistance = MediaTime(milliseconds: 2200)
    #expect(leading.segmentEnds(before: early, at: 20_000, in: try queue(), policy), "the next one comes at 86000")
    #expect(!leading.segmentEnds(before: late, at: 61_000, in: try queue(), policy), "the key frame comes at 66000")
  }

  @Test func `A segment ends where its bytes are many`() throws {
    var policy = CutPolicy()
    policy.segmentBytes = 200
    var leading = begun()
    #expect(!leading.segmentEnds(before: sample(at: 1000), at: 1000, in: try queue(), policy))
    leading.add(sample(at: 1000), duration: 1000)
    #expect(leading.segmentEnds(before: sample(at: 2000), at: 2000, in: try queue(), policy))
    leading.openSegment(at: 2000, presentationStart: 2000, isSync: false)
    #expect(!leading.segmentEnds(before: sample(at: 3000), at: 3000, in: try queue(), policy), "another one")
  }

  @Test func `A segment's length is predicted in whole groups`() {
    for (group, limit, length) in [
      (30_000, nil, 60_000), (20_000, nil, 60_000), (59_990, nil, 59_990), (45_000, nil, 90_000), (30_000, 1, 30_000),
      (37_485, 2, 74_970), (37_486, 2, 37_486), (45_000, 2, 45_000),
    ] as [(Int64, Int?, Int64)] {
      var leading = begun()
      #expect(leading.expectedSegmentLength(timescale: 30_000, CutPolicy(wholeSecondLimit: limit)) == nil)
      for number in 0..<3 as Range<Int64> { _ = leading.cadence.note(syncAt: number * group, timescale: 30_000) }
      let expected = leading.expectedSegmentLength(timescale: 30_000, CutPolicy(wholeSecondLimit: limit))
      #expect(expected == length, "\(group) \(String(describing: limit))")
    }
  }

  // MARK: What is predicted

  @Test func `A fragment's end is predicted when its last frame is there`() throws {
    #expect(begun().predictedEnd(in: try queue(0..<5), CutPolicy()) == .unknown)
    #expect(begun().predictedEnd(in: try queue(0..<6), CutPolicy()) == .fragmentEnds)
    var waiting = try queue(0..<6)
    _ = waiting.append(SyntheticMedia.frame(6))
    #expect(begun().predictedEnd(in: waiting, CutPolicy()) == .unknown, "only the next frame tells how long it lasts")
    #expect(begun().predictedEnd(in: try queue(), CutPolicy()) == .unknown)
  }

  @Test func `A segment's end is predicted where key frames are steady`() throws {
    var leading = begun()
    leading.openFragment(at: 54_000, isIndependent: false)
    leading.add(sample(at: 54_000), duration: 1000)
    #expect(leading.predictedEnd(in: try queue(54..<60), CutPolicy()) == .unknown, "no group is known")
    for time in [-120_000, -60_000, 0] as [Int64] { _ = leading.cadence.note(syncAt: time, timescale: 30_000) }
    #expect(leading.predictedEnd(in: try queue(54..<60), CutPolicy()) == .segmentEnds)
    var longer = begun()
    longer.openFragment(at: 54_000, isIndependent: false)
    longer.add(sample(at: 54_000), duration: 1000)
    for time in [-180_000, -90_000, 0] as [Int64] { _ = longer.cadence.note(syncAt: time, timescale: 30_000) }
    #expect(
      longer.predictedEnd(in: try queue(54..<60), CutPolicy()) == .fragmentEnds, "the next key frame comes at 90000")
  }

  // MARK: Reordering

  @Test func `Other tracks' boundaries lie later by the reorder delay`() {
    var leading = LeadingTrack()
    leading.openSegment(at: 1000, presentationStart: 3000, isSync: true)
    #expect(leading.reorderDelay == 2000 && leading.presentationTime(at: 5000) == 7000)
  }

  @Test func `A pause before a key frame does not delay what follows it`() {
    var leading = LeadingTrack()
    leading.openSegment(at: 0, presentationStart: 2000, isSync: true)
    for frame in 1..<60 as Range<Int64> { leading.note(frame * 1000) }
    leading.openSegment(at: 60_000, presentationStart: 67_000, isSync: true)
    #expect(leading.presentationTime(at: 60_000) == 67_000)
    // The pause of 5000 ticks lies behind the key frame in decode times.
    leading.note(66_000)
    #expect(leading.presentationTime(at: 66_000) == 68_000)
  }

  @Test func `A group may be open where frames have room before its key frame`() {
    var leading = LeadingTrack()
    leading.openSegment(at: 0, presentationStart: 1000, isSync: true)
    leading.add(sample(at: 0, offset: 1000, isSync: true), duration: 1000)
    #expect(leading.mayOpenGroup(sample(at: 1000, offset: 3000, isSync: true), duration: 1000))
    #expect(!leading.mayOpenGroup(sample(at: 1000, offset: 1000, isSync: true), duration: 1000), "no room")
    #expect(!leading.mayOpenGroup(sample(at: 5000, offset: 1000, isSync: true), duration: 1000), "a pause")
    #expect(!leading.mayOpenGroup(sample(at: 1000, offset: 1499, isSync: true), duration: 1000), "not half a frame")
    #expect(leading.mayOpenGroup(sample(at: 1000, offset: 1500, isSync: true), duration: 1000))
  }

  @Test func `An open group's segment begins with its earliest frame`() {
    var leading = LeadingTrack()
    leading.openSegment(at: 1000, presentationStart: 4000, isSync: true)
    #expect(leading.closeGroup() == nil)
    leading.openGroup(sample(at: 1000, offset: 3000, isSync: true))
    for (time, offset, stays) in [
      (2000, 1000, true), (3000, 0, true), (4000, -2500, true), (5000, 0, false),
    ] as [(Int64, Int32, Bool)] {
      #expect(leading.staysOpen(with: sample(at: time, offset: offset)) == stays, "\(time)")
    }
    #expect(leading.closeGroup() == 1500)
    #expect(leading.reorderDelay == 500 && leading.closeGroup() == nil)
  }

  @Test func `Frames that are shown before the first key frame are left out, 64 at most`() {
    var leading = LeadingTrack()
    #expect(leading.precedesBeginning(sample(at: 0, offset: 100_000, isSync: true)) == false)
    leading.awaitsSync = false
    for frame in 1...64 as ClosedRange<Int64> { #expect(leading.precedesBeginning(sample(at: frame * 1000)) == true) }
    #expect(leading.precedesBeginning(sample(at: 65_000)) == false)
    #expect(leading.precedesBeginning(sample(at: 66_000)) == false, "and none after one that was kept")
  }

  @Test func `Nothing behind the first frame that is shown later is left out`() {
    for next in [sample(at: 1000, offset: 8000), sample(at: 1000, isSync: true)] {
      var leading = LeadingTrack()
      _ = leading.precedesBeginning(sample(at: 0, offset: 9000, isSync: true))
      leading.awaitsSync = false
      #expect(leading.precedesBeginning(next) == false)
      #expect(leading.precedesBeginning(sample(at: 2000)) == false)
    }
  }
}

/// Key frames that come as they are asked for.
@Suite struct AskedKeyFrameTests {
  @Test func `Key frames are wanted as often as segments are cut`() {
    let milliseconds = { (value: Int64) in MediaTime(milliseconds: value) }
    #expect(CutPolicy.keyFrameDistance(milliseconds(2000), nil) == milliseconds(2000))
    #expect(CutPolicy.keyFrameDistance(milliseconds(2000), 4) == milliseconds(2000))
    #expect(CutPolicy.keyFrameDistance(milliseconds(2400), 2) == milliseconds(2000))
    #expect(CutPolicy.keyFrameDistance(milliseconds(12_000), nil) == milliseconds(10_000))
    #expect(CutPolicy.syncTolerance(ofTarget: milliseconds(2000)) == milliseconds(500))
  }
}
