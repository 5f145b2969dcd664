import FMP4
import NIOCore
import Support
import Testing

/// Another rendition is cut where the source was, to the tick.
@Suite struct AlignedSegmenterTests {
  /// What a source of 30 frames a second was cut into: fragments and ends of segments.
  private enum Planned {
    case fragment(FragmentPlan)
    case segmentEnd(Int)
  }

  private func source(_ frames: Int, group: Int = 60, offset: Int32 = 0) throws -> [Planned] {
    var segmenter = Segmenter(policy: CutPolicy())
    var events = segmenter.receive(.tracks([try SyntheticMedia.video()]))
    for index in 0..<frames {
      events += segmenter.receive(.sample(SyntheticMedia.frame(index, group: group, offset: offset, isSteady: true)))
    }
    events += segmenter.receive(.end(.finished))
    var plans: [Planned] = []
    var last: FragmentPlan?
    var segment = 1
    for event in events {
      switch event {
      case .fragment(let fragment):
        let plan = try #require(FragmentPlan(fragment, segment: segment, after: last))
        plans.append(.fragment(plan))
        last = plan
      case .segmentEnd:
        plans.append(.segmentEnd(segment))
        segment += 1
      default: break
      }
    }
    return plans
  }

  private func give(_ plans: [Planned], to segmenter: inout AlignedSegmenter) -> [AlignedSegmenter.Cut] {
    plans.flatMap { plan in
      switch plan {
      case .fragment(let fragment): segmenter.plan(fragment)
      case .segmentEnd(let number): segmenter.endSegment(number)
      }
    }
  }

  /// Frames as an encoder without reordering gives them out: their decode time is when they are shown.
  private func frame(_ index: Int, group: Int = 60, offset: Int64 = 0) -> Sample {
    var sample = SyntheticMedia.frame(index, group: group, start: offset)
    sample.duration = nil
    return sample
  }

  private func fragments(_ cuts: [AlignedSegmenter.Cut]) -> [(segment: Int, fragment: Fragment)] {
    cuts.compactMap { cut in
      if case .fragment(let fragment, _, let segment) = cut { return (segment, fragment) }
      return nil
    }
  }

  private func planned(_ plans: [Planned]) -> [FragmentPlan] {
    plans.compactMap { plan in
      if case .fragment(let fragment) = plan { return fragment }
      return nil
    }
  }

  /// Whether the plans or the frames come first changes nothing.
  @Test(arguments: [true, false], [Int32(0), 2000])
  func fragmentsBeginAtTheSourcesDecodeTimes(plansFirst: Bool, offset: Int32) throws {
    let track = try SyntheticMedia.video()
    let plans = try source(180, offset: offset)
    var segmenter = AlignedSegmenter()
    var cuts: [AlignedSegmenter.Cut] = []
    if plansFirst { cuts += give(plans, to: &segmenter) }
    for index in 0..<180 { cuts += segmenter.take(frame(index, offset: Int64(offset)), of: track) }
    if !plansFirst { cuts += give(plans, to: &segmenter) }
    let made = fragments(cuts)
    let wanted = planned(plans)
    #expect(made.map(\.fragment.runs[0].baseDecodeTime) == wanted.map(\.start.ticks))
    #expect(made.map { $0.fragment.runs[0].duration } == wanted.map { $0.end.ticks - $0.start.ticks })
    #expect(made.map(\.segment) == wanted.map(\.segment))
    #expect(made.map(\.fragment.startsSegment) == wanted.map(\.startsSegment))
    #expect(made.map(\.fragment.isIndependent) == wanted.map(\.isIndependent))
    #expect(made.reduce(0) { $0 + $1.fragment.runs[0].samples.count } == 180)
    #expect(made.allSatisfy { $0.fragment.runs[0].samples.allSatisfy { $0.compositionOffset == offset } })
    #expect(segmenter.waitingPlans == 0)
  }

