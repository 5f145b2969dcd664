@testable import FMP4
import Glibc
import Testing

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

  /// Of this process, in memory.
  private static var residentBytes: Int {
    var bytes = [UInt8](repeating: 0, count: 100)
    let file = open("/proc/self/statm", O_RDONLY)
    defer { close(file) }
    let count = max(0, read(file, &bytes, bytes.count))
    let pages = String(decoding: bytes.prefix(count), as: UTF8.self).split(separator: " ").dropFirst().first
    return (pages.flatMap { Int($0) } ?? 0) * Int(sysconf(Int32(_SC_PAGESIZE)))
  }

  /// Tables of so many hours of a stream with parts of 200 ms.
  private static func tables(hours: Int, hasBFrames: Bool) -> [SampleTable] {
    var video = SampleTable(timescale: 30_000)
    var audio = SampleTable(timescale: 48_000)
    var frames = 0
    for part in 0..<hours * 18_000 {
      let samples = (0..<6).map { index in
        RunSample(
          size: 10_000, duration: 1000, compositionOffset: hasBFrames ? Int32(index % 3) * 1000 : 0,
          isSync: index == 0 && part % 10 == 0)
      }
      video.append(
        TrackRun(
          track: .video, timescale: 30_000, baseDecodeTime: Int64(part) * 6000, samples: samples, byteCount: 60_000,
          duration: 6000), at: UInt64(part) * 70_000, description: 1)
      let due = (part + 1) * 9600 / 1024
      let heard = (frames..<due).map { _ in
        RunSample(size: 340, duration: 1024, compositionOffset: 0, isSync: true)
      }
      audio.append(
        TrackRun(
          track: .audio, timescale: 48_000, baseDecodeTime: Int64(frames) * 1024, samples: heard,
          byteCount: heard.count * 340, duration: Int64(heard.count) * 1024),
        at: UInt64(part) * 70_000 + 60_000, description: 1)
      frames = due
    }
    return [video, audio]
  }

  /// What docs/recording.md tells of a recorder's memory.
  @Test(arguments: [(false, 3.0), (true, 5.0)])
  func anHourTakesAFewMegabytes(_ hasBFrames: Bool, _ most: Double) {
    let hours = 4
    var kept: [[SampleTable]] = []
    var megabytes: [Double] = []
    // What earlier tests have left behind comes and goes in the same process: the least of some tries is what it takes.
    while megabytes.count < 4, megabytes.min() ?? most >= most {
      let before = Self.residentBytes
      kept.append(Self.tables(hours: hours, hasBFrames: hasBFrames))
      megabytes.append(Double(Self.residentBytes - before) / Double(hours) / 1_000_000)
    }
    print("sample tables, video \(hasBFrames ? "with" : "without") B-frames: \(megabytes) MB an hour")
    #expect(megabytes.contains { $0 < most })
    for tables in kept { #expect(tables.map(\.sampleCount) == [hours * 108_000, hours * 168_750]) }
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
