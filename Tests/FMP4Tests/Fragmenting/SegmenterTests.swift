@testable import FMP4
import NIOCore
import Support
import Testing

@Suite struct SegmenterTests {
  /// Runs samples through a segmenter and ends it.
  private func run(
    _ samples: [Sample], tracks: [TrackDescription], policy: CutPolicy = CutPolicy()
  ) -> [FragmentEvent] {
    var segmenter = Segmenter(policy: policy)
    var events = segmenter.receive(.tracks(tracks))
    for sample in samples { events += segmenter.receive(.sample(sample)) }
    return events + segmenter.receive(.end(.finished))
  }

  private func fragments(_ events: [FragmentEvent]) -> [Fragment] {
    events.compactMap { if case .fragment(let fragment) = $0 { fragment } else { nil } }
  }

  /// The clock of the video stands, and audio that was announced does not come.
  @Test(arguments: [64, 4]) func fragmentsThatWaitForAnotherTrackAreBounded(_ mebibytesOfSegment: Int) throws {
    var policy = CutPolicy(fragmentsWaitForFollowers: true)
    policy.segmentBytes = mebibytesOfSegment << 20
    let limit = min(CutPolicy.waitingByteLimit, policy.segmentBytes)
    var segmenter = Segmenter(policy: policy)
    _ = segmenter.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
    var most = 0
    for index in 0..<40 {
      _ = segmenter.receive(.sample(SyntheticMedia.frame(index, group: 1, duration: 1, size: 4 << 20)))
      most = max(most, segmenter.pendingBytes)
    }
    #expect((limit...limit + 16 << 20).contains(most), "\(most >> 20) MiB")
  }

  /// The first video has not begun.
  @Test(arguments: [64, 4]) func samplesThatWaitForTheLeadingTrackAreBounded(_ mebibytesOfSegment: Int) throws {
    var policy = CutPolicy()
    policy.segmentBytes = mebibytesOfSegment << 20
    let limit = min(CutPolicy.waitingByteLimit, policy.segmentBytes)
    var segmenter = Segmenter(policy: policy)
    var further = try SyntheticMedia.video()
    further.id = TrackID(.video, 2)
    _ = segmenter.receive(.tracks([try SyntheticMedia.video(), further]))
    for index in 0..<40 {
      var sample = SyntheticMedia.frame(index, group: 1, duration: 1, size: 4 << 20)
      sample.track = further.id
      _ = segmenter.receive(.sample(sample))
    }
    #expect((limit...2 * limit + 8 << 20).contains(segmenter.pendingBytes))
  }

  /// What a further video has too much of is dropped; it goes on with its next key frame.
  @Test func aFurtherVideoOfWhichSamplesAreDroppedGoesOnWithAKeyFrame() throws {
    var policy = CutPolicy()
    policy.segmentBytes = 1 << 20
    var segmenter = Segmenter(policy: policy)
    var further = try SyntheticMedia.video()
    further.id = TrackID(.video, 2)
    var events = segmenter.receive(.tracks([try SyntheticMedia.video(), further]))
    for index in 0..<120 {
      // The first video begins when three mebibytes of the further one have come.
      if index >= 30 { events += segmenter.receive(.sample(SyntheticMedia.frame(index, group: 30, isSteady: true))) }
      let size = index < 30 ? 100 << 10 : 100
      var sample = SyntheticMedia.frame(index, group: 50, size: size, isSteady: true)
      sample.track = further.id
      events += segmenter.receive(.sample(sample))
    }
    events += segmenter.receive(.end(.finished))
    var frames: [Int] = []
    for case .fragment(let fragment) in events {
      guard let run = fragment.run(of: further.id) else { continue }
      var time = run.baseDecodeTime
      for sample in run.samples {
        frames.append(Int(time / 1000))
        time += Int64(sample.duration)
      }
    }
    // Those up to the limit end before the first video begins; from 20 to 49 frames depend on one that was dropped.
    #expect(frames == Array(50..<120), "\(frames)")
  }

