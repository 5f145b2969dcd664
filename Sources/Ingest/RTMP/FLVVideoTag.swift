internal import NIOCore

/// The body of a video message: FLV's VideoTagHeader (FLV 10.1 E.4.3.1) or the extended one of Enhanced RTMP v2
/// ("Enhanced Video"), and what it carries.
struct FLVVideoTag {
  enum Coding: Sendable { case h264, hevc, av1 }

  enum Content {
    /// A configuration record: avcC, hvcC or av1C.
    case configuration(Coding, ByteBuffer)
    /// One access unit. `composition` is presentation minus decode time in milliseconds.
    case frame(Coding, ByteBuffer, composition: Int32)
    /// Values in AMF0 that describe the picture (Enhanced RTMP v2, "VideoPacketType.Metadata").
    case metadata(ByteBuffer)
    /// Nothing for a decoder: commands, end of sequence, empty tags.
    case nothing
  }

  var content: Content
  /// Added to the presentation time, in nanoseconds (ModEx, TimestampOffsetNano); below a millisecond.
  var nanoseconds: UInt32 = 0

  /// Names the codec that is refused.
  init(_ payload: ByteBuffer) throws(RTMPError) {
    var bytes = payload
    guard let first: UInt8 = bytes.readInteger() else {
      content = .nothing
      return
    }
    if first & 0x80 != 0 {
      let header = try FLVExtendedHeader(
        packetType: first & 0x0F, isCommand: first >> 4 & 0x7 == 5, isAudio: false, &bytes)
      nanoseconds = header.nanoseconds
      content = try Self.extendedContent(header, &bytes)
    } else {
      content = try Self.legacyContent(frameType: first >> 4, codec: first & 0x0F, &bytes)
    }
  }

  /// AVCVIDEOPACKET (E.4.3.2), and the same shape for HEVC as some encoders send it under number 12.
  private static func legacyContent(
    frameType: UInt8, codec: UInt8, _ bytes: inout ByteBuffer
  ) throws(RTMPError) -> Content {
    // Frame type 5 is a command for the player and has no picture.
    if frameType == 5 { return .nothing }
    let coding: Coding
    switch codec {
    case 7: coding = .h264
    case 12: coding = .hevc
    case 0 where bytes.readableBytes == 0: return .nothing
    default: throw FLVCodecName.unsupported(FLVCodecName.legacyVideo[codec] ?? "video codec \(codec)")
    }
    guard let packetType: UInt8 = bytes.readInteger(), let composition = bytes.readI24() else { return .nothing }
    switch packetType {
    case 0: return .configuration(coding, bytes)
    case 1: return bytes.readableBytes > 0 ? .frame(coding, bytes, composition: composition) : .nothing
    default: return .nothing
    }
  }

  private static func extendedContent(
    _ header: FLVExtendedHeader, _ bytes: inout ByteBuffer
  ) throws(RTMPError) -> Content {
    guard let fourCC = header.fourCC else { return .nothing }
    let coding: Coding
    switch fourCC {
    case "avc1": coding = .h264
    case "hvc1": coding = .hevc
    case "av01": coding = .av1
    default: throw FLVCodecName.unsupported(fourCC)
    }
    switch header.packetType {
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
