public import NIOCore

/// Writes the headers of a fragment in each layout: `moof` and the header of the `mdat`. A `prft` precedes the first
/// `moof` of a segment, if the publication's clock is known. The media has the same bytes in every layout, so only
/// headers are written more than once.
public enum FragmentBoxes {
  /// Optional `prft`, `moof` and `mdat` header with all runs. The media is all payloads of the fragment. The `prft`
  /// refers to the leading track.
  public static func interleavedHead(of fragment: Fragment, clock: WallClockAnchor? = nil) -> ByteBuffer {
    // One clock per segment is enough.
    head(sequenceNumber: fragment.sequenceNumber, runs: fragment.runs[...], fragment.startsSegment ? clock : nil)
  }

  /// Optional `prft`, `moof` and `mdat` header of one track. The media is that track's run. Nil if the track has no
  /// samples here. `clock` is set only for the track's first run in its segment, which may come after the first
  /// fragment.
  public static func singleHead(
    of fragment: Fragment, track: TrackID, clock: WallClockAnchor? = nil
  ) -> ByteBuffer? {
    guard let index = fragment.runs.firstIndex(where: { $0.track == track }) else { return nil }
    return head(sequenceNumber: fragment.sequenceNumber, runs: fragment.runs[index...index], clock)
  }

  /// The same for several tracks, whose media follows in the order of the runs. Nil if none of them has samples here.
  package static func head(
    of fragment: Fragment, tracks: [TrackID], clock: WallClockAnchor? = nil
  ) -> ByteBuffer? {
    let runs = fragment.runs.filter { tracks.contains($0.track) }
    return runs.isEmpty ? nil : head(sequenceNumber: fragment.sequenceNumber, runs: runs[...], clock)
  }

  /// `styp` of a segment with all tracks (ISO/IEC 23009-1 §6.3.4.2).
  public static let interleavedSegmentType = segmentType(["msdh", "iso6"])
  /// `styp` of a segment with one track, with the CMAF brands (ISO/IEC 23000-19 §7.2).
  public static let singleSegmentType = segmentType(["msdh", "cmfs", "cmff"])

  private static func segmentType(_ brands: [FourCC]) -> ByteBuffer {
    .boxes(capacity: 16 + 4 * brands.count) {
      $0.box("styp") {
        $0.fourCC("msdh")
        $0.u32(0)  // minor_version
        for brand in brands { $0.fourCC(brand) }
      }
    }
  }

  /// A segment without samples, at a decode time in ticks of the track. It has no mdat: qtdemux of GStreamer 1.22
  /// crashes the process on an empty mdat.
  package static func empty(_ track: TrackID, timescale: UInt32, at time: Int64) -> ByteBuffer {
    let run = TrackRun(track: track, timescale: timescale, baseDecodeTime: time, samples: [], byteCount: 0, duration: 0)
    var bytes = singleSegmentType
    let head = head(sequenceNumber: 0, runs: [run], nil)
    bytes.writeImmutableBuffer(head.getSlice(at: head.readerIndex, length: head.readableBytes - 8) ?? ByteBuffer())
    return bytes
  }

  /// ISO/IEC 14496-12 §8.16.5 (prft), §8.8.4 (moof), §8.1.1 (mdat).
  private static func head(
    sequenceNumber: UInt32, runs: ArraySlice<TrackRun>, _ reference: WallClockAnchor?
  ) -> ByteBuffer {
    let capacity = runs.reduce(32 + ProducerReferenceTime.size) { $0 + 96 + 16 * $1.samples.count }
    let mediaBytes = runs.reduce(0) { $0 + $1.byteCount }
    return .boxes(capacity: capacity) { out in
      if let reference, let run = runs.first {
        out.producerReferenceTime(ProducerReferenceTime(of: run, anchor: reference))
      }
      let start = out.byteCount
      var offsetFields: [(position: Int, mediaOffset: Int)] = []
      out.box("moof") { out in
        out.fullBox("mfhd") { $0.u32(sequenceNumber) }
        var mediaOffset = 0
        for run in runs {
          let position = trackFragment(&out, run)
          offsetFields.append((position, mediaOffset))
          mediaOffset += run.byteCount
        }
      }
      // Data offsets count from the first byte of this moof. The media begins after the mdat header.
      let base = out.byteCount - start + 8
      for field in offsetFields {
        out.patch(u32: UInt32(truncatingIfNeeded: base + field.mediaOffset), at: field.position)
      }
      out.u32(UInt32(truncatingIfNeeded: mediaBytes + 8))
      out.fourCC("mdat")
    }
  }

