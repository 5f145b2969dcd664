import FMP4
import NIOCore
import Support
import Testing

/// What is told of a segment with its first fragment, and what it comes to.
@Suite struct PredictedSegmentTests {
  private struct Segment {
    /// Of its first fragment.
    var start: MediaTime
    var expectedDuration: MediaTime?
    var followersEnd: MediaTime?
    /// Decode times at which its frames and its audio end.
    var videoEnd = MediaTime.zero
    var audioStart: Int64?
    var audioEnd: Int64 = 0
    /// The sample with which its last fragment came out.
    var completedBy: TrackID?
  }

  /// Groups of two seconds; audio comes `lag` milliseconds after the frame of the same time.
  private func segments(
    lag: Int64, seconds: Int = 20, policy: CutPolicy = CutPolicy(), alignsFrom: MediaTime? = nil,
    group: (Int) -> Int = { _ in 60 }
  ) throws -> [Segment] {
    var segmenter = Segmenter(policy: policy)
    segmenter.alignsFrom = alignsFrom
    _ = segmenter.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
    let frames = (0..<seconds * 30).map { SyntheticMedia.frame($0, group: group($0), isSteady: true) }
    let audioSamples = (0..<seconds * 48_000 / 1024).map { SyntheticMedia.audio($0) }
    func arrival(_ sample: Sample) -> Int64 {
      sample.track == .video ? sample.decodeTime * 1600 : sample.decodeTime * 1000 + lag * 48_000
    }
    var segments: [Segment] = []
    for sample in (frames + audioSamples).sorted(by: { arrival($0) < arrival($1) }) {
      for case .fragment(let fragment) in segmenter.receive(.sample(sample)) {
        if fragment.startsSegment {
          segments.append(
            Segment(
              start: fragment.start, expectedDuration: fragment.expectedSegmentDuration,
              followersEnd: fragment.expectedFollowersEnd))
        }
        let newest = segments.count - 1
        segments[newest].videoEnd = fragment.end
        segments[newest].completedBy = sample.track
        guard let run = fragment.run(of: .audio) else { continue }
        segments[newest].audioStart = segments[newest].audioStart ?? run.baseDecodeTime
        segments[newest].audioEnd = run.endDecodeTime
      }
    }
    return segments.dropLast()
  }

  private func expectToldTrue(_ segment: Segment) throws {
    let duration = try #require(segment.expectedDuration)
    #expect(segment.start + duration == segment.videoEnd)
    let end = try #require(segment.followersEnd).rescaled(to: 48_000)
    #expect(segment.audioEnd >= end && segment.audioEnd - 1024 < end, "\(segment)")
  }

  @Test func nothingIsToldBeforeTheDistanceOfKeyFramesHasProvedSteady() throws {
    let told = try segments(lag: 0).map { $0.expectedDuration?.seconds }
    #expect(told == [nil, nil] + Array(repeating: 2, count: told.count - 2))
  }

  @Test(arguments: [-300, 0, 20, 45] as [Int64])
  func audioEndsWhereItWasToldAndNothingWaitsForIt(_ lag: Int64) throws {
    let segments = try segments(lag: lag).dropFirst(2)
    #expect(segments.count >= 6)
    for segment in segments {
      try expectToldTrue(segment)
      #expect(segment.completedBy == .video)
    }
  }

  /// Where something ends with a segment, as a file does that is split, all tracks end there.
  @Test(arguments: [0, 45] as [Int64])
  func tracksThatAreAlignedEndTogether(_ lag: Int64) throws {
    let segments = try segments(lag: lag, alignsFrom: MediaTime(milliseconds: 12_000)).dropFirst(2)
    for segment in segments { try expectToldTrue(segment) }
    for segment in segments where segment.videoEnd >= MediaTime(milliseconds: 12_000) {
      #expect(segment.followersEnd == segment.videoEnd && segment.completedBy == .audio)
    }
    #expect(segments.first.map { ($0.followersEnd ?? .zero) < $0.videoEnd } == true)
  }

  @Test(arguments: [100, 180] as [Int64])
  func lateAudioIsWaitedForOnceAndAllowedForAfterwards(_ lag: Int64) throws {
    let segments = try segments(lag: lag).dropFirst(2)
    for segment in segments { try expectToldTrue(segment) }
    #expect(segments.first?.completedBy == .audio)
    #expect(segments.dropFirst(2).allSatisfy { $0.completedBy == .video })
  }

  @Test func `audio that lags for longer than a fragment waits keeps every announcement`() throws {
    for segment in try segments(lag: 350).dropFirst(2) { try expectToldTrue(segment) }
  }

  @Test func deliveredAloneTheTracksEndTogether() throws {
    for segment in try segments(lag: 40, policy: CutPolicy(fragmentsWaitForFollowers: true)).dropFirst(2) {
      try expectToldTrue(segment)
      #expect(segment.followersEnd == segment.videoEnd)
    }
  }

  @Test func audioGoesOnInASegmentThatGrowsLongerThanTold() throws {
    // After 10 s a key frame is late by half a second.
    let segments = try segments(lag: 0) { $0 < 300 ? 60 : 315 }
    let longer = try #require(
      segments.first {
        $0.expectedDuration.map { $0.seconds } != $0.videoEnd.seconds - $0.start.seconds && $0.expectedDuration != nil
      })
    let end = longer.videoEnd.rescaled(to: 48_000)
    #expect(abs(longer.audioEnd - end) <= 48_000 / 10)
    for (a, b) in zip(segments, segments.dropFirst()) { #expect(a.audioEnd == b.audioStart) }
  }
}