  @Test func aSegmentEndsWhenItIsAskedTo() throws {
    var segmenter = Segmenter()
    var ends: [Int] = []
    _ = segmenter.receive(.tracks([try SyntheticMedia.video()]))
    for index in 0..<60 {
      if index == 20 { segmenter.endSegmentSoon() }
      let events = segmenter.receive(.sample(SyntheticMedia.frame(index, isSteady: true)))
      if events.contains(where: { if case .segmentEnd = $0 { true } else { false } }) { ends.append(index) }
    }
    #expect(ends == [20] && !segmenter.endsSegmentNext)
  }

  /// The end of the segment waits for audio; the next segment is not cut in its place.
  @Test func aSegmentWhoseEndIsDecidedIsNotAskedToEndAgain() throws {
    var segmenter = Segmenter(policy: CutPolicy(fragmentsWaitForFollowers: true))
    _ = segmenter.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
    for sample in SyntheticMedia.interleaved(seconds: 3)
    where sample.decodeTime <= (sample.track == .video ? 60_000 : 90_000) {
      _ = segmenter.receive(.sample(sample))
    }
    let isEnding = segmenter.closing.contains { $0.endsSegment }
    #expect(isEnding)
    segmenter.endSegmentSoon()
    #expect(!segmenter.endsSegmentNext)
  }

  /// The end of the media ends the segment, too.
  @Test func aRequestToEndASegmentEndsWithIt() throws {
    var segmenter = Segmenter()
    _ = segmenter.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
    for index in 0..<30 { _ = segmenter.receive(.sample(SyntheticMedia.frame(index, isSteady: true))) }
    segmenter.endSegmentSoon()
    #expect(segmenter.endsSegmentNext)
    // The video stops, and its segment is cut by the audio.
    for index in 0..<240 { _ = segmenter.receive(.sample(SyntheticMedia.audio(index))) }
    #expect(!segmenter.endsSegmentNext)
  }

  @Test func theFirstFragmentOfAllMayBeShort() throws {
    var segmenter = Segmenter(policy: CutPolicy(startsEarly: true))
    var fragments: [Fragment] = []
    _ = segmenter.receive(.tracks([try SyntheticMedia.video()]))
    for index in 0..<130 {
      for case .fragment(let fragment) in segmenter.receive(.sample(SyntheticMedia.frame(index, isSteady: true))) {
        fragments.append(fragment)
      }
    }
    // 67 ms, and then as ever; also in the second segment.
    #expect(fragments.prefix(13).map(\.runs[0].samples.count) == [2] + Array(repeating: 6, count: 9) + [4, 6, 6])
    #expect(fragments[0].isIndependent && fragments[0].startsSegment && fragments[11].startsSegment)
  }

  @Test func aStreamOf30FramesIsCutEvery200MillisecondsAndEveryTwoSeconds() throws {
    let events = run(
      SyntheticMedia.interleaved(seconds: 6), tracks: [try SyntheticMedia.video(), try SyntheticMedia.audio()])
    let fragments = fragments(events)
    #expect(fragments.count == 30)
    #expect(fragments.allSatisfy { $0.runs[0].samples.count == 6 && $0.runs[0].track == .video })
    #expect(fragments.enumerated().allSatisfy { $1.startsSegment == ($0 % 10 == 0) })
    #expect(fragments.enumerated().allSatisfy { $1.isIndependent == ($0 % 10 == 0) })
    #expect(fragments.map(\.sequenceNumber) == Array(1...30))
    #expect(events.filter { if case .segmentEnd = $0 { true } else { false } }.count == 3)
  }

