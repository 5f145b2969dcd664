import FMP4
import NIOCore
import Support
import Testing

/// A fragment of a constant rate is complete with its last sample, not with the one after.
@Suite struct PredictedEndTests {
  private func segmenter(_ tracks: [TrackDescription], policy: CutPolicy = CutPolicy()) -> Segmenter {
    var segmenter = Segmenter(policy: policy)
    _ = segmenter.receive(.tracks(tracks))
    return segmenter
  }

  private func name(_ event: FragmentEvent) -> String {
    switch event {
    case .fragment(let fragment):
      "fragment of \(fragment.runs.first?.samples.count ?? 0)" + (fragment.isExpectedLast ? ", the last" : "")
    case .segmentEnd: "segmentEnd"
    case .groupOfPictures: "group"
    default: "other"
    }
  }

  @Test func aFragmentIsThereWithItsLastSample() throws {
    var segmenter = segmenter([try SyntheticMedia.video()])
    for index in 0..<5 {
      #expect(segmenter.receive(.sample(SyntheticMedia.frame(index, isSteady: true))).isEmpty)
    }
    #expect(segmenter.receive(.sample(SyntheticMedia.frame(5, isSteady: true))).map(name) == ["fragment of 6"])
    #expect(segmenter.receive(.sample(SyntheticMedia.frame(6, isSteady: true))).isEmpty)
  }

