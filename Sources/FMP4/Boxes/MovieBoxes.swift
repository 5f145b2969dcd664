/// Writes and reads the boxes of a `moov`, without the sample tables (ISO/IEC 14496-12 §8). Times use version 1 of
/// their box if they need more than 32 bits.
enum MovieBoxes {
  /// Seconds from 1904-01-01 to 1970-01-01, both UTC. Times in boxes count from 1904 (§8.2.2).
  static let secondsFrom1904To1970: Int64 = 2_082_844_800

  /// `mvhd` (§8.2.2). `duration` in ticks of `timescale`, `creation` in seconds since 1904.
  static func movieHeader(
    _ out: inout OutputRawSpan, timescale: UInt32, duration: UInt64, nextTrackID: UInt32, creation: UInt64 = 0
  ) {
    out.header("mvhd", creation: creation, duration: duration) { out, version in
      out.u32(timescale)
      out.time(duration, version: version)
      out.u32(0x0001_0000)  // rate 1
      out.u16(0x0100)  // volume 1
      out.zeros(10)  // reserved
      out.matrix(.none, width: 0, height: 0)
      out.zeros(24)  // pre_defined
      out.u32(nextTrackID)
    }
  }

  static func movieHeader(_ box: BoxView) throws(BoxError) -> (timescale: UInt32, duration: Int64) {
    var fields = BoxFields(box)
    let version = try fields.header()
    return (try fields.u32(), try fields.time(version: version))
  }

  /// `trak` (§8.3.1) with the `stbl` that `table` writes. `duration` is in ticks of the movie's timescale,
  /// `mediaDuration` in ticks of the track's.
  /// `place`: among the tracks of the movie.
  static func track(
    _ out: inout OutputRawSpan, _ track: TrackDescription, _ place: Place, creation: UInt64 = 0, duration: UInt64 = 0,
    mediaDuration: UInt64 = 0, edits: [Edit] = [], _ table: (inout OutputRawSpan) -> Void
  ) {
    out.box("trak") { out in
      trackHeader(&out, track, place, duration: duration, creation: creation)
      if !edits.isEmpty { out.box("edts") { editList(&$0, edits) } }
      out.box("mdia") { out in
        mediaHeader(&out, track, duration: mediaDuration, creation: creation)
        handler(&out, track)
        out.box("minf") { out in
          mediaInformationHeader(&out, track)
          dataInformation(&out)
          table(&out)
        }
      }
      TrackKind.write(&out, track, place)
    }
  }

  /// A track among those of its kind in a movie (§8.3.2.3). Of several, a player shows one: the first, unless the viewer
  /// chooses another.
  enum Place {
    case alone
    case first
    case further

    init(_ track: TrackDescription, in tracks: [TrackDescription]) {
      let same = tracks.filter { $0.kind == track.kind }
      self = same.count < 2 ? .alone : same.first?.id == track.id ? .first : .further
    }
  }

  /// `tkhd` (§8.3.2): track in the movie, and enabled unless another one is shown instead.
  private static func trackHeader(
    _ out: inout OutputRawSpan, _ track: TrackDescription, _ place: Place, duration: UInt64, creation: UInt64
  ) {
    let size = track.codec.displaySize ?? (width: 0, height: 0)
    out.header("tkhd", flags: place == .further ? 2 : 3, creation: creation, duration: duration) { out, version in
      out.u32(track.id.rawValue)
      out.u32(0)  // reserved
      out.time(duration, version: version)
      out.u64(0)  // reserved
      out.u16(0)  // layer
      out.u16(place == .alone ? 0 : track.kind == .video ? 1 : 2)  // alternate_group
      out.u16(track.kind == .audio ? 0x0100 : 0)  // volume
      out.u16(0)  // reserved
      out.matrix(track.rotation, width: size.width, height: size.height)
      out.u32(UInt32(clamping: size.width) << 16)
      out.u32(UInt32(clamping: size.height) << 16)
    }
  }