  /// The tracks that play without a choice are one stretch of a fragment's media, whatever order the tracks came in.
  @Test func furtherTracksOfAKindComeBehindTheFirst() throws {
    var further = try SyntheticMedia.video()
    further.id = TrackID(3)
    let tracks = [
      further, try SyntheticMedia.audio(TrackID(4)), try SyntheticMedia.video(), try SyntheticMedia.audio(),
    ]
    let sent = SyntheticMedia.interleaved(seconds: 5, furtherAudios: [TrackID(4)]).flatMap { sample in
      guard sample.track == .video else { return [sample] }
      var frame = sample
      frame.track = further.id
      return [frame, sample]
    }
    let events = run(sent, tracks: tracks)
    guard case .initialization(let initSegment)? = events.first else { throw BoxError(.missing("moov"), [], at: 0) }
    #expect(initSegment.tracks.map(\.id.rawValue) == [3, 4, 1, 2])
    #expect(initSegment.interleaved == InitSegment(version: 1, tracks: Array(tracks.prefix(2))).whole)
    let fragments = fragments(events)
    #expect(fragments.count == 25 && fragments.allSatisfy { $0.leader == further.id })
    #expect(fragments.dropLast().allSatisfy { $0.runs.map(\.track.rawValue) == [3, 4, 1, 2] })
    for track in [TrackID(1), TrackID(3)] {
      #expect(fragments.compactMap { $0.run(of: track)?.samples.count }.reduce(0, +) == 150)
    }
  }

  @Test func noSampleIsLostDoubledOrMovedWhateverTheTracks() throws {
    let video = try SyntheticMedia.video()
    let audio = try SyntheticMedia.audio()
    let both = SyntheticMedia.interleaved(seconds: 5, offset: 2000)
    for tracks in [[video, audio], [video], [audio]] {
      let sent = both.filter { sample in tracks.contains { $0.id == sample.track } }
      let fragments = fragments(run(sent, tracks: tracks))
      for track in tracks {
        let runs = fragments.compactMap { $0.run(of: track.id) }
        var times: [Int64] = []
        for run in runs {
          var time = run.baseDecodeTime
          for sample in run.samples {
            times.append(time)
            time += Int64(sample.duration)
          }
        }
        #expect(times == sent.filter { $0.track == track.id }.map(\.decodeTime))
      }
      let bytes = fragments.flatMap(\.payloads).reduce(0) { $0 + $1.readableBytes }
      #expect(bytes == sent.reduce(0) { $0 + $1.payload.readableBytes })
    }
  }

  @Test func decodeTimesOfATrackContinueFromFragmentToFragment() throws {
    let events = run(
      SyntheticMedia.interleaved(seconds: 5), tracks: [try SyntheticMedia.video(), try SyntheticMedia.audio()])
    for track in [TrackID.video, .audio] {
      let runs = fragments(events).compactMap { $0.run(of: track) }
      #expect(zip(runs, runs.dropFirst()).allSatisfy { $0.endDecodeTime == $1.baseDecodeTime })
    }
  }

  @Test func audioIsCutWithTheVideoWithinOneFrameAlsoWhenItArrivesLater() throws {
    let samples = SyntheticMedia.interleaved(seconds: 6)
    let frames = samples.filter { $0.track == .video }
    let audioSamples = samples.filter { $0.track == .audio }
    // Every audio comes 150 ms after its time.
    var late: [(MediaTime, Sample)] = frames.map { (MediaTime(ticks: $0.decodeTime, timescale: 30_000), $0) }
    late += audioSamples.map {
      (MediaTime(ticks: $0.decodeTime, timescale: 48_000) + MediaTime(milliseconds: 150), $0)
    }
    let ordered = late.sorted { $0.0 < $1.0 }.map(\.1)
    let events = run(ordered, tracks: [try SyntheticMedia.video(), try SyntheticMedia.audio()])
    for fragment in fragments(events) where fragment.startsSegment {
      let video = try #require(fragment.run(of: .video))
      let audio = try #require(fragment.run(of: .audio))
      let distance =
        audio.baseDecodeTime - MediaTime(ticks: video.baseDecodeTime, timescale: 30_000).rescaled(to: 48_000)
      #expect((0..<1024).contains(distance))
    }
  }

  @Test func silenceNeverStallsTheVideo() throws {
    let frames = (0..<180).map { SyntheticMedia.frame($0) }
    var segmenter = Segmenter()
    _ = segmenter.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
    var emitted = 0
    for frame in frames {
      emitted += fragments(segmenter.receive(.sample(frame))).reduce(0) { $0 + $1.runs[0].samples.count }
      // Part, patience and the frame that closes the part.
      #expect(Int(frame.decodeTime) / 1000 - emitted <= 6 + 10 + 2)
    }
  }

