internal import NIOCore

/// Common parts of the extended headers of video and audio (Enhanced RTMP v2): ModEx, Multitrack and the FourCC. The
/// header is read once; then `nextTrack` returns the message's content, track by track.
struct FLVExtendedHeader {
  /// A message's content of one track.
  struct Track {
    /// A message with one track has no number: it is track 0.
    var number: UInt8 = 0
    var fourCC: String
    var body: ByteBuffer
  }

  /// AvMultitrackType.
  private enum Layout: UInt8 {
    /// One track; the rest of the message is its body.
    case one = 0
    /// Several tracks of one codec, each with its size.
    case several = 1
    /// Several tracks, each with its codec and size.
    case severalCodecs = 2
  }

  /// 0 sequence start, 1 coded frames, 2 sequence end, 3 coded frames without composition time, 4 metadata or channel
  /// layout. The others are control messages.
  private(set) var packetType: UInt8
  private(set) var nanoseconds: UInt32 = 0
  /// Whether the message states its track number.
  private(set) var isMultitrack = false
  private var layout = Layout.one
  /// FourCC of all tracks of the message. Nil if each has its own, and at the end.
  private var fourCC: String?
  private var bytes: ByteBuffer
  private var tracksLeft = mostTracks

  /// Most tracks that are read from one message: the number of possible track numbers (Enhanced RTMP v2, "Multitrack").
  private static let mostTracks = 256
  private static let multitrack: UInt8 = 6
  private static let audioMultitrack: UInt8 = 5
  private static let modEx: UInt8 = 7

  /// `bytes` is the message without its first byte. A truncated header has no track.
  init(packetType: UInt8, isCommand: Bool, isAudio: Bool, _ bytes: ByteBuffer) {
    self.packetType = packetType
    self.bytes = bytes
    if !read(isCommand: isCommand, isAudio: isAudio) { end() }
  }

  /// Reads the header. False if it is truncated or nothing follows it.
  private mutating func read(isCommand: Bool, isAudio: Bool) -> Bool {
    while packetType == Self.modEx {
      guard let next = readModEx() else { return false }
      packetType = next
    }
    if isCommand, packetType != 4 { return false }
    guard packetType == (isAudio ? Self.audioMultitrack : Self.multitrack) else {
      fourCC = bytes.readFourCC()
      return true
    }
    isMultitrack = true
    guard let form: UInt8 = bytes.readInteger(), let layout = Layout(rawValue: form >> 4) else { return false }
    packetType = form & 0x0F
    self.layout = layout
    if layout != .severalCodecs { fourCC = bytes.readFourCC() }
    return true
  }

  /// The next track of the message. Nil after the last, and if one is truncated.
  mutating func nextTrack() -> Track? {
    guard tracksLeft > 0 else { return nil }
    tracksLeft -= 1
    guard let fourCC = layout == .severalCodecs ? bytes.readFourCC() : fourCC else { return nil }
    guard isMultitrack else {
      defer { end() }
      return Track(fourCC: fourCC, body: bytes)
    }
    guard let number: UInt8 = bytes.readInteger() else { return nil }
    guard layout != .one else {
      defer { end() }
      return Track(number: number, fourCC: fourCC, body: bytes)
    }
    guard let size = bytes.readU24(), let body = bytes.readSlice(length: Int(size)) else { return nil }
    return Track(number: number, fourCC: fourCC, body: body)
  }

  /// Ends the reading.
  private mutating func end() {
    fourCC = nil
    layout = .one
    bytes.clear()
  }

  /// Reads one modifier (Enhanced RTMP v2, "ModEx"): size, data, kind, and the next packet type. Nil at the end.
  private mutating func readModEx() -> UInt8? {
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

extension ByteBuffer {
  /// Three bytes as a signed number (SI24).
  mutating func readI24() -> Int32? {
    guard let value = readU24() else { return nil }
    return Int32(bitPattern: value << 8) >> 8
  }

  /// Four characters. Unprintable ones become `?`, because the name appears in log lines.
  mutating func readFourCC() -> String? {
    guard let bytes = readBytes(length: 4) else { return nil }
    return String(decoding: bytes.map { (0x20...0x7E).contains($0) ? $0 : 0x3F }, as: UTF8.self)
  }
}