  /// ISO/IEC 14496-12 §8.8.6. Returns the position of the data offset, which the caller fills in.
  private static func trackFragment(_ out: inout OutputRawSpan, _ run: TrackRun) -> Int {
    let shape = RunShape(run)
    var position = 0
    out.box("traf") { out in
      var headerFlags = TrackFragmentFlags.defaultBaseIsMoof
      if shape.commonDuration != nil { headerFlags.insert(.defaultDuration) }
      if shape.commonFlags != nil { headerFlags.insert(.defaultFlags) }
      out.fullBox("tfhd", flags: headerFlags.rawValue) {
        $0.u32(run.track.rawValue)
        if let duration = shape.commonDuration { $0.u32(duration) }
        if let flags = shape.commonFlags { $0.u32(flags.rawValue) }
      }
      out.fullBox("tfdt", version: 1) { $0.i64(run.baseDecodeTime) }

      var flags: TrackRunFlags = [.dataOffset, .sampleSize]
      if shape.commonDuration == nil { flags.insert(.sampleDuration) }
      if shape.commonFlags == nil { flags.insert(.sampleFlags) }
      if shape.firstFlags != nil { flags.insert(.firstSampleFlags) }
      if shape.hasOffsets { flags.insert(.compositionOffset) }
      out.fullBox("trun", version: 1, flags: flags.rawValue) { out in
        out.u32(UInt32(truncatingIfNeeded: run.samples.count))
        position = out.byteCount
        out.u32(0)  // data_offset
        if let first = shape.firstFlags { out.u32(first.rawValue) }
        for sample in run.samples {
          if shape.commonDuration == nil { out.u32(sample.duration) }
          out.u32(sample.size)
          if shape.commonFlags == nil { out.u32(SampleFlags(of: sample).rawValue) }
          if shape.hasOffsets { out.i32(sample.compositionOffset) }
        }
      }
    }
    return position
  }

  /// Fields with the same value in all samples of a run. They are written once.
  private struct RunShape {
    var commonDuration: UInt32?
    var commonFlags: SampleFlags?
    /// Flags of the first sample, if only that one differs from the others.
    var firstFlags: SampleFlags?
    var hasOffsets = false

    init(_ run: TrackRun) {
      guard let first = run.samples.first else { return }
      commonDuration = run.samples.allSatisfy { $0.duration == first.duration } ? first.duration : nil
      hasOffsets = run.samples.contains { $0.compositionOffset != 0 }
      let leading = SampleFlags(of: first)
      let rest = run.samples.dropFirst()
      let following = rest.first.map { SampleFlags(of: $0) } ?? leading
      guard rest.allSatisfy({ SampleFlags(of: $0) == following }) else { return }
      commonFlags = following
      if leading != following { firstFlags = leading }
    }
  }
}

/// Reads a `moof` of weir or of another program (ISO/IEC 14496-12 §8.8.4 to §8.8.12).
enum FragmentReader {
  /// A run, and the offset of its media from the start of the moof, in bytes.
  struct LocatedRun {
    var run: TrackRun
    var offset: Int
  }

  /// Default values of fragment fields (`trex`, §8.8.3).
  struct Defaults: Sendable, Hashable {
    var duration: UInt32 = 0
    var size: UInt32 = 0
    var flags: UInt32 = 0
    /// Offset to add to the track's sample times, in ticks of the track.
    var shift: Int64 = 0
  }

  /// Most samples of a `moof`. The segmenter cuts far below this.
  static let maximumSamples = 65_536
  /// Most media bytes of a run.
  static let maximumRunBytes = 1 << 32

