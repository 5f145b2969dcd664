internal import NIOCore

/// The boxes of a `moov` that live init segments and finished movies share. Times take version 1 of their box where
/// 32 bits do not hold them.
enum TrackBoxes {
  /// Seconds from 1904-01-01 to 1970-01-01, both UTC: the origin of all times in boxes (ISO/IEC 14496-12 §8.2.2).
  static let secondsFrom1904To1970: Int64 = 2_082_844_800

  /// `mvhd` (§8.2.2). `duration` in ticks of `timescale`, `creation` in seconds since 1904.
  static func movieHeader(
    _ out: inout OutputRawSpan, timescale: UInt32, duration: UInt64, nextTrackID: UInt32, creation: UInt64 = 0
  ) {
    let version: UInt8 = duration > UInt64(UInt32.max) || creation > UInt64(UInt32.max) ? 1 : 0
    out.fullBox("mvhd", version: version) {
      $0.time(creation, version: version)
      $0.time(creation, version: version)
      $0.u32(timescale)
      $0.time(duration, version: version)
      $0.u32(0x0001_0000)
      $0.u16(0x0100)
      $0.zeros(10)
      $0.matrix(.none, width: 0, height: 0)
      $0.zeros(24)
      $0.u32(nextTrackID)
    }
  }

  /// `tkhd` (§8.3.2): enabled and in the movie. `duration` in ticks of the movie's timescale.
  static func trackHeader(
    _ out: inout OutputRawSpan, _ track: TrackDescription, duration: UInt64, creation: UInt64 = 0
  ) {
    let version: UInt8 = duration > UInt64(UInt32.max) || creation > UInt64(UInt32.max) ? 1 : 0
    let size = track.codec.displaySize ?? (width: 0, height: 0)
    out.fullBox("tkhd", version: version, flags: 3) {
      $0.time(creation, version: version)
      $0.time(creation, version: version)
      $0.u32(track.id.rawValue)
      $0.u32(0)
      $0.time(duration, version: version)
      $0.zeros(8)
      $0.u16(0)
      $0.u16(0)
      $0.u16(track.kind == .audio ? 0x0100 : 0)
      $0.u16(0)
      $0.matrix(track.rotation, width: size.width, height: size.height)
      $0.u32(UInt32(clamping: size.width) << 16)
      $0.u32(UInt32(clamping: size.height) << 16)
    }
  }

  /// `mdhd` (§8.4.2). `duration` in ticks of the track's timescale.
  static func mediaHeader(
    _ out: inout OutputRawSpan, _ track: TrackDescription, duration: UInt64, creation: UInt64 = 0
  ) {
    let version: UInt8 = duration > UInt64(UInt32.max) || creation > UInt64(UInt32.max) ? 1 : 0
    out.fullBox("mdhd", version: version) {
      $0.time(creation, version: version)
      $0.time(creation, version: version)
      $0.u32(track.timescale)
      $0.time(duration, version: version)
      $0.u16(packedLanguage(track.language))
      $0.u16(0)
    }
  }

  /// Three letters of five bits each (§8.4.2.3); "und" for what is not three lower-case letters.
  static func packedLanguage(_ language: String) -> UInt16 {
    let letters = Array(language.utf8)
    guard letters.count == 3, letters.allSatisfy({ (0x61...0x7A).contains($0) }) else { return packedLanguage("und") }
    return letters.reduce(0) { $0 << 5 | UInt16($1 - 0x60) }
  }

  /// `hdlr` (§8.4.3).
  static func handler(_ out: inout OutputRawSpan, _ track: TrackDescription) {
    out.fullBox("hdlr") {
      $0.u32(0)
      $0.fourCC(track.kind == .video ? "vide" : "soun")
      $0.zeros(12)
      $0.cString(track.kind == .video ? "video" : "audio")
    }
  }

  /// `vmhd` or `smhd` (§12.1.2, §12.2.2).
  static func mediaInformationHeader(_ out: inout OutputRawSpan, _ track: TrackDescription) {
    switch track.kind {
    case .video: out.fullBox("vmhd", flags: 1) { $0.zeros(8) }
    case .audio: out.fullBox("smhd") { $0.zeros(4) }
    }
  }

  /// `dinf` that says: the media is in this file (§8.7.2).
  static func dataInformation(_ out: inout OutputRawSpan) {
    out.box("dinf") {
      $0.fullBox("dref") {
        $0.u32(1)
        $0.fullBox("url ", flags: 1) { _ in }
      }
    }
  }
}

extension OutputRawSpan {
  /// A time or duration of 32 bits in version 0 of a box, 64 in version 1.
  mutating func time(_ value: UInt64, version: UInt8) {
    if version == 1 { u64(value) } else { u32(UInt32(truncatingIfNeeded: value)) }
  }

  /// The transformation matrix of §8.3.2: the picture is turned clockwise about its corner and moved back into view.
  mutating func matrix(_ rotation: Rotation, width: Int, height: Int) {
    let one: Int32 = 0x0001_0000
    let w = Int32(clamping: width) << 16
    let h = Int32(clamping: height) << 16
    let values: [Int32] =
      switch rotation {
      case .none: [one, 0, 0, 0, one, 0, 0, 0, 0x4000_0000]
      case .clockwise90: [0, one, 0, -one, 0, 0, h, 0, 0x4000_0000]
      case .clockwise180: [-one, 0, 0, 0, -one, 0, w, h, 0x4000_0000]
      case .clockwise270: [0, -one, 0, one, 0, 0, 0, w, 0x4000_0000]
      }
    for value in values { i32(value) }
  }
}
