@testable import FMP4
import NIOCore
import Support
import Testing

/// Frames of a variable rate, and what parts come of them.
@Suite struct VariableRateTests {
  /// `stated` is the frame duration that the publisher states, whatever it sends.
  private static func cut(
    _ times: [Int64], stated: UInt32? = nil, group: Int = 60, wholeSecondLimit: Int? = nil
  ) throws -> (fragments: [Fragment], limit: MediaTime) {
    var segmenter = Segmenter(policy: CutPolicy(wholeSecondLimit: wholeSecondLimit, startsEarly: true))
    var events = segmenter.receive(.tracks([try SyntheticMedia.video(frameDuration: stated)]))
    for (index, time) in times.enumerated() {
      let sample = Sample(
        track: .video, decodeTime: time, duration: stated, isSync: index % group == 0,
        payload: ByteBuffer(repeating: 1, count: 100))
      events += segmenter.receive(.sample(sample))
    }
    events += segmenter.receive(.end(.finished))
    let fragments = events.compactMap { event in if case .fragment(let fragment) = event { fragment } else { nil } }
    return (fragments, try #require(segmenter.policy.partLimit))
  }

  private func run(_ durations: [UInt32]) -> TrackRun {
    TrackRun(
      track: .video, timescale: 30_000, baseDecodeTime: 0,
      samples: durations.map { RunSample(size: 1, duration: $0, compositionOffset: 0, isSync: false) },
      byteCount: durations.count, duration: durations.reduce(0) { $0 + Int64($1) })
  }

  @Test func `Two fragments tell the median distance and the longest fragment`() throws {
    var rate = VariableRate()
    #expect(rate.learn(run([1000, 5000, 1000]), endsSegment: false) == nil)
    let learning = rate.learn(run([1000, 1100]), endsSegment: false)
    let learned = try #require(learning)
    #expect(learned.usual == MediaTime(ticks: 1000, timescale: 30_000))
    #expect(learned.longest == MediaTime(ticks: 7000, timescale: 30_000))
    let second = rate.learn(run([9000]), endsSegment: false)
    let further = try #require(second)
    #expect(further.usual == MediaTime(ticks: 1100, timescale: 30_000), "of 1000 1000 1000 1100 5000 9000")
    #expect(further.longest == MediaTime(ticks: 9000, timescale: 30_000))
  }

  @Test func `One fragment is enough where it is a whole segment, and none without frames`() throws {
    var rate = VariableRate()
    #expect(rate.learn(run([]), endsSegment: true) == nil)
    rate = VariableRate()
    let learning = rate.learn(run([3000]), endsSegment: true)
    let learned = try #require(learning)
    #expect(learned.usual == learned.longest && learned.usual.ticks == 3000)
  }

  /// 8, 12, 15, 20, 24, 30 and 60 frames a second, each a tenth sooner or later.
  @Test(arguments: [3750, 2500, 2000, 1500, 1250, 1000, 500] as [Int64])
  func partsKeepToTheLimitAndFillIt(_ distance: Int64) throws {
    let times = (0..<600).map { Int64($0) * distance + Int64($0 * 7919 % 11 - 5) * distance / 100 }
    let (fragments, limit) = try Self.cut(times)
    let parts = fragments.map { $0.duration.seconds / limit.seconds }
    #expect(parts.allSatisfy { $0 <= 1 }, "\(limit.seconds) \(parts.max() ?? 0)")
    // The last of a segment may be shorter, and the first two, by which the rate is learned.
    let inside = zip(fragments, fragments.dropFirst()).dropFirst(2).filter { !$1.startsSegment }.map {
      $0.0.duration.seconds / limit.seconds
    }
    #expect(inside.allSatisfy { $0 >= 0.85 }, "\(limit.seconds) \(inside.min() ?? 0)")
  }

  /// After a frame of 400 ms the next one is expected to be as long. It is not, and no key frame comes in time.
  @Test func aSegmentWithoutAKeyFrameBeginsWhereItsFirstFrameIsShown() throws {
    var (times, time): ([Int64], Int64) = ([], 0)
    for index in 0..<160 {
      times.append(time)
      time += index % 40 == 35 ? 12_000 : 1150
    }
    let (fragments, _) = try Self.cut(times, group: 1000, wholeSecondLimit: 2)
    #expect(fragments.count { $0.startsSegment } >= 3)
    for (fragment, next) in zip(fragments, fragments.dropFirst()) {
      #expect(fragment.end == next.start, "\(fragment.end.seconds) \(next.start.seconds)")
      #expect(next.start.ticks == next.runs[0].baseDecodeTime)
    }
  }

  /// One key frame, then groups of four: a frame that the other three refer to is decoded before them and shown after them. One of
  /// these is shown when it is decoded.
  @Test func aSegmentWithoutAKeyFrameBeginsBehindAllFramesThatWereDecodedBeforeIt() throws {
    var segmenter = Segmenter(policy: CutPolicy(wholeSecondLimit: 2))
    var events = segmenter.receive(.tracks([try SyntheticMedia.video(frameDuration: 1200)]))
    for index in 0..<160 {
      let offset: Int32 = index == 0 ? 0 : [3, 0, -2, -1][(index - 1) % 4]
      events += segmenter.receive(
        .sample(SyntheticMedia.frame(index, group: 1000, duration: 1200, offset: offset * 1200, isSteady: true)))
    }
    events += segmenter.receive(.end(.finished))
    let fragments = events.compactMap { event in if case .fragment(let fragment) = event { fragment } else { nil } }
    #expect(fragments.count { $0.startsSegment } >= 3)
    var shown: Int64 = 0
    for fragment in fragments {
      if fragment.startsSegment { #expect(shown <= fragment.start.ticks, "\(fragment.start.seconds)") }
      shown = max(shown, fragment.runs[0].presentationEnd)
    }
  }

  /// ffmpeg states 30 frames a second also where it leaves most of them out.
  @Test func whereAConstantRateIsStatedAndNotKeptNoPartOfSeveralFramesIsTooLong() throws {
    var times: [Int64] = []
    for index in Int64(0)..<2400 where index % 120 >= 60 || index % 4 == 0 { times.append(index * 1000) }
    let (fragments, limit) = try Self.cut(times, stated: 1000)
    let tooLong = fragments.filter { $0.duration > limit && $0.runs[0].samples.count > 1 }
    #expect(tooLong.isEmpty, "\(tooLong.map(\.duration.seconds)) where \(limit.seconds) is the limit")
    #expect(fragments.reduce(0) { $0 + $1.runs[0].samples.count } == times.count)
  }

  @Test func aPauseIsAPartOfOneFrame() throws {
    var times: [Int64] = []
    var time: Int64 = 0
    for index in 0..<300 {
      times.append(time)
      // Half a second now and then.
      time += index % 45 == 20 ? 15_000 : 1000
    }
    let (fragments, limit) = try Self.cut(times)
    let tooLong = fragments.filter { $0.duration > limit }
    #expect(tooLong.count == 7 && tooLong.allSatisfy { $0.runs[0].samples.count == 1 })
    #expect(fragments.reduce(0) { $0 + $1.runs[0].samples.count } == 300)
  }

  /// As x264 lays decode times: those of presentation in their order, two frames later. A pause before a key frame lies
  /// behind it then. One of two steps is a frame that was left out.
  @Test(arguments: [0, 1, 2, 3, 7], [2000 as Int64, 15_000])
  func aPauseBeforeAKeyFrameLeavesNoPartEmpty(_ before: Int, lasting length: Int64) throws {
    var shown: [Int64] = [-2000, -1000]
    for index in 0..<360 {
      let pause = index % 120 == 120 - before || (before == 0 && index % 120 == 0 && index > 0)
      shown.append((shown.last ?? 0) + (pause ? length : 1000))
    }
    /// In groups of sixty: the key frame, then each third frame before the two that are shown before it.
    var group = [0]
    for first in stride(from: 0, to: 57, by: 3) { group += [first + 3, first + 1, first + 2] }
    group += [58, 59]
    var order: [Int] = []
    for first in stride(from: 0, to: 360, by: 60) { order += group.map { first + $0 } }
    var segmenter = Segmenter(policy: CutPolicy(startsEarly: true))
    var events = segmenter.receive(.tracks([try SyntheticMedia.video(frameDuration: nil)]))
    for (place, index) in order.enumerated() {
      let offset = Int32(shown[index + 2] - shown[place])
      let sample = Sample(
        track: .video, decodeTime: shown[place], compositionOffset: offset, duration: nil, isSync: index % 60 == 0,
        payload: ByteBuffer(repeating: 1, count: 100))
      events += segmenter.receive(.sample(sample))
    }
    events += segmenter.receive(.end(.finished))
    let fragments = events.compactMap { event in if case .fragment(let fragment) = event { fragment } else { nil } }
    #expect(fragments.reduce(0) { $0 + $1.runs[0].samples.count } == 360)
    for (fragment, next) in zip(fragments, fragments.dropFirst()) {
      #expect(fragment.end < next.end, "a part without length at \(fragment.end.seconds) s")
    }
  }
}