  /// Reads the runs of a `moof`; `timescales` are those of the tracks. Some programs count data offsets from the file's
  /// first byte. `passesOthers` skips runs of unknown tracks; otherwise they are an error. A few bytes can declare very
  /// many samples, so more than `most` are an error.
  static func read(
    _ fragment: BoxView, timescales: [TrackID: UInt32], defaults: [TrackID: Defaults] = [:], passesOthers: Bool = false,
    most: Int = maximumSamples
  ) throws(BoxError) -> [LocatedRun] {
    var runs: [LocatedRun] = []
    // Start of a track's media if it states none: the end of the previous track's media.
    var end = 0
    var room = most
    for box in fragment.boxes() where box.type == "traf" {
      let found = try trackFragment(
        box, timescales, defaults, fragment.header.range.lowerBound, passesOthers, behind: &end, &room)
      runs += found.filter { timescales[$0.run.track] != nil }
    }
    guard passesOthers || !runs.isEmpty else { throw fragment.error(.missing("traf")) }
    return runs
  }

  /// `mfhd`, §8.8.5.
  static func sequenceNumber(_ fragment: BoxView) throws(BoxError) -> UInt32 {
    var fields = BoxFields(try fragment.child("mfhd"))
    _ = try fields.versionAndFlags()
    return try fields.u32()
  }

  private static func trackFragment(
    _ box: BoxView, _ timescales: [TrackID: UInt32], _ trackDefaults: [TrackID: Defaults], _ moofOffset: UInt64,
    _ passesOthers: Bool, behind end: inout Int, _ room: inout Int
  ) throws(BoxError) -> [LocatedRun] {
    let header = try box.child("tfhd")
    let (id, defaults, base) = try self.header(header, trackDefaults, moofOffset, behind: end)
    guard let timescale = timescales[id] ?? (passesOthers ? 1 : nil) else { throw header.error(.invalid) }
    var start = try decodeTime(try box.child("tfdt")) &+ defaults.shift
    var found: [LocatedRun] = []
    var next = base
    for run in box.boxes() where run.type == "trun" {
      var located = LocatedRun(
        run: TrackRun(
          track: id, timescale: timescale, baseDecodeTime: start, samples: [], byteCount: 0, duration: 0), offset: next)
      try samples(run, defaults, base: base, &room, &located)
      next = located.offset + located.run.byteCount
      start &+= located.run.duration
      if !located.run.samples.isEmpty { found.append(located) }
    }
    end = next
    return found
  }

  /// `tfhd`, §8.8.7: the track, the defaults of its samples, and the origin of data offsets.
  private static func header(
    _ box: BoxView, _ trackDefaults: [TrackID: Defaults], _ moofOffset: UInt64, behind end: Int
  ) throws(BoxError) -> (TrackID, Defaults, base: Int) {
    var fields = BoxFields(box)
    let flags = TrackFragmentFlags(rawValue: try fields.versionAndFlags().flags)
    let id = try fields.u32()
    guard id > 0 else { throw box.error(.invalid) }
    var base = flags.contains(.defaultBaseIsMoof) ? 0 : end
    if flags.contains(.baseDataOffset) {
      let offset = try fields.u64()
      guard offset >= moofOffset, offset - moofOffset <= UInt64(maximumRunBytes) else { throw box.error(.invalid) }
      base = Int(offset - moofOffset)
    }
    if flags.contains(.sampleDescription) { _ = try fields.u32() }
    var defaults = trackDefaults[TrackID(id)] ?? Defaults()
    if flags.contains(.defaultDuration) { defaults.duration = try fields.u32() }
    if flags.contains(.defaultSize) { defaults.size = try fields.u32() }
    if flags.contains(.defaultFlags) { defaults.flags = try fields.u32() }
    return (TrackID(id), defaults, base)
  }

  /// `tfdt`, §8.8.12.
  private static func decodeTime(_ box: BoxView) throws(BoxError) -> Int64 {
    var fields = BoxFields(box)
    return try fields.time(version: try fields.versionAndFlags().version)
  }

