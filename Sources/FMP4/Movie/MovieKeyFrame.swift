/// Place of a key frame in a finished movie.
package struct MovieKeyFrame: Sendable {
  /// The track with the sample description of this frame.
  package var track: TrackDescription
  /// Offset in the file, in bytes.
  package var offset: UInt64
  package var length: Int
  /// Seconds after the track's first sample.
  package var seconds: Double

  /// Finds the last sync sample of the first video track at or before `fraction` of its duration, using the tables of a
  /// `moov`. If there is no earlier one it takes the first. Throws if there is no video or the tables are inconsistent.
  package init(in movie: BoxView, near fraction: Double) throws(BoxError) {
    let videoTrack = movie.boxes().first { $0.type == "trak" && (try? MovieReader.track($0))?.kind == .video }
    guard let box = videoTrack else { throw movie.error(.missing("trak")) }
    let tables = try SampleTableReader(try box.child("mdia", "minf", "stbl"))
    let wanted = tables.sample(at: UInt64(min(Double(tables.duration), 0x1p63) * min(max(fraction, 0), 1)))
    guard let sample = tables.syncSample(before: wanted), let place = tables.place(of: sample) else {
      throw box.error(.invalid)
    }
    track = try MovieReader.track(box, description: place.description)
    offset = place.offset
    length = place.length
    seconds = Double(tables.time(of: sample)) / Double(track.timescale)
  }
}

/// Lookup of samples (ISO/IEC 14496-12 §8.6, §8.7). The first sample is 1.
extension SampleTableReader {
  /// Duration of all samples in ticks.
  fileprivate var duration: UInt64 { durations.reduce(0) { $0 &+ $1.count &* $1.duration } }

  /// The sample that is decoded at `time` (ticks).
  fileprivate func sample(at time: UInt64) -> Int {
    var first = 1
    var start: UInt64 = 0
    for run in durations {
      let length = run.count &* run.duration
      if time < start &+ length, run.duration > 0 { return first + Int((time &- start) / run.duration) }
      start &+= length
      first += Int(run.count)
    }
    return max(1, sampleCount)
  }

  /// Ticks from the first sample to this one.
  fileprivate func time(of sample: Int) -> UInt64 {
    var left = UInt64(max(0, sample - 1))
    return durations.reduce(0) { time, run in
      let count = min(left, run.count)
      left -= count
      return time &+ count &* run.duration
    }
  }

  fileprivate func syncSample(before wanted: Int) -> Int? {
    guard let syncSamples else { return sampleCount > 0 ? min(wanted, sampleCount) : nil }
    return syncSamples.last { $0 <= wanted } ?? syncSamples.first
  }

  fileprivate func place(of sample: Int) -> (offset: UInt64, length: Int, description: Int)? {
    guard sample >= 1, sample <= sampleCount else { return nil }
    var first = 1
    for (index, run) in chunkRuns.enumerated() {
      let end = index + 1 < chunkRuns.count ? chunkRuns[index + 1].firstChunk : chunkOffsets.count + 1
      guard run.firstChunk >= 1, run.samplesPerChunk > 0, end > run.firstChunk, end <= chunkOffsets.count + 1 else {
        return nil
      }
      let samples = (end - run.firstChunk) * run.samplesPerChunk
      if sample < first + samples {
        let chunk = run.firstChunk - 1 + (sample - first) / run.samplesPerChunk
        let before = (sample - first) % run.samplesPerChunk
        var offset = chunkOffsets[chunk] &+ UInt64(commonSize) &* UInt64(before)
        if commonSize == 0 { for size in sizes[(sample - 1 - before)..<(sample - 1)] { offset &+= UInt64(size) } }
        return (offset, Int(commonSize > 0 ? commonSize : sizes[sample - 1]), run.description)
      }
      first += samples
    }
    return nil
  }
}
