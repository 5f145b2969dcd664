import FMP4
import NIOCore
import Support
import Testing

/// Groups of pictures that are open: behind their key frame come frames that are shown before it.
@Suite struct OpenGroupTests {
  /// Frames in decoding order from the key frame `first` on, three B-frames between two others, a key frame every 60,
  /// behind which the three before it in presentation come. Presented from one frame's length on, so that no offset is
  /// negative.
  private static func frames(
    _ count: Int, from first: Int = 0, isSteady: Bool = true, at time: (Int) -> Int64 = { Int64($0) * 1000 }
  ) -> [Sample] {
    let order = (0...).lazy.map { index in index == 0 ? 0 : (index - 1) % 4 == 0 ? index + 3 : index - 1 }
    return order.prefix(count).enumerated().map { index, shown in
      let decode = time(first + index)
      return Sample(
        track: .video, decodeTime: decode,
        compositionOffset: Int32(time(first + shown) + 1000 - decode), duration: isSteady ? 1000 : nil,
        isSync: shown % 60 == 0, payload: ByteBuffer(repeating: UInt8(truncatingIfNeeded: shown), count: 100))
    }
  }

  private static func cut(
    _ samples: [Sample], frameDuration: UInt32? = 1000, policy: CutPolicy = CutPolicy()
  ) throws -> [Fragment] {
    var segmenter = Segmenter(policy: policy)
    var events = segmenter.receive(.tracks([try SyntheticMedia.video(frameDuration: frameDuration)]))
    for sample in samples { events += segmenter.receive(.sample(sample)) }
    events += segmenter.receive(.end(.finished))
    return events.compactMap { if case .fragment(let fragment) = $0 { fragment } else { nil } }
  }

  private static func segments(_ fragments: [Fragment]) -> [[Fragment]] {
    fragments.reduce(into: []) { segments, fragment in
      if fragment.startsSegment { segments.append([]) }
      segments[segments.count - 1].append(fragment)
    }
  }

  /// Of the parts, which lie end to end.
  private static func lengths(_ segments: [[Fragment]]) -> [MediaTime] {
    segments.flatMap { fragments in
      zip([fragments[0].start] + fragments.map(\.end), fragments.map(\.end)).map { $1 - $0 }
    }
  }