  @Test func videoThatStopsNeverStallsTheAudio() throws {
    var segmenter = Segmenter()
    _ = segmenter.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
    var out: [Fragment] = []
    for sample in SyntheticMedia.interleaved(seconds: 2) { out += fragments(segmenter.receive(.sample(sample))) }
    for index in 93..<800 { out += fragments(segmenter.receive(.sample(SyntheticMedia.audio(index)))) }
    let last = try #require(out.compactMap { $0.run(of: .audio) }.last)
    #expect(last.endDecodeTime >= 796 * 1024 - 3 * 48_000 - 48_000)
    // The video comes back in mid-group and continues behind what stood in for it.
    for index in 512..<640 { out += fragments(segmenter.receive(.sample(SyntheticMedia.frame(index)))) }
    let runs = out.compactMap { $0.run(of: .video) }
    #expect(zip(runs, runs.dropFirst()).allSatisfy { $0.endDecodeTime <= $1.baseDecodeTime })
    #expect(runs.last?.baseDecodeTime ?? 0 > 600_000)
  }

  @Test func nothingIsEmittedBeforeTheFirstKeyFrame() throws {
    let samples = (7..<200).map { SyntheticMedia.frame($0) }
    let fragments = fragments(run(samples, tracks: [try SyntheticMedia.video()]))
    #expect(fragments.first?.runs[0].baseDecodeTime == 60_000)
    #expect(fragments.first?.isIndependent == true)
  }

  @Test func aGroupLongerThanTheLimitIsCutWithoutAKeyFrame() throws {
    let policy = CutPolicy(wholeSecondLimit: 2)
    let samples = (0..<300).map { SyntheticMedia.frame($0, group: 250) }
    let fragments = fragments(run(samples, tracks: [try SyntheticMedia.video()], policy: policy))
    let starts = fragments.filter(\.startsSegment)
    let lengths = zip(starts, starts.dropFirst()).map { $1.runs[0].baseDecodeTime - $0.runs[0].baseDecodeTime }
    #expect(lengths.allSatisfy { $0 <= 2499 * 30 })
    #expect(starts.map(\.isIndependent) == [true, false, false, false, false, true])
  }

  @Test func shortGroupsFillASegmentUpToItsTargetAndNotBeyondItsLimit() throws {
    // Groups of 1.5 s with a target of 2 s and a limit of 2.499 s: one group a segment.
    let policy = CutPolicy(wholeSecondLimit: 2)
    let samples = (0..<300).map { SyntheticMedia.frame($0, group: 45) }
    let starts = fragments(run(samples, tracks: [try SyntheticMedia.video()], policy: policy)).filter(\.startsSegment)
    let lengths = zip(starts, starts.dropFirst()).map { $1.runs[0].baseDecodeTime - $0.runs[0].baseDecodeTime }
    #expect(lengths.dropFirst().allSatisfy { $0 == 45_000 })
    #expect(starts.allSatisfy { $0.isIndependent })
  }

  @Test func equalTracksAgainChangeNothing() throws {
    let video = try SyntheticMedia.video()
    var segmenter = Segmenter()
    var events = segmenter.receive(.tracks([video]))
    for index in 0..<120 {
      if index % 10 == 0 { events += segmenter.receive(.tracks([video])) }
      events += segmenter.receive(.sample(SyntheticMedia.frame(index)))
    }
    #expect(events.filter { if case .initialization = $0 { true } else { false } }.count == 1)
    #expect(!events.contains { if case .discontinuity = $0 { true } else { false } })
  }

  @Test func otherTracksEndTheSegmentAndBringANewInitSegmentBehindADiscontinuity() throws {
    var segmenter = Segmenter()
    var events = segmenter.receive(.tracks([try SyntheticMedia.video()]))
    for index in 0..<45 { events += segmenter.receive(.sample(SyntheticMedia.frame(index))) }
    let change = segmenter.receive(.tracks([try SyntheticMedia.video(timescale: 60_000, frameDuration: 1000)]))
    let names = change.map { event in
      switch event {
      case .fragment: "fragment"
      case .segmentEnd: "segmentEnd"
      case .discontinuity: "discontinuity"
      case .initialization(let segment): "init \(segment.version)"
      default: "other"
      }
    }
    #expect(names == ["fragment", "segmentEnd", "discontinuity", "init 2"])
  }