  /// Its frames do not end where the video's do, so a segment's length is another one each time.
  @Test(arguments: [60, 50, 59]) func aSegmentOfAudioIsAsLongAsWasPredicted(group: Int) throws {
    var segmenter = Segmenter(policy: CutPolicy())
    var events = segmenter.receive(.tracks([try SyntheticMedia.video()]))
    for index in 0..<group * 12 {
      events += segmenter.receive(.sample(SyntheticMedia.frame(index, group: group, isSteady: true)))
    }
    var aligned = AlignedSegmenter(.audio)
    let track = try SyntheticMedia.audio()
    for index in 0..<group * 12 * 48 / 30 { _ = aligned.take(SyntheticMedia.audio(index), of: track) }
    var segment = 1
    var predicted: [Int: Int64] = [:]
    var lengths: [Int: Int64] = [:]
    for event in events {
      guard case .fragment(let fragment) = event else {
        if case .segmentEnd = event { segment += 1 }
        continue
      }
      let plan = FragmentPlan(audio: track.id, of: fragment, segment: segment)
      for (number, made) in fragments(aligned.plan(plan)) {
        if let expected = made.expectedSegmentDuration { predicted[number] = expected.rescaled(to: 48_000) }
        lengths[number, default: 0] += made.runs[0].duration
      }
    }
    lengths[segment] = nil
    predicted[segment] = nil
    #expect(predicted.count >= 5)
    #expect(predicted.allSatisfy { lengths[$0.key] == $0.value }, "\(predicted) \(lengths)")
    #expect(Set(predicted.values).count > 1)
  }

  @Test func aFragmentIsThereWithItsLastFrame() throws {
    let track = try SyntheticMedia.video()
    var segmenter = AlignedSegmenter()
    #expect(give(try source(60), to: &segmenter).isEmpty)
    for index in 0..<5 { #expect(segmenter.take(frame(index), of: track).isEmpty) }
    #expect(fragments(segmenter.take(frame(5), of: track)).count == 1)
  }

  @Test func leftOutFramesMakeTheOnesBeforeThemLonger() throws {
    let track = try SyntheticMedia.video()
    var segmenter = AlignedSegmenter()
    var cuts = give(try source(60), to: &segmenter)
    for index in stride(from: 0, to: 60, by: 2) { cuts += segmenter.take(frame(index), of: track) }
    cuts += segmenter.lose(before: MediaTime(ticks: 60_000, timescale: 30_000))
    let runs = fragments(cuts).map(\.fragment.runs[0])
    #expect(runs.count == 10)
    #expect(runs.allSatisfy { $0.samples.map(\.duration) == [2000, 2000, 2000] })
  }

  @Test func aSegmentThatIsLostHasNoFragmentAndTheNextOneBeginsWithAKeyFrame() throws {
    let track = try SyntheticMedia.video()
    var segmenter = AlignedSegmenter()
    var cuts = give(try source(180), to: &segmenter)
    for index in 0..<40 { cuts += segmenter.take(frame(index), of: track) }
    // The worker is gone; the next one begins with the third group.
    cuts += segmenter.lose(before: MediaTime(ticks: 120_000, timescale: 30_000))
    for index in 120..<180 { cuts += segmenter.take(frame(index), of: track) }
    let made = fragments(cuts)
    #expect(Set(made.map(\.segment)) == [1, 3])
    #expect(made.first { $0.segment == 3 }?.fragment.isIndependent == true)
    let ends = cuts.compactMap { cut in
      if case .segmentEnd(let number) = cut { return number }
      return nil
    }
    #expect(ends == [1, 2, 3])
  }

  @Test func framesThatCannotBeDecodedAreNotGivenOut() throws {
    let track = try SyntheticMedia.video()
    var segmenter = AlignedSegmenter()
    var cuts = give(try source(120), to: &segmenter)
    for index in 7..<120 { cuts += segmenter.take(frame(index), of: track) }
    #expect(Set(fragments(cuts).map(\.segment)) == [2], "the first segment has lost its key frame")
  }

  @Test func whatWaitsIsBounded() throws {
    let plan = try #require(planned(try source(60)).last)
    var segmenter = AlignedSegmenter()
    for index in 0..<2 * AlignedSegmenter.planLimit {
      var next = plan
      next.start = MediaTime(ticks: Int64(index) * 6000, timescale: 30_000)
      next.end = MediaTime(ticks: Int64(index + 1) * 6000, timescale: 30_000)
      _ = segmenter.plan(next)
    }
    #expect(segmenter.waitingPlans == AlignedSegmenter.planLimit)
  }
}
