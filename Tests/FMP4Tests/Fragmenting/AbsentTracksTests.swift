@testable import FMP4
import NIOCore
import Support
import Testing

/// How long fragments wait for tracks beside the leading one, in media time: samples come in the order of their arrival.
@Suite struct AbsentTracksTests {
  private static let further = TrackID(.audio, 2)
  /// A frame of 30 a second, in milliseconds, rounded up.
  private static let frame: Int64 = 34

  private typealias Arrival = (at: Int64, sample: Sample)

  private func milliseconds(_ sample: Sample) -> Int64 {
    MediaTime(ticks: sample.decodeTime, timescale: sample.track == .video ? 30_000 : 48_000).rescaled(to: 1000)
  }

  /// Video and two tracks of audio. `arrival` says when a sample of the further audio comes; nil: never.
  private func samples(seconds: Int, arrival: (_ milliseconds: Int64) -> Int64?) -> [Arrival] {
    let all = SyntheticMedia.interleaved(seconds: seconds, isSteady: true, furtherAudios: [Self.further])
    let arrivals = all.compactMap { sample -> Arrival? in
      let time = milliseconds(sample)
      guard sample.track == Self.further else { return (time, sample) }
      return arrival(time).map { ($0, sample) }
    }
    return arrivals.enumerated().sorted { ($0.element.at, $0.offset) < ($1.element.at, $1.offset) }.map(\.element)
  }

  private func segmenter(_ more: [TrackDescription] = []) throws -> Segmenter {
    var segmenter = Segmenter(policy: CutPolicy(fragmentsWaitForFollowers: true))
    let tracks = [try SyntheticMedia.video(), try SyntheticMedia.audio(), try SyntheticMedia.audio(Self.further)]
    _ = segmenter.receive(.tracks(more.isEmpty ? tracks : more))
    return segmenter
  }

  private func fragments(_ events: [FragmentEvent]) -> [Fragment] {
    events.compactMap { if case .fragment(let fragment) = $0 { fragment } else { nil } }
  }

  /// The fragments, each with its end and how long after it the fragment came, in milliseconds.
  private func emitted(
    _ arrivals: [Arrival], by segmenter: inout Segmenter
  ) -> [(fragment: Fragment, end: Int64, delay: Int64)] {
    var found: [(Fragment, Int64, Int64)] = []
    for (time, sample) in arrivals {
      for fragment in fragments(segmenter.receive(.sample(sample))) {
        let end = fragment.end.rescaled(to: 1000)
        found.append((fragment, end, time - end))
      }
    }
    return found
  }

  /// Without a state of its own each fragment from there on would come 0.3 s late.
  @Test func aTrackThatFallsSilentHoldsOneFragmentAndThenNone() throws {
    var segmenter = try segmenter()
    let found = emitted(samples(seconds: 14) { (5000..<9000).contains($0) ? nil : $0 }, by: &segmenter)
    #expect(found.count > 50)
    for (_, end, delay) in found {
      let isFirst = (5000..<5250).contains(end)
      #expect(delay <= (isFirst ? 200 + Self.frame : 0), "up to \(end) ms")
    }
  }

  @Test func itIsAwaitedAgainWhenItsSamplesComeAndNoneIsLost() throws {
    var segmenter = try segmenter()
    // From nine seconds on each comes 40 ms late.
    let sent = samples(seconds: 14) { $0 < 5000 ? $0 : $0 < 9000 ? nil : $0 + 40 }
    let found = emitted(sent, by: &segmenter)
    for (fragment, end, _) in found where end > 9500 {
      let run = try #require(fragment.run(of: Self.further), "up to \(end) ms")
      #expect(run.endDecodeTime / 48 >= end, "up to \(end) ms")
    }
    let rest = fragments(segmenter.receive(.end(.finished)))
    let all = (found.map(\.fragment) + rest).reduce(0) { $0 + ($1.run(of: Self.further)?.samples.count ?? 0) }
    #expect(all == sent.count { $0.sample.track == Self.further })
  }