  @Test(arguments: [true, false]) func segmentsBeginWithTheFirstFrameThatIsShown(_ isSteady: Bool) throws {
    let fragments = try Self.cut(Self.frames(477, isSteady: isSteady), frameDuration: isSteady ? 1000 : nil)
    let segments = Self.segments(fragments)
    #expect(segments.count == 8)
    // The first key frame has nothing before it; each later segment begins with the three that are shown before its own.
    #expect(segments.map { $0[0].start.ticks } == [1000] + (1..<8).map { Int64($0) * 60_000 - 2000 })
    for (segment, next) in zip(segments, segments.dropFirst()) { #expect(segment.last?.end == next[0].start) }
    #expect(segments.map { $0[0].opensGroup } == [false] + Array(repeating: true, count: 7))
    #expect(Self.lengths(segments).allSatisfy { $0 <= MediaTime(milliseconds: 200) })
    let announced = segments.compactMap { $0[0].expectedSegmentDuration }
    #expect(announced.count >= 4 && announced.allSatisfy { $0 == MediaTime(milliseconds: 2000) })
  }

  @Test func aVariableRateKeepsItsTimes() throws {
    // Uneven steps of 20 to 46 ms.
    let time = { (index: Int) in Int64(index) * 1000 + Int64(index * 7919 % 13) * 30 }
    let fragments = try Self.cut(Self.frames(477, isSteady: false, at: time), frameDuration: nil)
    let segments = Self.segments(fragments)
    #expect(segments.count == 8)
    for (segment, next) in zip(segments, segments.dropFirst()) {
      #expect(segment.last?.end == next[0].start)
      let shown = next.flatMap(\.runs).map(\.earliestPresentationTime).min()
      #expect(next[0].start.ticks == shown)
    }
  }

  @Test func framesThatReferToWhatWasNeverThereAreLeftOut() throws {
    // A publisher that begins in its midst: with a key frame that three frames precede.
    var samples = Self.frames(240)
    samples.removeFirst(57)
    let fragments = try Self.cut(samples)
    let shown = fragments.flatMap(\.payloads).map { $0.getInteger(at: 0, as: UInt8.self) ?? 0 }
    #expect(shown[0] == 60 && !shown.contains(57) && !shown.contains(58) && !shown.contains(59))
    #expect(shown.count == samples.count - 3)
    #expect(fragments[0].start.ticks == 61_000)
  }

  @Test func thoseBehindABreakAreLeftOutToo() throws {
    var segmenter = Segmenter()
    var events = segmenter.receive(.tracks([try SyntheticMedia.video()]))
    let samples = Self.frames(240)
    for sample in samples.prefix(100) { events += segmenter.receive(.sample(sample)) }
    events += segmenter.receive(.discontinuity)
    for sample in samples.dropFirst(117) { events += segmenter.receive(.sample(sample)) }
    events += segmenter.receive(.end(.finished))
    let count = events.reduce(0) { count, event in
      if case .fragment(let fragment) = event { count + fragment.payloads.count } else { count }
    }
    #expect(count == 100 + 240 - 117 - 3)
  }

  /// What waits for frames that are shown before a key frame is not held up where none can come.
  @Test func aClosedGroupWaitsForNothing() throws {
    var segmenter = Segmenter()
    _ = segmenter.receive(.tracks([try SyntheticMedia.video(frameDuration: nil)]))
    for index in 0..<61 {
      let events = segmenter.receive(.sample(SyntheticMedia.frame(index, offset: 2000)))
      let ended = events.contains { if case .segmentEnd = $0 { true } else { false } }
      #expect(ended == (index == 60))
    }
  }

  @Test func aSegmentWithoutAKeyFrameBeginsWithItsFirstFrameToo() throws {
    // Twenty seconds of one group: cut by its length, where no frame of the next segment is shown before one of this.
    let samples = Self.frames(600).map { sample in
      var sample = sample
      sample.isSync = sample.decodeTime == 0
      return sample
    }
    let segments = Self.segments(try Self.cut(samples))
    #expect(segments.count > 1)
    for (segment, next) in zip(segments, segments.dropFirst()) {
      #expect(segment.last?.end == next[0].start)
      #expect(next[0].start.ticks == next.flatMap(\.runs).map(\.earliestPresentationTime).min())
    }
    #expect(Self.lengths(segments).allSatisfy { $0 <= MediaTime(milliseconds: 200) })
  }

  /// Another rendition of them, which an encoder makes in the order in which they are shown, with a key frame wherever a
  /// segment begins, has every frame.
  @Test func rungsHaveEveryFrame() throws {
    let track = try SyntheticMedia.video()
    let frames = Self.frames(477)
    var segmenter = AlignedSegmenter()
    var cuts: [AlignedSegmenter.Cut] = []
    var last: FragmentPlan?
    var starts: Set<Int64> = []
    var segment = 0
    for fragment in try Self.cut(frames) {
      if fragment.startsSegment {
        segment += 1
        starts.insert(fragment.start.ticks)
      }
      let plan = try #require(FragmentPlan(fragment, segment: segment, after: last))
      last = plan
      cuts += segmenter.plan(plan)
    }
    for time in frames.map(\.presentationTime).sorted() {
      let sample = Sample(
        track: .video, decodeTime: time, isSync: starts.contains(time), payload: ByteBuffer(repeating: 1, count: 10))
      cuts += segmenter.take(sample, of: track)
    }
    cuts += segmenter.lose(before: MediaTime(ticks: .max, timescale: 1))
    var shown: [Int64] = []
    for case .fragment(let fragment, _, _) in cuts {
      var time = fragment.runs[0].baseDecodeTime
      if fragment.startsSegment {
        #expect(
          fragment.isIndependent && fragment.start.ticks == time + Int64(fragment.runs[0].samples[0].compositionOffset))
      }
      for sample in fragment.runs[0].samples {
        shown.append(time + Int64(sample.compositionOffset))
        time += Int64(sample.duration)
      }
    }
    #expect(shown == frames.map(\.presentationTime).sorted())
  }

  /// A presentation time that a publisher states holds nothing up.
  @Test func aFrameThatIsShownHoursLaterHoldsNothingUp() throws {
    var segmenter = Segmenter(policy: CutPolicy(fragmentsWaitForFollowers: true))
    var events = segmenter.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
    for var sample in SyntheticMedia.interleaved(seconds: 20, group: 60) {
      if sample.track == .video {
        sample.isSync = true
        if sample.decodeTime == 120_000 { sample.compositionOffset = .max }
      }
      events += segmenter.receive(.sample(sample))
    }
    let ends = events.compactMap { event -> Int64? in
      if case .fragment(let fragment) = event { fragment.run(of: .video)?.endDecodeTime } else { nil }
    }
    #expect(try #require(ends.last) >= 19 * 30_000)
  }
}