  /// `trun`, §8.8.8. `room` is the number of samples still allowed.
  private static func samples(
    _ box: BoxView, _ defaults: Defaults, base: Int, _ room: inout Int, _ located: inout LocatedRun
  ) throws(BoxError) {
    var fields = BoxFields(box)
    let flags = TrackRunFlags(rawValue: try fields.versionAndFlags().flags)
    let count = Int(try fields.u32())
    guard count <= room else { throw box.error(.large(size: UInt64(count))) }
    room -= count
    if flags.contains(.dataOffset) {
      located.offset = try base + Int(fields.i32())
      guard located.offset >= 0 else { throw box.error(.invalid) }
    }
    let firstFlags = try flags.contains(.firstSampleFlags) ? fields.u32() : nil
    guard count == 0 || flags.contains(.sampleSize) || defaults.size > 0 else { throw box.error(.invalid) }
    for index in 0..<count {
      let duration = try flags.contains(.sampleDuration) ? fields.u32() : defaults.duration
      let size = try flags.contains(.sampleSize) ? fields.u32() : defaults.size
      let own = try flags.contains(.sampleFlags) ? fields.u32() : index == 0 ? firstFlags : nil
      let offset = try flags.contains(.compositionOffset) ? fields.i32() : 0
      let meaning = SampleFlags(rawValue: own ?? defaults.flags)
      located.run.samples.append(
        RunSample(
          size: size, duration: duration, compositionOffset: offset, isSync: meaning.isSync,
          isDisposable: meaning.isDisposable))
      located.run.byteCount += Int(size)
      located.run.duration &+= Int64(duration)
    }
    guard located.run.byteCount <= maximumRunBytes else { throw box.error(.invalid) }
  }
}

/// `tf_flags` (ISO/IEC 14496-12 §8.8.7).
struct TrackFragmentFlags: OptionSet {
  let rawValue: UInt32
  static let baseDataOffset = TrackFragmentFlags(rawValue: 0x1)
  static let sampleDescription = TrackFragmentFlags(rawValue: 0x2)
  static let defaultDuration = TrackFragmentFlags(rawValue: 0x8)
  static let defaultSize = TrackFragmentFlags(rawValue: 0x10)
  static let defaultFlags = TrackFragmentFlags(rawValue: 0x20)
  static let defaultBaseIsMoof = TrackFragmentFlags(rawValue: 0x20000)
}

/// `tr_flags` (ISO/IEC 14496-12 §8.8.8).
struct TrackRunFlags: OptionSet {
  let rawValue: UInt32
  static let dataOffset = TrackRunFlags(rawValue: 0x1)
  static let firstSampleFlags = TrackRunFlags(rawValue: 0x4)
  static let sampleDuration = TrackRunFlags(rawValue: 0x100)
  static let sampleSize = TrackRunFlags(rawValue: 0x200)
  static let sampleFlags = TrackRunFlags(rawValue: 0x400)
  static let compositionOffset = TrackRunFlags(rawValue: 0x800)
}

/// `sample_flags` (ISO/IEC 14496-12 §8.8.3.1).
struct SampleFlags: Hashable {
  let rawValue: UInt32

  init(rawValue: UInt32) {
    self.rawValue = rawValue
  }

  /// A sync sample depends on no other (sample_depends_on 2). Any other sample does (1), and decoding cannot start
  /// there (sample_is_non_sync_sample). No sample depends on a disposable one (sample_is_depended_on 2).
  init(of sample: RunSample) {
    rawValue = (sample.isSync ? 0x0200_0000 : 0x0101_0000) | (sample.isDisposable ? 0x0080_0000 : 0)
  }

  var isSync: Bool { rawValue & 0x0001_0000 == 0 }
  var isDisposable: Bool { rawValue & 0x00C0_0000 == 0x0080_0000 }

  /// The dependency bits as a byte of `sdtp` (§8.6.4.2).
  var dependencies: UInt8 { UInt8(truncatingIfNeeded: rawValue >> 20) }
}
