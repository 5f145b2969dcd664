/// The growing sample tables of one movie track, in the run-length form of the boxes. They take about 4 bytes per audio
/// sample, 13 per video sample with B-frames, and 16 for each run of each fragment. They hold no media.
package struct SampleTable: Sendable {
  /// `stts` entry: number of samples, and duration of each in ticks (ISO/IEC 14496-12 §8.6.1.2).
  struct DurationRun: Sendable, Hashable {
    var count: UInt32
    var duration: UInt32
  }

  /// `ctts` entry: number of samples, and composition offset of each in ticks (§8.6.1.3).
  struct OffsetRun: Sendable, Hashable {
    var count: UInt32
    var offset: Int32
  }

  /// Contiguous samples in the file (§8.7.4, §8.7.5).
  struct Chunk: Sendable, Hashable {
    /// Offset in the file, in bytes.
    var offset: UInt64
    var sampleCount: UInt32
    /// Index of the sample description. The first is 1.
    var description: UInt32
  }

  /// Timescale of this table. Runs of another timescale are converted by their absolute times, so that rounding errors
  /// do not add up.
  let timescale: UInt32
  private var closedDurations: [DurationRun] = []
  private(set) var offsets: [OffsetRun] = []
  private(set) var sizes: [UInt32] = []
  /// Sample numbers for `stss` (§8.6.2). The first sample is 1. Nil while every sample is a sync sample; the box is
  /// then left out.
  private(set) var syncSamples: [UInt32]?
  /// Value of each sample for `sdtp` (§8.6.4). Nil while no sample is disposable; the box is then left out, because
  /// `stss` is enough.
  private(set) var dependencies: [UInt8]?
  private(set) var chunks: [Chunk] = []
  /// Decode time of the first sample, in ticks.
  private(set) var decodeStart: Int64 = 0
  /// The newest sample. The next sample fixes its duration.
  private var newest: (decodeTime: Int64, duration: UInt32) = (0, 0)
  /// Earliest presentation time of a sample, and end of the last one shown, in ticks.
  private(set) var presentationStart: Int64 = .max
  private(set) var presentationEnd: Int64 = .min

  init(timescale: UInt32) {
    self.timescale = timescale
  }

  var sampleCount: Int { sizes.count }

  /// Upper bound for the bytes of this table's boxes.
  var byteCount: Int { 8 * (closedDurations.count + 1 + offsets.count) + 9 * sizes.count + 20 * chunks.count }

  /// Sum of all durations, in ticks.
  var duration: Int64 {
    sizes.isEmpty ? 0 : newest.decodeTime &+ Int64(newest.duration) &- decodeStart
  }

  /// Ticks from the newest sample to that time; 0 without samples.
  func pause(until time: MediaTime) -> Int64 { sizes.isEmpty ? 0 : time.rescaled(to: timescale) &- newest.decodeTime }

  /// Complete `stts` entries, with the newest sample.
  var durations: [DurationRun] {
    guard !sizes.isEmpty else { return [] }
    var runs = closedDurations
    Self.extend(&runs, newest.duration)
    return runs
  }

  /// Complete `stsc` entries (§8.7.4): one for each change of the sample count or the description.
  var chunkRuns: [(firstChunk: UInt32, samplesPerChunk: UInt32, description: UInt32)] {
    var runs: [(firstChunk: UInt32, samplesPerChunk: UInt32, description: UInt32)] = []
    for (index, chunk) in chunks.enumerated() {
      if let last = runs.last, (last.samplesPerChunk, last.description) == (chunk.sampleCount, chunk.description) {
        continue
      }
      runs.append((UInt32(truncatingIfNeeded: index + 1), chunk.sampleCount, chunk.description))
    }
    return runs
  }

  /// Appends a run whose bytes begin at file offset `offset`. A gap before it lengthens the newest sample. If it
  /// overlaps, decode times are raised and composition offsets absorb the difference.
  mutating func append(_ run: TrackRun, at offset: UInt64, description: UInt32) {
    guard !run.samples.isEmpty else { return }
    chunks.append(
      Chunk(offset: offset, sampleCount: UInt32(truncatingIfNeeded: run.samples.count), description: description))
    var stated = run.baseDecodeTime
    for sample in run.samples {
      let next = stated &+ Int64(sample.duration)
      let start = ticks(stated, of: run)
      let presentation = ticks(stated &+ Int64(sample.compositionOffset), of: run)
      let duration = UInt32(clamping: max(1, ticks(next, of: run) &- start))
      append(sample, decodeTime: start, duration: duration, presentation: presentation)
      stated = next
    }
  }

  private func ticks(_ time: Int64, of run: TrackRun) -> Int64 {
    run.timescale == timescale ? time : MediaTime(ticks: time, timescale: run.timescale).rescaled(to: timescale)
  }

  private mutating func append(_ sample: RunSample, decodeTime: Int64, duration: UInt32, presentation: Int64) {
    var decodeTime = decodeTime
    if sizes.isEmpty {
      decodeStart = decodeTime
    } else {
      decodeTime = max(decodeTime, newest.decodeTime &+ 1)
      Self.extend(&closedDurations, UInt32(clamping: decodeTime &- newest.decodeTime))
    }
    newest = (decodeTime, duration)
    presentationStart = min(presentationStart, presentation)
    presentationEnd = max(presentationEnd, presentation &+ Int64(duration))
    let offset = Int32(clamping: presentation &- decodeTime)
    if let last = offsets.indices.last, offsets[last].offset == offset {
      offsets[last].count &+= 1
    } else {
      offsets.append(OffsetRun(count: 1, offset: offset))
    }
    noteDependencies(of: sample)
    sizes.append(sample.size)
    note(isSync: sample.isSync)
  }

  private mutating func note(isSync: Bool) {
    let number = UInt32(truncatingIfNeeded: sizes.count)
    if syncSamples != nil {
      if isSync { syncSamples?.append(number) }
    } else if !isSync {
      syncSamples = Array(1..<number)
    }
  }

  private mutating func noteDependencies(of sample: RunSample) {
    if dependencies == nil, sample.isDisposable {
      var earlier = [UInt8](repeating: Self.dependencies(isSync: syncSamples == nil), count: sizes.count)
      for number in syncSamples ?? [] { earlier[Int(number) - 1] = Self.dependencies(isSync: true) }
      dependencies = earlier
    }
    dependencies?.append(SampleFlags(of: sample).dependencies)
  }

  private static func dependencies(isSync: Bool) -> UInt8 {
    SampleFlags(of: RunSample(size: 0, duration: 1, compositionOffset: 0, isSync: isSync)).dependencies
  }

  private static func extend(_ runs: inout [DurationRun], _ duration: UInt32) {
    if let last = runs.indices.last, runs[last].duration == duration {
      runs[last].count &+= 1
    } else {
      runs.append(DurationRun(count: 1, duration: duration))
    }
  }
}