  /// No segment has audio from before its beginning, and no frame of the video is lost.
  @Test func audioThatJoinsInMidGroupBeginsWithTheNextKeyFrame() throws {
    let video = try SyntheticMedia.video()
    var segmenter = Segmenter()
    var events = segmenter.receive(.tracks([video]))
    // Audio comes with frame 75, half a second after a key frame.
    let audioSamples = (117..<300).map { SyntheticMedia.audio($0) }
    var nextAudio = 0
    for index in 0..<180 {
      if index == 75 { events += segmenter.receive(.tracks([video, try SyntheticMedia.audio()])) }
      events += segmenter.receive(.sample(SyntheticMedia.frame(index)))
      while index >= 75, nextAudio < audioSamples.count,
        audioSamples[nextAudio].decodeTime * 30 <= Int64(index) * 48_000
      {
        events += segmenter.receive(.sample(audioSamples[nextAudio]))
        nextAudio += 1
      }
    }
    events += segmenter.receive(.end(.finished))
    let fragments = fragments(events)
    let frames = fragments.compactMap { $0.run(of: .video) }.reduce(0) { $0 + $1.samples.count }
    #expect(frames == 180)
    let heard = fragments.compactMap { $0.run(of: .audio) }
    // The one that the key frame, at 192000, lies in.
    let first = try #require(audioSamples.firstIndex { $0.decodeTime == 187 * 1024 })
    #expect(heard.first?.baseDecodeTime == Int64(187 * 1024))
    #expect(heard.reduce(0) { $0 + $1.samples.count } == nextAudio - first)
    let change = try #require(events.firstIndex { if case .discontinuity = $0 { true } else { false } })
    guard case .initialization(let segment) = events[change + 1], case .fragment(let join) = events[change + 2] else {
      Issue.record("a discontinuity, the new init segment, then a fragment")
      return
    }
    #expect(segment.tracks.count == 2)
    #expect(join.isIndependent)
    #expect(join.run(of: .video)?.baseDecodeTime == 120_000)
  }

  /// The key frame that waiting tracks join at never comes when the publisher is lost or ends before it.
  @Test(arguments: [MediaEvent.discontinuity, .end(.finished)])
  func audioThatWaitsForAKeyFrameIsBroughtOutAtTheEnd(_ last: MediaEvent) throws {
    let video = try SyntheticMedia.video()
    var segmenter = Segmenter()
    _ = segmenter.receive(.tracks([video]))
    for index in 0..<75 { _ = segmenter.receive(.sample(SyntheticMedia.frame(index))) }
    _ = segmenter.receive(.tracks([video, try SyntheticMedia.audio()]))
    for index in 117..<130 { _ = segmenter.receive(.sample(SyntheticMedia.audio(index))) }
    let names = segmenter.receive(last).map { event in
      switch event {
      case .fragment(let fragment):
        "fragment of " + fragment.runs.map { "\($0.track.rawValue):\($0.samples.count)" }.joined(separator: " ")
      case .segmentEnd: "segmentEnd"
      case .discontinuity: "discontinuity"
      case .initialization(let segment): "init \(segment.version)"
      case .end: "end"
      default: "other"
      }
    }
    let expected = [
      "fragment of 1:3", "segmentEnd", "discontinuity", "init 2", "fragment of 2:13", "segmentEnd",
    ]
    if case .end = last {
      #expect(names == expected + ["end"])
    } else {
      #expect(names == expected + ["discontinuity"])
    }
  }

  /// Key frames every two seconds, and one that a viewer asked for.
  @Test(arguments: 1..<120)
  func eachSegmentBeginsWithAKeyFrameWhereverOneIsAskedFor(asked: Int) throws {
    var policy = CutPolicy(wholeSecondLimit: 2)
    policy.syncDistance = MediaTime(milliseconds: 2000)
    let samples = (0..<400).map { index in
      var frame = SyntheticMedia.frame(index, isSteady: true)
      if index == asked { frame.isSync = true }
      return frame
    }
    let starts = fragments(run(samples, tracks: [try SyntheticMedia.video()], policy: policy)).filter(\.startsSegment)
    #expect(starts.count >= 6 && starts.allSatisfy { $0.isIndependent })
  }