  @Test func withoutAStatedDurationTheNextSampleIsWaitedFor() throws {
    var segmenter = segmenter([try SyntheticMedia.video()])
    for index in 0..<6 { #expect(segmenter.receive(.sample(SyntheticMedia.frame(index))).isEmpty) }
    #expect(segmenter.receive(.sample(SyntheticMedia.frame(6))).map(name) == ["fragment of 6"])
  }

  /// The first two distances of key frames are learned; from then on the end of a segment is predicted.
  @Test func theEndOfASegmentIsPredictedOnceTheKeyFramesAreSteady() throws {
    var segmenter = segmenter([try SyntheticMedia.video()])
    var names: [Int: [String]] = [:]
    for index in 0..<241 {
      names[index] = segmenter.receive(.sample(SyntheticMedia.frame(index, isSteady: true))).map(name)
    }
    #expect(names[59] == [])
    #expect(names[60] == ["group", "fragment of 6, the last", "segmentEnd"])
    #expect(names[119] == [])
    #expect(names[179] == ["fragment of 6, the last"])
    #expect(names[180] == ["segmentEnd"])
    #expect(names[239] == ["fragment of 6, the last"])
    #expect(names[240] == ["segmentEnd"])
  }

  /// The playlist has promised no longer segment, so it is cut without a key frame; the next one comes in step again.
  @Test func whereTheExpectedKeyFrameDoesNotComeTheSegmentEndsAllTheSame() throws {
    var segmenter = segmenter([try SyntheticMedia.video()])
    var names: [Int: [String]] = [:]
    var starts: [Bool] = []
    for index in 0..<310 {
      var frame = SyntheticMedia.frame(index, isSteady: true)
      if index == 180 { frame.isSync = false }
      let events = segmenter.receive(.sample(frame))
      names[index] = events.map(name)
      for case .fragment(let fragment) in events where fragment.startsSegment { starts.append(fragment.isIndependent) }
    }
    #expect(names[179] == ["fragment of 6, the last"])
    #expect(names[180] == ["segmentEnd"])
    #expect(starts == [true, true, true, false, true, true])
  }

  @Test(arguments: [-400, -1, 1, 400, 5000, 150_000])
  func afterAWrongGuessDecodeTimesContinueAndPresentationTimesAreExact(_ shift: Int64) throws {
    var segmenter = segmenter([try SyntheticMedia.video()])
    var events: [FragmentEvent] = []
    var presented: [Int64] = []
    for index in 0..<240 {
      var frame = SyntheticMedia.frame(index, offset: 2000, isSteady: true)
      // The sixth frame closes a fragment; what follows comes earlier or later than predicted.
      if index >= 6 { frame.decodeTime += shift }
      presented.append(frame.decodeTime + Int64(frame.compositionOffset))
      events += segmenter.receive(.sample(frame))
    }
    events += segmenter.receive(.end(.finished))
    let runs = events.compactMap { if case .fragment(let fragment) = $0 { fragment.runs.first } else { nil } }
    var next = runs[0].baseDecodeTime
    var times: [Int64] = []
    for run in runs {
      #expect(run.baseDecodeTime == next)
      next = run.baseDecodeTime
      for sample in run.samples {
        times.append(next + Int64(sample.compositionOffset))
        next += Int64(sample.duration)
      }
    }
    #expect(times == presented)
  }

  @Test func partsHoldTheSmallestNumberOfFramesThatReachesTheTargetAndNeverMore() throws {
    for (timescale, frame, expected) in [
      (24_000, 1001, 5), (24_000, 1000, 5), (25_000, 1000, 5), (30_000, 1001, 6), (30_000, 1000, 6), (50_000, 1000, 10),
      (60_000, 1001, 12), (5000, 1000, 1), (2000, 1000, 1),
    ] as [(UInt32, Int64, Int)] {
      var segmenter = segmenter([try SyntheticMedia.video(timescale: timescale, frameDuration: UInt32(frame))])
      let limit = try #require(segmenter.policy.partLimit)
      #expect(limit == MediaTime(ticks: Int64(expected) * frame, timescale: timescale))
      for index in 0..<200 {
        let events = segmenter.receive(.sample(SyntheticMedia.frame(index, duration: frame, isSteady: true)))
        for case .fragment(let fragment) in events { #expect(fragment.runs[0].samples.count <= expected) }
      }
    }
  }

  /// Frames of another rate than the first keep to the parts that playlists have promised.
  @Test func aVariableRateNeverMakesAPartLongerThanItsLimitWhereFramesAllowIt() throws {
    var segmenter = segmenter([try SyntheticMedia.video(timescale: 90_000, frameDuration: nil)])
    var time: Int64 = 0
    var lengths: [Double] = []
    for index in 0..<600 {
      var frame = SyntheticMedia.frame(index)
      frame.decodeTime = time
      time += [2970, 3060, 2970, 3000][index % 4]
      for case .fragment(let fragment) in segmenter.receive(.sample(frame)) {
        lengths.append(Double(fragment.runs[0].duration) / 90_000)
      }
    }
    #expect(lengths.count > 90)
    let limit = try #require(segmenter.policy.partLimit)
    #expect(limit.seconds >= 0.2 && limit.seconds * 0.85 <= 0.2001)
    #expect(lengths.allSatisfy { $0 <= limit.seconds + 1e-6 })
  }

  @Test func whereTracksAreDeliveredAloneTheAudioIsCutWithTheVideo() throws {
    var segmenter = segmenter(
      [try SyntheticMedia.video(), try SyntheticMedia.audio()], policy: CutPolicy(fragmentsWaitForFollowers: true))
    var fragments: [Fragment] = []
    for sample in SyntheticMedia.interleaved(seconds: 12, isSteady: true) {
      for case .fragment(let fragment) in segmenter.receive(.sample(sample)) { fragments.append(fragment) }
    }
    #expect(fragments.count >= 58)
    for fragment in fragments {
      let audio = try #require(fragment.run(of: .audio))
      #expect(abs(Double(audio.duration) / 48_000 - 0.2) <= 1024.0 / 48_000)
      #expect(audio.baseDecodeTime * 30 >= (fragment.runs[0].baseDecodeTime / 1000 - 1) * 48_000)
    }
    let limit = try #require(segmenter.policy.partLimit)
    #expect(fragments.allSatisfy { Double($0.runs[1].duration) / 48_000 <= limit.seconds })
    #expect(fragments.allSatisfy { $0.runs[0].duration >= Int64(limit.seconds * 0.85 * 30_000) })
  }

  @Test func noSampleIsLostDoubledOrMovedByPrediction() throws {
    var segmenter = segmenter([try SyntheticMedia.video(), try SyntheticMedia.audio()])
    let samples = SyntheticMedia.interleaved(seconds: 11, group: 45, isSteady: true)
    var events: [FragmentEvent] = []
    for sample in samples { events += segmenter.receive(.sample(sample)) }
    events += segmenter.receive(.end(.finished))
    for track in [TrackID.video, .audio] {
      var times: [Int64] = []
      for case .fragment(let fragment) in events {
        guard let run = fragment.run(of: track) else { continue }
        var time = run.baseDecodeTime
        for sample in run.samples {
          times.append(time)
          time += Int64(sample.duration)
        }
      }
      #expect(times == samples.filter { $0.track == track }.map(\.decodeTime))
    }
  }
}
