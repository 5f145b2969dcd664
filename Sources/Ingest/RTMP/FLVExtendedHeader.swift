internal import NIOCore

/// What the extended headers of picture and sound have in common: ModEx, Multitrack and the FourCC.
struct FLVExtendedHeader {
  /// 0 sequence start, 1 coded frames, 2 sequence end, 3 coded frames without composition time, 4 metadata or
  /// channel layout; the rest is control.
  var packetType: UInt8
  /// Nil for a command or where the tag ends early.
  var fourCC: String?
  var nanoseconds: UInt32 = 0

  private static let multitrack: UInt8 = 6
  private static let audioMultitrack: UInt8 = 5
  private static let modEx: UInt8 = 7

  init(packetType first: UInt8, isCommand: Bool, isAudio: Bool, _ bytes: inout ByteBuffer) throws(RTMPError) {
    packetType = first
    while packetType == Self.modEx {
      guard let next = readModEx(&bytes) else { return }
      packetType = next
    }
    if isCommand, packetType != 4 { return }
    if packetType == (isAudio ? Self.audioMultitrack : Self.multitrack) {
      guard let layout: UInt8 = bytes.readInteger() else { return }
      packetType = layout & 0x0F
      // One track a message, and the first at that, is what everybody has without Multitrack.
      guard layout >> 4 == 0 else { throw Self.multitrackRefusal }
      fourCC = bytes.readFourCC()
      guard let track: UInt8 = bytes.readInteger() else {
        fourCC = nil
        return
      }
      guard track == 0 else { throw Self.multitrackRefusal }
    } else {
      fourCC = bytes.readFourCC()
    }
  }

  private static var multitrackRefusal: RTMPError {
    RTMPError(.unsupported, "multitrack is not supported; send one video and one audio track")
  }

  /// One modifier (Enhanced RTMP v2, "ModEx"): size, data, kind, and the packet type that follows. Nil at the end.
  private mutating func readModEx(_ bytes: inout ByteBuffer) -> UInt8? {
    guard let short: UInt8 = bytes.readInteger() else { return nil }
    var size = Int(short) + 1
    if size == 256 {
      guard let long: UInt16 = bytes.readInteger() else { return nil }
      size = Int(long) + 1
    }
    guard var data = bytes.readSlice(length: size), let kind: UInt8 = bytes.readInteger() else { return nil }
    if kind >> 4 == 0, let offset = data.readU24() { nanoseconds = min(offset, 999_999) }
    return kind & 0x0F
  }
}

/// Names of what is carried and what is not, for answers and log lines.
enum FLVCodecName {
  static let supported = "H.264, HEVC, AV1, AAC, Opus"

  static func unsupported(_ name: String) -> RTMPError {
    RTMPError(.unsupported, "codec \(name) unsupported; supported: \(supported)")
  }

  /// FLV 10.1 E.4.3.1.
  static let legacyVideo: [UInt8: String] = [
    1: "JPEG", 2: "Sorenson H.263", 3: "Screen Video", 4: "VP6", 5: "VP6 with alpha", 6: "Screen Video 2",
    8: "H.263", 9: "MPEG-4 Part 2",
  ]
  /// FLV 10.1 E.4.2.1.
  static let legacyAudio: [UInt8: String] = [
    0: "PCM", 1: "ADPCM", 2: "MP3", 3: "PCM", 4: "Nellymoser", 5: "Nellymoser", 6: "Nellymoser", 7: "G.711 A-law",
    8: "G.711 µ-law", 11: "Speex", 14: "MP3 8 kHz",
  ]
}

extension ByteBuffer {
  /// Three bytes as a signed number (SI24).
  mutating func readI24() -> Int32? {
    guard let value = readU24() else { return nil }
    return Int32(bitPattern: value << 8) >> 8
  }

  /// Four characters; what is not printable becomes `?`, since the name ends up in log lines.
  mutating func readFourCC() -> String? {
    guard let bytes = readBytes(length: 4) else { return nil }
    return String(decoding: bytes.map { (0x20...0x7E).contains($0) ? $0 : 0x3F }, as: UTF8.self)
  }
}
