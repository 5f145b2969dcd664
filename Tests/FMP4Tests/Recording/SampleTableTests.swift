import Testing

@testable import FMP4

@Suite struct SampleTableTests {
  private func run(
    at start: Int64, durations: [UInt32], offsets: [Int32]? = nil, sync: [Int] = [0],
    disposable: [Int] = [], timescale: UInt32 = 30_000
  ) -> TrackRun {
    let samples = durations.enumerated().map { index, duration in
      RunSample(
        size: UInt32(100 + index), duration: duration, compositionOffset: offsets?[index] ?? 0,
        isSync: sync.contains(index), isDisposable: disposable.contains(index))
    }
    return TrackRun(
      track: .video, timescale: timescale, baseDecodeTime: start, samples: samples,
      byteCount: samples.reduce(0) { $0 + Int($1.size) }, duration: durations.reduce(0) { $0 + Int64($1) })
  }

  @Test func equalDurationsAndOffsetsAreOneRun() {
    var table = SampleTable(timescale: 30_000)
    table.append(run(at: 0, durations: [1000, 1000, 1000], offsets: [2000, 2000, 500]), at: 50, description: 1)
    table.append(run(at: 3000, durations: [1000, 1500], offsets: [500, 0]), at: 900, description: 1)
    #expect(table.durations.map(\.count) == [4, 1])
    #expect(table.durations.map(\.duration) == [1000, 1500])
    #expect(table.offsets == [.init(count: 2, offset: 2000), .init(count: 2, offset: 500), .init(count: 1, offset: 0)])
    #expect(table.sizes == [100, 101, 102, 100, 101])
    #expect(table.chunks.map(\.offset) == [50, 900])
    #expect(table.duration == 5500)
    #expect(table.presentationStart == 2000)
    #expect(table.presentationEnd == 5500)
  }

  @Test func dependenciesAreListedOnlyWhenASampleIsDisposable() {
    var table = SampleTable(timescale: 30_000)
    table.append(run(at: 0, durations: [1000, 1000]), at: 0, description: 1)
    #expect(table.dependencies == nil)
    table.append(run(at: 2000, durations: [1000, 1000, 1000], disposable: [1]), at: 300, description: 1)
    // sample_depends_on 2 and 1, sample_is_depended_on 0 and 2 (ISO/IEC 14496-12 §8.6.4.3).
    #expect(table.dependencies == [0x20, 0x10, 0x20, 0x18, 0x10])
  }

  @Test func dependenciesOfSamplesBeforeTheFirstDisposableOneAreTold() {
    var table = SampleTable(timescale: 30_000)
    table.append(run(at: 0, durations: [1000], sync: [0]), at: 0, description: 1)
    table.append(run(at: 1000, durations: [1000], sync: [], disposable: [0]), at: 300, description: 1)
    #expect(table.dependencies == [0x20, 0x18])
  }

  @Test func syncSamplesAreListedOnlyWhenNotAllAre() {
    var table = SampleTable(timescale: 30_000)
    table.append(run(at: 0, durations: [1000, 1000], sync: [0, 1]), at: 0, description: 1)
    #expect(table.syncSamples == nil)
    table.append(run(at: 2000, durations: [1000, 1000, 1000], sync: [2]), at: 300, description: 1)
    #expect(table.syncSamples == [1, 2, 5])
  }

  @Test func aHoleLengthensTheSampleBeforeIt() {
    var table = SampleTable(timescale: 30_000)
    table.append(run(at: 0, durations: [1000, 1000]), at: 0, description: 1)
    table.append(run(at: 2700, durations: [1000]), at: 300, description: 1)
    #expect(
      table.durations == [
        .init(count: 1, duration: 1000), .init(count: 1, duration: 1700), .init(count: 1, duration: 1000),
      ])
    #expect(table.duration == 3700)
  }

  @Test func anOverlapLiftsDecodeTimesAndKeepsPresentationTimes() {
    var table = SampleTable(timescale: 30_000)
    table.append(run(at: 0, durations: [1000, 1000], offsets: [0, 0]), at: 0, description: 1)
    table.append(run(at: 900, durations: [1000], offsets: [0]), at: 300, description: 1)
    #expect(table.durations.map(\.duration) == [1000, 1, 1000])
    #expect(table.offsets == [.init(count: 2, offset: 0), .init(count: 1, offset: -101)])
  }

  @Test func runsOfAnotherTimescaleNeverDrift() {
    var table = SampleTable(timescale: 48_000)
    table.append(run(at: 0, durations: [1024], timescale: 48_000), at: 0, description: 1)
    // 1024 ticks of 44100 are 1114.557… of 48000: after 1000 of them the error is still below one tick.
    for index in 0..<1000 {
      let start = Int64(941 + index * 1024)
      table.append(run(at: start, durations: [1024], timescale: 44_100), at: 200, description: 2)
    }
    let end = MediaTime(ticks: 941 + 1000 * 1024, timescale: 44_100).rescaled(to: 48_000)
    #expect(table.duration == end)
    #expect(table.durations.allSatisfy { [1024, 1114, 1115].contains($0.duration) })
  }
}
