@testable import FMP4
import NIOCore
import Support
import Testing

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

  /// The end of its segment is predicted, and its fragments are out before it is known that the track ends there.
  @Test func aTrackThatGoesHasAllThatItSentAlsoAheadOfTheOthers() throws {
    // The further audio comes 0.3 s before the video of its time.
    let ahead = Int64(3 * 4800)
    let samples = SyntheticMedia.interleaved(seconds: 12, isSteady: true, furtherAudios: [Self.further])
    let arrivals = samples.map { sample -> (time: MediaTime, sample: Sample) in
      guard sample.track == Self.further else {
        return (MediaTime(ticks: sample.decodeTime, timescale: sample.track == .video ? 30_000 : 48_000), sample)
      }
      return (MediaTime(ticks: sample.decodeTime - ahead, timescale: 48_000), sample)
    }
    let ordered = arrivals.enumerated().sorted {
      $0.element.time == $1.element.time ? $0.offset < $1.offset : $0.element.time < $1.element.time
    }.map(\.element)
    var policy = CutPolicy(fragmentsWaitForFollowers: true)
    policy.keep(partLimit: MediaTime(milliseconds: 250))
    var segmenter = Segmenter(policy: policy)
    var events = segmenter.receive(.tracks(try both() + [further()]))
    var isChanged = false
    for (time, sample) in ordered {
      // The last frame of its segment has come, and the key frame behind it has not.
      if !isChanged, time > MediaTime(milliseconds: 5970) {
        isChanged = true
        events += segmenter.receive(.tracks(try both()))
      }
      if sample.track == Self.further, isChanged { continue }
      events += segmenter.receive(.sample(sample))
    }
    events += segmenter.receive(.end(.finished))
    try expectNobodyNotices(events)
    let sent = ordered.prefix { $0.time <= MediaTime(milliseconds: 5970) }.count { $0.sample.track == Self.further }
    #expect(times(events) == (0..<Int64(sent)).map { $0 * 1024 } && sent == 294)
  }

  /// A key frame every `group` frames, and a further audio from the second second on.
  private func late(seconds: Int, group: Int) throws -> [FragmentEvent] {
    var segmenter = Segmenter(policy: CutPolicy(fragmentsWaitForFollowers: true))
    var events = segmenter.receive(.tracks(try both()))
    var isChanged = false
    for sample in SyntheticMedia.interleaved(seconds: seconds, group: group, isSteady: true) {
      events += segmenter.receive(.sample(sample))
      guard sample.track == .audio, sample.decodeTime >= 96_000 else { continue }
      if !isChanged { events += segmenter.receive(.tracks(try both() + [further()])) }
      isChanged = true
      var other = sample
      other.track = Self.further
      events += segmenter.receive(.sample(other))
      #expect(segmenter.deferred?.samples.count ?? 0 <= CutPolicy.deferredSampleLimit)
    }
    return events + segmenter.receive(.end(.finished))
  }

  /// The fragment behind the second init segment.
  private func firstWithAll(_ events: [FragmentEvent]) -> Fragment? {
    let place = events.lastIndex {
      if case .initialization(let initSegment) = $0 { initSegment.version == 2 } else { false }
    }
    return place.flatMap { fragments(Array(events[$0...])).first }
  }

  /// A recording that goes on in another file begins with a key frame.
  @Test func tracksComeWithAKeyFrameWhereSegmentsAreCutWithoutOne() throws {
    let events = try late(seconds: 40, group: 450)
    #expect(fragments(events).contains { $0.startsSegment && !$0.isIndependent })
    let first = try #require(firstWithAll(events))
    #expect(first.isIndependent && first.start == MediaTime(milliseconds: 15_000))
    #expect(first.run(of: Self.further) != nil)
  }

  /// Without a key frame they come once the samples that wait are too many. Nobody misses what nobody has seen.
  @Test func withoutAKeyFrameTracksComeAfterSoManySamples() throws {
    let events = try late(seconds: 120, group: 1_000_000)
    #expect(!events.contains { if case .discontinuity = $0 { true } else { false } })
    let first = try #require(firstWithAll(events))
    #expect(!first.isIndependent && first.startsSegment && first.start.seconds > 89 && first.start.seconds < 111)
    let frames = fragments(events).reduce(0) { $0 + ($1.run(of: .video)?.samples.count ?? 0) }
    #expect(frames == 120 * 30)
  }

  @Test func samplesThatWaitAreBoundedInBytes() throws {
    var video = try SyntheticMedia.video()
    video.id = TrackID(.video, 2)
    var segmenter = Segmenter(policy: CutPolicy(fragmentsWaitForFollowers: true))
    var events = segmenter.receive(.tracks(try both()))
    let large = ByteBuffer(repeating: 0, count: 1 << 20)
    var most = 0
    for (index, sample) in SyntheticMedia.interleaved(seconds: 8, isSteady: true).enumerated() {
      if index == 200 { events += segmenter.receive(.tracks(try both() + [video])) }
      events += segmenter.receive(.sample(sample))
      guard index >= 200, sample.track == .video else { continue }
      var other = sample
      (other.track, other.payload) = (video.id, large)
      other.isSync = sample.decodeTime % 10_000 == 0
      events += segmenter.receive(.sample(other))
      most = max(most, segmenter.deferred?.samples.count ?? 0)
    }
    #expect(most == CutPolicy.deferredByteLimit >> 20 - 1)
    #expect(!events.contains { if case .discontinuity = $0 { true } else { false } })
    let run = try #require(fragments(events).compactMap { $0.run(of: video.id) }.first)
    #expect(run.samples.first?.isSync == true && run.baseDecodeTime == 120_000)
  }

  @Test func aVideoThatAwaitsItsSyncSampleStillDoesWhenAnotherTrackComes() throws {
    var video = try SyntheticMedia.video()
    video.id = TrackID(.video, 2)
    var segmenter = Segmenter(policy: CutPolicy(fragmentsWaitForFollowers: true))
    var events = segmenter.receive(.tracks(try both()))
    for (index, sample) in SyntheticMedia.interleaved(seconds: 14, isSteady: true).enumerated() {
      if index == 200 { events += segmenter.receive(.tracks(try both() + [video])) }
      if index == 400 { events += segmenter.receive(.tracks(try both() + [video, further()])) }
      events += segmenter.receive(.sample(sample))
      guard index >= 200, sample.track == .video else { continue }
      var other = sample
      // Its first key frame comes behind the second change.
      (other.track, other.isSync) = (video.id, sample.decodeTime == 260_000)
      events += segmenter.receive(.sample(other))
    }
    #expect(events.count { if case .initialization = $0 { true } else { false } } == 3)
    let runs = fragments(events).compactMap { $0.run(of: video.id) }
    #expect(runs.first?.samples.first?.isSync == true && runs.first?.baseDecodeTime == 260_000)
  }
}
