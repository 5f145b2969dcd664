internal import NIOCore

/// Where a key frame of a finished movie lies.
package struct MovieKeyFrame: Sendable {
  /// The track, with the sample description that this frame has.
  package var track: TrackDescription
  /// Bytes from the start of the file.
  package var offset: UInt64
  package var length: Int
  /// Seconds from the track's first sample.
  package var seconds: Double

  /// The last sync sample of the first picture track at or before `fraction` of its length, by the tables of a `moov`;
  /// the first one where none is earlier. Throws when there is no picture, or the tables do not fit together.
  package init(in movie: BoxView, near fraction: Double) throws(BoxError) {
    let picture = movie.boxes().first { $0.type == "trak" && (try? MovieReader.track($0))?.kind == .video }
    guard let box = picture else { throw movie.error(.missing("trak")) }
    let tables = try Tables(box)
    let target = UInt64(Double(tables.duration) * min(max(fraction, 0), 1))
    let wanted = tables.sample(at: target)
    guard let sample = tables.syncSample(before: wanted), let place = tables.place(of: sample),
      let track = tables.description(place.description)
    else { throw box.error(.invalid) }
    self.track = track
    offset = place.offset
    length = place.length
    seconds = Double(tables.time(of: sample)) / Double(track.timescale)
  }

  /// The boxes of a `trak` that lead to a sample, as views of its bytes (ISO/IEC 14496-12 §8.6, §8.7).
  private struct Tables {
    let track: TrackDescription
    private let descriptions: BoxView
    private let durations: Entries
    private let syncs: Entries?
    private let chunkRuns: Entries
    private let sizes: ByteBuffer
    private let constantSize: UInt32
    private let sampleCount: Int
    private let offsets: Entries

    init(_ trak: BoxView) throws(BoxError) {
      track = try MovieReader.track(trak)
      let table = try trak.child("mdia", "minf", "stbl")
      descriptions = try table.child("stsd")
      durations = try Entries(try table.child("stts"), fields: 2)
      syncs = try table.first("stss").map { box throws(BoxError) in try Entries(box, fields: 1) }
      chunkRuns = try Entries(try table.child("stsc"), fields: 3)
      let sizeBox = try table.child("stsz")
      var fields = BoxFields(sizeBox)
      _ = try fields.versionAndFlags()
      constantSize = try fields.u32()
      sampleCount = Int(try fields.u32())
      sizes = fields.rest
      guard constantSize > 0 || sizes.readableBytes / 4 >= sampleCount else { throw sizeBox.error(.truncated) }
      if let large = table.first("co64") {
        offsets = try Entries(large, fields: 2)
      } else {
        offsets = try Entries(try table.child("stco"), fields: 1)
      }
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
      guard let entry = MovieReader.sampleEntries(descriptions).dropFirst(number - 1).first(where: { _ in true }),
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

    /// Throws when the box is shorter than its count says.
    init(_ box: BoxView, fields: Int) throws(BoxError) {
      var values = BoxFields(box)
      _ = try values.versionAndFlags()
      count = Int(try values.u32())
      self.fields = fields
      buffer = values.rest
      guard buffer.readableBytes / (4 * fields) >= count else { throw box.error(.truncated) }
    }

    subscript(entry: Int, field: Int) -> UInt32 {
      buffer.getInteger(at: buffer.readerIndex + (entry * fields + field) * 4, as: UInt32.self) ?? 0
    }
  }
}