  @Test func aTrackThatNeverComesHoldsTheFirstFragmentAlone() throws {
    var segmenter = try segmenter()
    let found = emitted(samples(seconds: 6) { _ in nil }, by: &segmenter)
    #expect(found.count > 20)
    for (_, end, delay) in found { #expect(delay <= (end < 550 ? 300 + Self.frame : 0), "up to \(end) ms") }
  }

  @Test func aTrackThatAlwaysLagsIsAwaited() throws {
    var segmenter = try segmenter()
    let found = emitted(samples(seconds: 12) { $0 + 250 }, by: &segmenter)
    for (fragment, end, delay) in found where end > 1000 && end < 11_000 {
      #expect(delay <= 250 && (fragment.run(of: Self.further)?.endDecodeTime ?? 0) / 48 >= end, "up to \(end) ms")
    }
  }

  @Test func aVideoOfOneFrameASecondHoldsNothing() throws {
    var slides = try SyntheticMedia.video(timescale: 1000, frameDuration: nil)
    slides.id = TrackID(.video, 2)
    var segmenter = try segmenter([try SyntheticMedia.video(), try SyntheticMedia.audio(), slides])
    var arrivals = samples(seconds: 12) { _ in nil }
    for second in 0..<12 {
      let time = Int64(second) * 1000
      let sample = Sample(
        track: slides.id, decodeTime: time, isSync: true, payload: ByteBuffer(repeating: 1, count: 50))
      arrivals.insert((time, sample), at: arrivals.firstIndex { $0.at > time } ?? arrivals.endIndex)
    }
    let found = emitted(arrivals, by: &segmenter)
    for (_, end, delay) in found where end > 600 { #expect(delay <= 0, "up to \(end) ms") }
    #expect(found.reduce(0) { $0 + ($1.fragment.run(of: slides.id)?.samples.count ?? 0) } >= 10)
  }

  @Test func whereTheVideoStopsASilentTrackDoesNotHoldTheOther() throws {
    var segmenter = try segmenter()
    var newest: Int64 = 0
    for (_, sample) in samples(seconds: 20, arrival: { $0 < 3000 ? $0 : nil })
    where sample.track == .audio || sample.decodeTime < 90_000 {
      for fragment in fragments(segmenter.receive(.sample(sample))) {
        newest = fragment.run(of: .audio)?.endDecodeTime ?? newest
      }
    }
    // What has piled up while the video was awaited goes out at one part's length a part.
    #expect(newest / 48 >= 12_000, "\(newest / 48) ms")
  }

  /// From two to six seconds nothing of it comes, and then all at once.
  @Test func aTrackThatWasLateCatchesUpInPartsOfAllowedLength() throws {
    var segmenter = try segmenter()
    let found = emitted(samples(seconds: 12) { (2000..<6000).contains($0) ? 6000 : $0 }, by: &segmenter)
    let rest = fragments(segmenter.receive(.end(.finished)))
    let limit = try #require(segmenter.policy.partLimit).rescaled(to: 48_000)
    let all = (found.map(\.fragment) + rest)
    let runs = all.compactMap { $0.run(of: Self.further) }
    #expect(runs.allSatisfy { $0.duration <= limit }, "\(runs.map(\.duration)), of \(limit)")
    #expect(runs.reduce(0) { $0 + $1.samples.count } == 12 * 48_000 / 1024)
    #expect(zip(runs, runs.dropFirst()).allSatisfy { $0.endDecodeTime == $1.baseDecodeTime })
    // Half a second after its return it is where the video is.
    let back = try #require(found.last { $0.end <= 6500 && !$0.fragment.isAside })
    #expect((back.fragment.run(of: Self.further)?.endDecodeTime ?? 0) / 48 > back.end - 300, "\(back.end) ms")
    // The default tracks have no parts beside those of the video.
    #expect(all.allSatisfy { !$0.isAside || $0.runs.allSatisfy { $0.track == Self.further } })
  }

  /// The first audio comes when the stream is about to end.
  @Test(arguments: [TrackID.audio, Self.further])
  func whatIsLeftAtTheEndHasPartsOfAllowedLength(_ late: TrackID) throws {
    var segmenter = try segmenter()
    var events: [FragmentEvent] = []
    let all = samples(seconds: 8) { $0 }.map(\.sample)
    let isLate = { (sample: Sample) in sample.track == late && sample.decodeTime >= 96_000 }
    for sample in all.filter({ !isLate($0) }) + all.filter(isLate) { events += segmenter.receive(.sample(sample)) }
    events += segmenter.receive(.end(.finished))
    let limit = try #require(segmenter.policy.partLimit).rescaled(to: 48_000)
    let runs = fragments(events).compactMap { $0.run(of: late) }
    #expect(runs.allSatisfy { $0.duration <= limit }, "\(runs.map(\.duration)), of \(limit)")
    #expect(runs.reduce(0) { $0 + $1.samples.count } == 8 * 48_000 / 1024)
  }

  @Test func whenNothingComesTheClockEndsTheWait() throws {
    var segmenter = try segmenter()
    let sent = samples(seconds: 6) { $0 }
    let end = try #require(sent.firstIndex { $0.sample.track == .video && $0.sample.decodeTime >= 124_000 })
    _ = emitted(Array(sent[..<end]), by: &segmenter)
    // A frame that ends a fragment, and no audio beside it.
    var waiting: Int64 = 0
    for index in 124..<160 where segmenter.closing.isEmpty {
      #expect(fragments(segmenter.receive(.sample(SyntheticMedia.frame(index, isSteady: true)))).isEmpty)
      waiting = segmenter.closing.first?.boundary.rescaled(to: 1000) ?? 0
    }
    #expect(waiting > 4000)
    #expect(segmenter.receive(.progress(MediaTime(milliseconds: waiting + 299))).isEmpty)
    #expect(fragments(segmenter.receive(.progress(MediaTime(milliseconds: waiting + 301)))).count == 1)
  }

  @Test func theLongestLagIsThreeTimesTheUsualOneWithinBounds() {
    func longest(_ lags: [Int64]) -> Int64 {
      var presence = FollowerPresence()
      for lag in lags { presence.came(after: lag) }
      return presence.longestLag
    }
    #expect(longest(Array(repeating: 20_000, count: 63)) == 300_000)
    #expect(longest(Array(repeating: 20_000, count: 64)) == 200_000)
    #expect(longest(Array(repeating: 20_000, count: 63) + [80_000]) == 240_000)
    #expect(longest([80_000] + Array(repeating: 20_000, count: 127)) == 200_000)
    #expect(longest(Array(repeating: 250_000, count: 64)) == 300_000)
    #expect(longest(Array(repeating: -500_000, count: 64)) == 200_000)
    var presence = FollowerPresence()
    presence.fellSilent()
    presence.came(after: 300_001)
    #expect(presence.isAbsent)
    presence.came(after: 300_000)
    #expect(!presence.isAbsent)
  }
}