  @Test(arguments: [
    (15, 2.0), (25, 1.666667), (41, 1.366667), (45, 1.5), (58, 1.933333), (60, 2.0), (75, 2.5), (250, 8.333333),
  ])
  func theFirstGroupAlreadyLetsItselfThrough(group: Int, length: Double) throws {
    let samples = (0..<900).map { SyntheticMedia.frame($0, group: group) }
    let starts = fragments(run(samples, tracks: [try SyntheticMedia.video()])).filter(\.startsSegment)
    #expect(starts.allSatisfy { $0.isIndependent })
    let lengths = zip(starts, starts.dropFirst()).map { $1.start.seconds - $0.start.seconds }
    #expect(lengths.dropLast().allSatisfy { abs($0 - length) < 0.001 }, "\(lengths)")
  }

  @Test func aForcedCutFallsWhereTheFrameOrderAllowsIt() throws {
    // I P B B …: decode order 0 3 1 2 6 4 5, three frames of reordering at most.
    var order = [0]
    for group in 0..<99 { order += [3 * group + 3, 3 * group + 1, 3 * group + 2] }
    var samples: [Sample] = []
    for (index, shown) in order.enumerated() {
      let offset = Int32(shown + 1 - index) * 1000
      samples.append(
        Sample(
          track: .video, decodeTime: Int64(index) * 1000, compositionOffset: offset, isSync: index == 0,
          payload: ByteBuffer(repeating: 1, count: 10)))
    }
    let policy = CutPolicy(wholeSecondLimit: 2)
    let fragments = fragments(run(samples, tracks: [try SyntheticMedia.video()], policy: policy))
    var start: Int64?
    for fragment in fragments {
      guard fragment.startsSegment else { continue }
      let earliest = fragment.start.rescaled(to: 30_000)
      if let start { #expect(earliest > start) }
      start = earliest
    }
    let ends = zip(fragments, fragments.dropFirst()).filter { $1.startsSegment }
    #expect(ends.count >= 3)
    #expect(ends.allSatisfy { $0.end == $1.start }, "no hole and no overlap between segments")
  }

  @Test func aClockThatDoesNotMoveCannotMakeAFragmentGrow() throws {
    let samples = (0..<10_000).map { index in
      Sample(track: .video, decodeTime: 0, isSync: index == 0, payload: ByteBuffer(repeating: 1, count: 10))
    }
    let fragments = fragments(run(samples, tracks: [try SyntheticMedia.video()]))
    #expect(fragments.allSatisfy { $0.runs[0].samples.count <= CutPolicy.fragmentSampleLimit + 1 })
    #expect(fragments.flatMap(\.runs).allSatisfy { $0.samples.allSatisfy { $0.duration > 0 } })
  }

  @Test func theDistanceOfKeyFramesIsToldWhenItGrows() throws {
    let samples = (0..<300).map { SyntheticMedia.frame($0, group: 60) }
    let groups = run(samples, tracks: [try SyntheticMedia.video()]).compactMap { event -> MediaTime? in
      if case .groupOfPictures(let time) = event { time } else { nil }
    }
    #expect(groups == [MediaTime(milliseconds: 2000)])
  }

  /// The camera stands still two frames before the end of a segment, and the audio goes on for longer than the segment may.
  @Test func audioAloneAtTheEndNeedsNoOtherSegment() throws {
    var segmenter = Segmenter()
    var events = segmenter.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
    for sample in SyntheticMedia.interleaved(seconds: 6, isSteady: true)
    where sample.decodeTime < (sample.track == .video ? 118_000 : 240_000) {
      events += segmenter.receive(.sample(sample))
    }
    let starts = fragments(events + segmenter.interrupt()).filter(\.startsSegment)
    #expect(starts.map(\.isIndependent) == [true, true, false], "a part without a picture is no place to join")
    #expect(starts.allSatisfy { $0.beginsIndependently })
    #expect(starts.last?.run(of: .video) == nil)
  }
}
