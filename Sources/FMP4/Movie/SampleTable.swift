/// The tables of one track of a movie as it grows, in the run-length form that the boxes have: about 4 bytes a sample
/// of audio, 13 of picture with B-frames, and 16 for each run of each fragment. It never holds media.
package struct SampleTable: Sendable {
  /// `stts` entry: so many samples last so long, in ticks (ISO/IEC 14496-12 §8.6.1.2).
  struct DurationRun: Sendable, Hashable {
    var count: UInt32
    var duration: UInt32
  }

  /// `ctts` entry: so many samples are shown so long after they are decoded, in ticks (§8.6.1.3).
  struct OffsetRun: Sendable, Hashable {
    var count: UInt32
    var offset: Int32
  }

  /// Samples that lie one after another in the file (§8.7.4, §8.7.5).
  struct Chunk: Sendable, Hashable {
    /// Bytes from the start of the file.
    var offset: UInt64
    var sampleCount: UInt32
    /// Index of the sample description; 1 is the first.
    var description: UInt32
  }

  /// Ticks a second of everything here. Runs of another timescale are laid onto this one by their absolute times, so
  /// that nothing adds up.
  let timescale: UInt32
  private var closedDurations: [DurationRun] = []
  private(set) var offsets: [OffsetRun] = []
  private(set) var sizes: [UInt32] = []
  /// What `stss` lists (§8.6.2), the first sample being 1; nil while every sample is a sync sample and the box is left
  /// out.
  private(set) var syncSamples: [UInt32]?
  /// What `sdtp` says of each sample (§8.6.4); nil while no sample is disposable and the box is left out, since
  /// `stss` says the rest.
  private(set) var dependencies: [UInt8]?
  private(set) var chunks: [Chunk] = []
  /// Decode time of the first sample.
  private(set) var decodeStart: Int64 = 0
  /// The newest sample: how long it lasts is settled by the one that follows it.
  private var newest: (decodeTime: Int64, duration: UInt32) = (0, 0)
  /// Earliest presentation time of any sample, and the end of the one that is shown last.
  private(set) var presentationStart: Int64 = .max
  private(set) var presentationEnd: Int64 = .min

  init(timescale: UInt32) {
    self.timescale = timescale
  }

  var sampleCount: Int { sizes.count }

  /// The boxes of this table have no more bytes than this.
  var byteCount: Int { 8 * (closedDurations.count + 1 + offsets.count) + 9 * sizes.count + 20 * chunks.count }

  /// Sum of all durations, in ticks.
  var duration: Int64 {
    sizes.isEmpty ? 0 : newest.decodeTime &+ Int64(newest.duration) &- decodeStart
  }

  /// All of `stts`, the newest sample included.
  var durations: [DurationRun] {
    guard !sizes.isEmpty else { return [] }
    var runs = closedDurations
    Self.extend(&runs, newest.duration)
    return runs
  }

  /// All of `stsc` (§8.7.4): an entry for each change of the number of samples or of the description.
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

  /// A run of samples whose bytes begin at `offset` of the file. A hole before it lengthens the newest sample; where
  /// it overlaps, decode times are lifted and composition offsets absorb it.
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
