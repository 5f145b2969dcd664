internal import NIOCore

/// Reads a `moof` (ISO/IEC 14496-12 §8.8.4 to §8.8.12): as `FragmentBoxes` writes it, and as other programs do.
enum FragmentReader {
  /// A run and where its media begins, in bytes from the start of the moof.
  struct LocatedRun {
    var run: TrackRun
    var offset: Int
  }

  /// What fragments may leave out (`trex`, §8.8.3).
  struct Defaults: Sendable, Hashable {
    var duration: UInt32 = 0
    var size: UInt32 = 0
    var flags: UInt32 = 0
    /// By how much the track's samples are shown later than they say.
    var shift: Int64 = 0
  }

  /// The most samples of a `moof` that are believed; the segmenter cuts far below.
  static let maximumSamples = 65_536
  /// The most bytes of media that a run is believed to have.
  static let maximumRunBytes = 1 << 32

  /// The runs of a `moof`'s payload; `timescales` are those of the tracks, `moofOffset` is where the moof begins in its
  /// file: some programs count from the file's first byte. Nil when it is not well formed.
  static func read(
    _ fragment: ByteBuffer, timescales: [TrackID: UInt32], defaults: [TrackID: Defaults] = [:], moofOffset: UInt64 = 0
  ) -> [LocatedRun]? {
    var runs: [LocatedRun] = []
    // Where a track's media begins that says nothing of it: behind that of the track before.
    var end = 0
    var room = maximumSamples
    for box in BoxReader(fragment) where box.type == "traf" {
      guard let found = trackFragment(box.payload, timescales, defaults, moofOffset, behind: &end, &room) else {
        return nil
      }
      runs += found
    }
    return runs.isEmpty ? nil : runs
  }

  private static func trackFragment(
    _ box: ByteBuffer, _ timescales: [TrackID: UInt32], _ trackDefaults: [TrackID: Defaults], _ moofOffset: UInt64,
    behind end: inout Int, _ room: inout Int
  ) -> [LocatedRun]? {
    guard var header = box.firstBox("tfhd"), var time = box.firstBox("tfdt"),
      let (id, defaults, base) = self.header(&header, trackDefaults, moofOffset, behind: end),
      let timescale = timescales[id], var start = decodeTime(&time)
    else { return nil }
    start &+= defaults.shift
    var found: [LocatedRun] = []
    var next = base
    for var run in BoxReader(box) where run.type == "trun" {
      var located = LocatedRun(
        run: TrackRun(
          track: id, timescale: timescale, baseDecodeTime: start, samples: [], byteCount: 0, duration: 0), offset: next)
      guard samples(&run.payload, defaults, base: base, &room, &located) else { return nil }
      next = located.offset + located.run.byteCount
      start &+= located.run.duration
      if !located.run.samples.isEmpty { found.append(located) }
    }
    end = next
    return found
  }

  /// `tfhd`, §8.8.7: the track, what its samples have in common, and where data offsets count from.
  private static func header(
    _ box: inout ByteBuffer, _ trackDefaults: [TrackID: Defaults], _ moofOffset: UInt64, behind end: Int
  ) -> (TrackID, Defaults, base: Int)? {
    guard let (_, bits) = box.readFullBoxHeader(), let id = box.readInteger(as: UInt32.self), id > 0 else { return nil }
    let flags = TrackFragmentFlags(rawValue: bits)
    var base = flags.contains(.defaultBaseIsMoof) ? 0 : end
    if flags.contains(.baseDataOffset) {
      guard let offset = box.readInteger(as: UInt64.self), offset >= moofOffset,
        offset - moofOffset <= UInt64(maximumRunBytes)
      else { return nil }
      base = Int(offset - moofOffset)
    }
    if flags.contains(.sampleDescription) {
      guard box.skip(4) else { return nil }
    }
    var defaults = trackDefaults[TrackID(id)] ?? Defaults()
    if flags.contains(.defaultDuration) { defaults.duration = box.readInteger() ?? 0 }
    if flags.contains(.defaultSize) { defaults.size = box.readInteger() ?? 0 }
    if flags.contains(.defaultFlags) { defaults.flags = box.readInteger() ?? 0 }
    return (TrackID(id), defaults, base)
  }

  /// `tfdt`, §8.8.12.
  private static func decodeTime(_ box: inout ByteBuffer) -> Int64? {
    guard let (version, _) = box.readFullBoxHeader() else { return nil }
    return version == 1 ? box.readInteger(as: Int64.self) : box.readInteger(as: UInt32.self).map(Int64.init)
  }

  /// `trun`, §8.8.8: `room` is how many samples it may have. False when it ends before its samples do, or has more.
  private static func samples(
    _ box: inout ByteBuffer, _ defaults: Defaults, base: Int, _ room: inout Int, _ located: inout LocatedRun
  ) -> Bool {
    guard let (_, bits) = box.readFullBoxHeader(), let count = box.readInteger(as: UInt32.self), Int(count) <= room
    else { return false }
    room -= Int(count)
    let flags = TrackRunFlags(rawValue: bits)
    if flags.contains(.dataOffset) {
      guard let offset = box.readInteger(as: Int32.self), base + Int(offset) >= 0 else { return false }
      located.offset = base + Int(offset)
    }
    var firstFlags: UInt32?
    if flags.contains(.firstSampleFlags) { firstFlags = box.readInteger() }
    for index in 0..<count {
      var (duration, size, sampleFlags) = (defaults.duration, defaults.size, defaults.flags)
      var offset: Int32 = 0
      if flags.contains(.sampleDuration) {
        guard let value = box.readInteger(as: UInt32.self) else { return false }
        duration = value
      }
      if flags.contains(.sampleSize) {
        guard let value = box.readInteger(as: UInt32.self) else { return false }
        size = value
      }
      if flags.contains(.sampleFlags) {
        guard let value = box.readInteger(as: UInt32.self) else { return false }
        sampleFlags = value
      } else if index == 0, let firstFlags {
        sampleFlags = firstFlags
      }
      if flags.contains(.compositionOffset) {
        guard let value = box.readInteger(as: Int32.self) else { return false }
        offset = value
      }
      let meaning = SampleFlags(rawValue: sampleFlags)
      located.run.samples.append(
        RunSample(
          size: size, duration: duration, compositionOffset: offset, isSync: meaning.isSync,
          isDisposable: meaning.isDisposable))
      located.run.byteCount += Int(size)
      located.run.duration &+= Int64(duration)
    }
    return located.run.byteCount <= maximumRunBytes
  }
}
