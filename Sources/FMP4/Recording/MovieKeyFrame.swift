package import NIOCore

/// Where a key frame of a finished movie lies.
package struct MovieKeyFrame: Sendable {
  /// The track, with the sample description that this frame has.
  package var track: TrackDescription
  /// Bytes from the start of the file.
  package var offset: UInt64
  package var length: Int
  /// Seconds from the track's first sample.
  package var seconds: Double

  /// The last sync sample of the first picture track at or before `fraction` of its length, by the tables of a `moov`
  /// (its payload); the first one where none is earlier. Nil when there is no picture, or the tables do not fit together.
  package init?(in movie: ByteBuffer, near fraction: Double) {
    for box in BoxReader(movie) where box.type == "trak" {
      guard let tables = Tables(box.payload), tables.track.kind == .video else { continue }
      self.init(tables, near: fraction)
      return
    }
    return nil
  }

  private init?(_ tables: Tables, near fraction: Double) {
    let target = UInt64(Double(tables.duration) * min(max(fraction, 0), 1))
    let wanted = tables.sample(at: target)
    guard let sample = tables.syncSample(before: wanted), let place = tables.place(of: sample),
      let track = tables.description(place.description)
    else { return nil }
    self.track = track
    offset = place.offset
    length = place.length
    seconds = Double(tables.time(of: sample)) / Double(track.timescale)
  }

  /// The boxes of a `trak` that lead to a sample, as views of its bytes (ISO/IEC 14496-12 §8.6, §8.7).
  private struct Tables {
    let track: TrackDescription
    private let descriptions: ByteBuffer
    private let durations: Entries
    private let syncs: Entries?
    private let chunkRuns: Entries
    private let sizes: ByteBuffer
    private let constantSize: UInt32
    private let sampleCount: Int
    private let offsets: Entries

    init?(_ trak: ByteBuffer) {
      guard let track = MovieReader.track(trak),
        let table = trak.firstBox("mdia")?.firstBox("minf")?.firstBox("stbl"),
        var descriptions = table.firstBox("stsd"), descriptions.skip(8),
        let durations = table.firstBox("stts").flatMap({ Entries($0, fields: 2) }),
        let chunkRuns = table.firstBox("stsc").flatMap({ Entries($0, fields: 3) }), var sizes = table.firstBox("stsz"),
        sizes.skip(4), let constantSize = sizes.readInteger(as: UInt32.self),
        let sampleCount = sizes.readInteger(as: UInt32.self),
        constantSize > 0 || sizes.readableBytes / 4 >= Int(sampleCount),
        let offsets = table.firstBox("stco").flatMap({ Entries($0, fields: 1) })
          ?? table.firstBox("co64").flatMap({ Entries($0, fields: 2) })
      else { return nil }
      self.track = track
      self.descriptions = descriptions
      self.durations = durations
      syncs = table.firstBox("stss").flatMap { Entries($0, fields: 1) }
      self.chunkRuns = chunkRuns
      self.sizes = sizes
      self.constantSize = constantSize
      self.sampleCount = Int(sampleCount)
      self.offsets = offsets
    }

    /// Ticks of all samples.
    var duration: UInt64 {
      (0..<durations.count).reduce(0) { $0 &+ UInt64(durations[$1, 0]) &* UInt64(durations[$1, 1]) }
    }

    /// Number of the sample that is decoded then; 1 is the first.
    func sample(at time: UInt64) -> Int {
      var first = 1
      var start: UInt64 = 0
      for run in 0..<durations.count {
        let (count, length) = (UInt64(durations[run, 0]), UInt64(durations[run, 1]))
        if time < start &+ count &* length, length > 0 { return first + Int((time &- start) / length) }
        start &+= count &* length
        first += Int(count)
      }
      return max(1, sampleCount)
    }

    /// Ticks from the first sample to this one.
    func time(of sample: Int) -> UInt64 {
      var left = UInt64(max(0, sample - 1))
      var time: UInt64 = 0
      for run in 0..<durations.count where left > 0 {
        let count = min(left, UInt64(durations[run, 0]))
        time &+= count &* UInt64(durations[run, 1])
        left -= count
      }
      return time
    }

    /// All samples are sync samples where `stss` is left out.
    func syncSample(before wanted: Int) -> Int? {
      guard let syncs else { return sampleCount > 0 ? min(wanted, sampleCount) : nil }
      guard syncs.count > 0 else { return nil }
      let numbers = (0..<syncs.count).lazy.map { Int(syncs[$0, 0]) }
      return numbers.last { $0 <= wanted } ?? numbers.first
    }

    func place(of sample: Int) -> (offset: UInt64, length: Int, description: Int)? {
      guard sample >= 1, sample <= sampleCount else { return nil }
      var first = 1
      for run in 0..<chunkRuns.count {
        let firstChunk = Int(chunkRuns[run, 0])
        let perChunk = Int(chunkRuns[run, 1])
        let lastChunk = run + 1 < chunkRuns.count ? Int(chunkRuns[run + 1, 0]) - 1 : offsets.count
        guard firstChunk >= 1, perChunk > 0, lastChunk >= firstChunk, lastChunk <= offsets.count else { return nil }
        let inRun = (lastChunk - firstChunk + 1) * perChunk
        if sample < first + inRun {
          let chunk = firstChunk - 1 + (sample - first) / perChunk
          var offset =
            offsets.fields == 2
            ? UInt64(offsets[chunk, 0]) << 32 | UInt64(offsets[chunk, 1]) : UInt64(offsets[chunk, 0])
          let before = (sample - first) % perChunk
          if constantSize > 0 {
            offset &+= UInt64(constantSize) &* UInt64(before)
          } else {
            for earlier in (sample - before)..<sample { offset &+= UInt64(size(of: earlier)) }
          }
          return (offset, Int(size(of: sample)), Int(chunkRuns[run, 2]))
        }
        first += inRun
      }
      return nil
    }

    private func size(of sample: Int) -> UInt32 {
      constantSize > 0
        ? constantSize : sizes.getInteger(at: sizes.readerIndex + (sample - 1) * 4, as: UInt32.self) ?? 0
    }

    /// The track with its n-th sample description.
    func description(_ number: Int) -> TrackDescription? {
      guard number > 1 else { return track }
      guard let entry = BoxReader(descriptions).dropFirst(number - 1).first(where: { _ in true }),
        let codec = try? Codec(sampleEntry: entry)
      else { return nil }
      var other = track
      other.codec = codec
      other.statedColor = codec.statedColor(sampleEntry: entry)
      return other
    }
  }

  /// A full box whose payload is a count and so many entries of 32-bit fields.
  private struct Entries {
    let count: Int
    let fields: Int
    private let buffer: ByteBuffer

    /// Nil when the box is shorter than its count says.
    init?(_ box: ByteBuffer, fields: Int) {
      var box = box
      guard box.skip(4), let count = box.readInteger(as: UInt32.self), box.readableBytes / (4 * fields) >= Int(count)
      else { return nil }
      self.count = Int(count)
      self.fields = fields
      buffer = box
    }

    subscript(entry: Int, field: Int) -> UInt32 {
      buffer.getInteger(at: buffer.readerIndex + (entry * fields + field) * 4, as: UInt32.self) ?? 0
    }
  }
}
