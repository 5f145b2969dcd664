internal import FMP4
internal import NIOCore

/// Body of a video message, with its content: FLV's VideoTagHeader (FLV 10.1 E.4.3.1) or the extended one of Enhanced
/// RTMP v2 ("Enhanced Video").
struct FLVVideoTag {
  enum Content {
    /// A configuration record: avcC, hvcC or av1C.
    case configuration(CodecID, ByteBuffer)
    /// One access unit. `composition` is presentation minus decode time in milliseconds.
    case frame(CodecID, ByteBuffer, composition: Int32)
    /// Values in AMF0 that describe the video (Enhanced RTMP v2, "VideoPacketType.Metadata").
    case metadata(ByteBuffer)
    /// Nothing for a decoder: commands, end of sequence, empty tags.
    case nothing
  }

  /// Content of the accepted track.
  private(set) var content = Content.nothing
  private(set) var leftOut = FLVLeftOut()
  /// Added to the presentation time, in nanoseconds (ModEx, TimestampOffsetNano). Less than a millisecond.
  private(set) var nanoseconds: UInt32 = 0

  /// `choice` belongs to the publication. Throws the name of an unsupported codec if there is no other video. A stream
  /// must not lose its video silently.
  init(_ payload: ByteBuffer, _ choice: inout FLVTrackChoice) throws(WireError) {
    var bytes = payload
    guard let first: UInt8 = bytes.readInteger() else { return }
    guard first & 0x80 != 0 else {
      let content = try Self.legacyContent(frameType: first >> 4, codec: first & 0x0F, &bytes)
      if case .nothing = content { return }
      take(content, of: 0, &choice)
      return
    }
    var header = FLVExtendedHeader(
      packetType: first & 0x0F, isCommand: first >> 4 & 0x7 == 5, isAudio: false, bytes)
    nanoseconds = header.nanoseconds
    while let track = header.nextTrack() {
      guard let coding = FLVCodecName.codec(.video, fourCC: track.fourCC) else {
        guard header.isMultitrack || (choice.taken ?? 0) != 0 else { throw .unsupported(codec: track.fourCC) }
        leftOut.codec = track.fourCC
        continue
      }
      let content = Self.extendedContent(coding, packetType: header.packetType, track.body)
      if case .nothing = content { continue }
      take(content, of: track.number, &choice)
    }
  }

  private mutating func take(_ content: Content, of track: UInt8, _ choice: inout FLVTrackChoice) {
    if choice.takes(track) { self.content = content } else { leftOut.hasFurtherTrack = true }
  }

  /// AVCVIDEOPACKET (E.4.3.2). Some encoders send HEVC in the same form under number 12.
  private static func legacyContent(
    frameType: UInt8, codec: UInt8, _ bytes: inout ByteBuffer
  ) throws(WireError) -> Content {
    // Frame type 5 is a command for the player without a frame.
    if frameType == 5 { return .nothing }
    guard let coding = FLVCodecName.legacyTaken[codec] else {
      if codec == 0, bytes.readableBytes == 0 { return .nothing }
      throw .unsupported(codec: FLVCodecName.legacyVideo[codec] ?? "video codec \(codec)")
    }
    guard let packetType: UInt8 = bytes.readInteger(), let composition = bytes.readI24() else { return .nothing }
    switch packetType {
    case 0: return .configuration(coding, bytes)
    case 1: return bytes.readableBytes > 0 ? .frame(coding, bytes, composition: composition) : .nothing
    default: return .nothing
    }
  }

  private static func extendedContent(_ coding: CodecID, packetType: UInt8, _ body: ByteBuffer) -> Content {
    var bytes = body
    switch packetType {
    case 0: return .configuration(coding, bytes)
    case 1:
      var composition: Int32 = 0
      if coding != .av1 {
        guard let value = bytes.readI24() else { return .nothing }
        composition = value
      }
      return bytes.readableBytes > 0 ? .frame(coding, bytes, composition: composition) : .nothing
    case 3: return bytes.readableBytes > 0 ? .frame(coding, bytes, composition: 0) : .nothing
    case 4: return .metadata(bytes)
    default: return .nothing
    }
  }
}
