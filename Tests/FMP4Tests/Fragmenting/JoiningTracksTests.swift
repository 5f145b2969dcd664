import NIOCore
import Support
import Testing

@testable import FMP4

/// Tracks that come, go and change beside others, which go on.
@Suite struct JoiningTracksTests {
  private static let further = TrackID(.audio, 2)
  /// In a segment, 1 s after its start.
  private static let change = MediaTime(milliseconds: 5000)

  private func further(_ language: String = "deu") throws -> TrackDescription {
    var track = try SyntheticMedia.audio(Self.further)
    track.language = language
    return track
  }

  /// Twelve seconds with the further audio while `has` says so, and these tracks from the change on.
  private func run(
    from tracks: [TrackDescription], to changed: [TrackDescription], has: (_ isChanged: Bool) -> Bool
  ) throws -> [FragmentEvent] {
    var policy = CutPolicy(fragmentsWaitForFollowers: true)
    policy.keep(partLimit: MediaTime(milliseconds: 250))
    var segmenter = Segmenter(policy: policy)
    var events = segmenter.receive(.tracks(tracks))
    var isChanged = false
    for sample in SyntheticMedia.interleaved(seconds: 12, isSteady: true, furtherAudios: [Self.further]) {
      let time = MediaTime(ticks: sample.decodeTime, timescale: sample.track == .video ? 30_000 : 48_000)
      if !isChanged, time >= Self.change {
        isChanged = true
        events += segmenter.receive(.tracks(changed))
      }
      if sample.track == Self.further, !has(isChanged) { continue }
      events += segmenter.receive(.sample(sample))
    }
    return events + segmenter.receive(.end(.finished))
  }

  private func both() throws -> [TrackDescription] { [try SyntheticMedia.video(), try SyntheticMedia.audio()] }

  private func fragments(_ events: [FragmentEvent]) -> [Fragment] {
    events.compactMap { if case .fragment(let fragment) = $0 { fragment } else { nil } }
  }

  /// What the fragments have of the first video and audio.
  private func firstTracks(_ events: [FragmentEvent]) -> [String] {
    fragments(events).filter { !$0.isAside }.map { fragment in
      "\(fragment.startsSegment) \(fragment.start) \(fragment.end) "
        + [TrackID.video, .audio].map { id in
          fragment.run(of: id).map { "\($0.baseDecodeTime)+\($0.duration) \($0.samples.count)" } ?? "-"
        }.joined(separator: ", ")
    }
  }

  /// One new init segment, no discontinuity, and the first tracks as without a change.
  private func expectNobodyNotices(_ events: [FragmentEvent]) throws {
    let undisturbed = try run(from: both(), to: both()) { _ in false }
    #expect(firstTracks(events) == firstTracks(undisturbed))
    let inits = events.compactMap { if case .initialization(let initSegment) = $0 { initSegment } else { nil } }
    #expect(inits.map(\.version) == [1, 2] && inits.map(\.continues) == [false, true])
    #expect(!events.contains { if case .discontinuity = $0 { true } else { false } })
    let numbers = fragments(events).map(\.sequenceNumber)
    #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $0 < $1 })
    // A new init segment stands between the end of a segment and the beginning of the next one.
    let place = try #require(events.lastIndex { if case .initialization = $0 { true } else { false } })
    if case .segmentEnd = events[place - 1] {} else { Issue.record("\(events[place - 1])") }
  }

  private func times(_ events: [FragmentEvent]) -> [Int64] {
    fragments(events).compactMap { $0.run(of: Self.further) }.flatMap { run in
      run.samples.indices.map { run.baseDecodeTime + 1024 * Int64($0) }
    }
  }

  @Test func aTrackThatComesLaterBeginsWithTheNextSegment() throws {
    let events = try run(from: both(), to: both() + [further()]) { $0 }
    try expectNobodyNotices(events)
    let (first, own) = (try #require(fragments(events).first { $0.run(of: Self.further) != nil }), times(events))
    #expect(first.startsSegment && first.start == MediaTime(milliseconds: 6000))
    #expect(own.first == 281 * 1024 && own.last == 561 * 1024 && own.count == 281)
  }

  @Test func aTrackThatGoesHasAllThatItSent() throws {
    let events = try run(from: both() + [further()], to: both()) { !$0 }
    try expectNobodyNotices(events)
    #expect(times(events) == (0..<235).map { $0 * 1024 })
  }

  @Test func aTrackThatChangesLosesNothingAndItsPartsAreNotLonger() throws {
    let events = try run(from: both() + [further("deu")], to: both() + [further("fra")]) { _ in true }
    try expectNobodyNotices(events)
    #expect(times(events) == (0..<562).map { $0 * 1024 })
    let runs = fragments(events).compactMap { $0.run(of: Self.further) }
    #expect(runs.allSatisfy { $0.duration <= 12_000 })
    // What came in the second before the segment.
    #expect(fragments(events).count(where: \.isAside) == 5)
  }

  @Test func aChangeThatIsTakenBackIsNone() throws {
    var segmenter = Segmenter(policy: CutPolicy(fragmentsWaitForFollowers: true))
    var events = segmenter.receive(.tracks(try both()))
    for (index, sample) in SyntheticMedia.interleaved(seconds: 8, isSteady: true).enumerated() {
      if index == 100 { events += segmenter.receive(.tracks(try both() + [further()])) }
      if index == 110 { events += segmenter.receive(.tracks(try both())) }
      events += segmenter.receive(.sample(sample))
    }
    #expect(events.count { if case .initialization = $0 { true } else { false } } == 1)
  }

  @Test func aVideoThatComesLaterBeginsWithASyncSample() throws {
    var video = try SyntheticMedia.video()
    video.id = TrackID(.video, 2)
    var segmenter = Segmenter(policy: CutPolicy(fragmentsWaitForFollowers: true))
    var events = segmenter.receive(.tracks(try both()))
    for (index, sample) in SyntheticMedia.interleaved(seconds: 12, isSteady: true).enumerated() {
      if index == 200 { events += segmenter.receive(.tracks(try both() + [video])) }
      events += segmenter.receive(.sample(sample))
      guard index >= 200, sample.track == .video else { continue }
      var other = sample
      other.track = video.id
      other.isSync = sample.decodeTime % 60_000 == 20_000
      events += segmenter.receive(.sample(other))
    }
    let runs = fragments(events).compactMap { $0.run(of: video.id) }
    #expect(runs.first?.samples.first?.isSync == true && runs.first?.baseDecodeTime == 140_000)
    #expect(!events.contains { if case .discontinuity = $0 { true } else { false } })
  }
}