  static func trackHeader(_ box: BoxView) throws(BoxError) -> (TrackID, Rotation) {
    var fields = BoxFields(box)
    let version = try fields.header()
    let id = try fields.u32()
    guard id > 0 else { throw box.error(.invalid) }
    _ = try fields.u32()  // reserved
    _ = try fields.time(version: version)  // duration
    _ = try fields.u64()  // reserved
    _ = try fields.u32()  // layer, alternate_group
    _ = try fields.u32()  // volume, reserved
    let (a, b, _) = (try fields.i32(), try fields.i32(), try fields.i32())
    return (TrackID(id), Rotation(a: a, b: b, c: try fields.i32(), d: try fields.i32()))
  }

  /// An entry of an `elst`.
  struct Edit: Hashable {
    /// Ticks of the movie's timescale.
    var duration: UInt64
    /// Ticks of the track's timescale after its first sample's decode time. -1 is an empty edit.
    var mediaTime: Int64
  }

  /// `elst` (§8.6.6).
  private static func editList(_ out: inout OutputRawSpan, _ edits: [Edit]) {
    let version: UInt8 = edits.contains { $0.duration > UInt64(UInt32.max) || $0.mediaTime > Int64(Int32.max) } ? 1 : 0
    out.table("elst", version: version, edits) { out, edit in
      out.time(edit.duration, version: version)
      if version == 1 { out.i64(edit.mediaTime) } else { out.i32(Int32(truncatingIfNeeded: edit.mediaTime)) }
      out.u32(0x0001_0000)  // media_rate 1
    }
  }

  /// Reads at most `limit` entries.
  static func editList(_ box: BoxView, atMost limit: UInt32) throws(BoxError) -> [Edit] {
    var fields = BoxFields(box)
    let (version, _) = try fields.versionAndFlags()
    let count = try fields.u32()
    var edits: [Edit] = []
    for _ in 0..<min(count, limit) {
      let duration = UInt64(bitPattern: try fields.time(version: version))
      let mediaTime = try version == 1 ? fields.i64() : Int64(fields.i32())
      _ = try fields.u32()  // media_rate
      edits.append(Edit(duration: duration, mediaTime: mediaTime))
    }
    return edits
  }

  /// `mdhd` (§8.4.2). `duration` is in ticks of the track's timescale.
  private static func mediaHeader(
    _ out: inout OutputRawSpan, _ track: TrackDescription, duration: UInt64, creation: UInt64
  ) {
    out.header("mdhd", creation: creation, duration: duration) { out, version in
      out.u32(track.timescale)
      out.time(duration, version: version)
      out.u16(packedLanguage(track.language))
      out.u16(0)  // pre_defined
    }
  }

  static func mediaHeader(_ box: BoxView) throws(BoxError) -> (timescale: UInt32, language: String) {
    var fields = BoxFields(box)
    let version = try fields.header()
    let timescale = try fields.u32()
    guard timescale > 0 else { throw box.error(.invalid) }
    _ = try fields.time(version: version)  // duration
    let packed = try fields.u16()
    let letters = [packed >> 10 & 31, packed >> 5 & 31, packed & 31].map { UInt8(truncatingIfNeeded: $0) &+ 0x60 }
    return (timescale, String(decoding: letters, as: UTF8.self))
  }

  /// Packs three letters into five bits each (§8.4.2.3). Anything but three lower-case letters becomes "und".
  static func packedLanguage(_ language: String) -> UInt16 {
    let letters = Array(language.utf8)
    guard letters.count == 3, letters.allSatisfy({ (0x61...0x7A).contains($0) }) else { return packedLanguage("und") }
    return letters.reduce(0) { $0 << 5 | UInt16($1 - 0x60) }
  }

  /// `hdlr` (§8.4.3).
  private static func handler(_ out: inout OutputRawSpan, _ track: TrackDescription) {
    out.fullBox("hdlr") {
      $0.u32(0)  // pre_defined
      $0.fourCC(track.kind == .video ? "vide" : "soun")
      $0.zeros(12)  // reserved
      $0.cString(track.kind == .video ? "video" : "audio")
    }
  }

  /// `vmhd` or `smhd` (§12.1.2, §12.2.2).
  private static func mediaInformationHeader(_ out: inout OutputRawSpan, _ track: TrackDescription) {
    switch track.kind {
    case .video: out.fullBox("vmhd", flags: 1) { $0.zeros(8) }  // graphicsmode, opcolor
    case .audio: out.fullBox("smhd") { $0.zeros(4) }  // balance, reserved
    }
  }

  /// `dinf` that states that the media is in this file (§8.7.2).
  private static func dataInformation(_ out: inout OutputRawSpan) {
    out.box("dinf") {
      $0.fullBox("dref") {
        $0.u32(1)  // entry_count
        $0.fullBox("url ", flags: 1) { _ in }
      }
    }
  }

  /// `trex` (§8.8.3): default values of fragment fields. weir's fragments do not rely on them.
  static func trackExtends(_ out: inout OutputRawSpan, _ track: TrackID) {
    out.fullBox("trex") {
      $0.u32(track.rawValue)
      $0.u32(1)  // default_sample_description_index
      $0.u32(0)  // default_sample_duration
      $0.u32(0)  // default_sample_size
      $0.u32(0)  // default_sample_flags
    }
  }

  static func trackExtends(_ box: BoxView) throws(BoxError) -> (TrackID, FragmentReader.Defaults) {
    var fields = BoxFields(box)
    _ = try fields.versionAndFlags()
    let id = try fields.u32()
    guard id > 0 else { throw box.error(.invalid) }
    _ = try fields.u32()  // default_sample_description_index
    let (duration, size, flags) = (try fields.u32(), try fields.u32(), try fields.u32())
    return (TrackID(id), FragmentReader.Defaults(duration: duration, size: size, flags: flags))
  }
}

extension BoxFields {
  /// First fields of `mvhd`, `tkhd` and `mdhd`: flags, creation_time and modification_time. Returns the version.
  fileprivate mutating func header() throws(BoxError) -> UInt8 {
    let (version, _) = try versionAndFlags()
    _ = try time(version: version)
    _ = try time(version: version)
    return version
  }
}

extension OutputRawSpan {
  /// `mvhd`, `tkhd` or `mdhd`: writes version, flags, creation_time and modification_time, then `body`.
  fileprivate mutating func header(
    _ type: FourCC, flags: UInt32 = 0, creation: UInt64, duration: UInt64,
    _ body: (inout OutputRawSpan, _ version: UInt8) -> Void
  ) {
    let version: UInt8 = max(creation, duration) > UInt64(UInt32.max) ? 1 : 0
    fullBox(type, version: version, flags: flags) {
      $0.time(creation, version: version)
      $0.time(creation, version: version)
      body(&$0, version)
    }
  }

  /// A time or duration: 32 bits in version 0 of a box, 64 bits in version 1.
  mutating func time(_ value: UInt64, version: UInt8) {
    if version == 1 { u64(value) } else { u32(UInt32(truncatingIfNeeded: value)) }
  }

  /// The transformation matrix of §8.3.2: turns the video about its corner and moves it back into view.
  fileprivate mutating func matrix(_ rotation: Rotation, width: Int, height: Int) {
    let one: Int32 = 0x0001_0000
    let w = Int32(clamping: width) << 16
    let h = Int32(clamping: height) << 16
    let (a, b, c, d) = rotation.matrix
    let x = (a < 0 ? w : 0) | (c < 0 ? h : 0)
    let y = (b < 0 ? w : 0) | (d < 0 ? h : 0)
    for value in [a * one, b * one, 0, c * one, d * one, 0, x, y, 0x4000_0000] { i32(value) }
  }
}
