internal import Base
internal import FMP4
internal import NIOCore
internal import Publishing

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
  }

  /// In the message's order. Empty if it has nothing for a decoder: commands, end of sequence, empty tags.
  private(set) var tracks: [FLVTrackContent<Content>] = []
  /// Name of an unsupported codec in it, and the number of its track.
  private(set) var leftOut: String?
  private(set) var leftOutNumber: UInt8 = 0
  /// Frames in unsupported codecs.
  private(set) var leftOutFrames = 0
  /// Added to the presentation time, in nanoseconds (ModEx, TimestampOffsetNano). Less than a millisecond.
  private(set) var nanoseconds: UInt32 = 0

  /// Throws the name of an unsupported codec of the default track, unless the publication has another video
  /// (`hasFurther`). A stream must not lose its video silently.
  init(_ payload: ByteBuffer, hasFurther: Bool = false) throws(WireError) {
    var bytes = payload
    guard let first: UInt8 = bytes.readInteger() else { return }
    guard first & 0x80 != 0 else {
      let content = try Self.legacyContent(frameType: first >> 4, codec: first & 0x0F, &bytes)
      if let content { tracks.append(FLVTrackContent(number: 0, content: content)) }
      return
    }
    var header = FLVExtendedHeader(
      packetType: first & 0x0F, isCommand: first >> 4 & 0x7 == 5, isAudio: false, bytes)
    nanoseconds = header.nanoseconds
    while let track = header.nextTrack() {
      guard let coding = FLVCodecName.codec(.video, fourCC: track.fourCC) else {
        guard header.isMultitrack || hasFurther else { throw .unsupported(codec: track.fourCC) }
        (leftOut, leftOutNumber) = (track.fourCC, track.number)
        if [1, 3].contains(header.packetType) { leftOutFrames += 1 }
        continue
      }
      if let content = Self.extendedContent(coding, packetType: header.packetType, track.body) {
        tracks.append(FLVTrackContent(number: track.number, content: content))
      }
    }
  }

  /// AVCVIDEOPACKET (E.4.3.2). Some encoders send HEVC in the same form under number 12.
  private static func legacyContent(
    frameType: UInt8, codec: UInt8, _ bytes: inout ByteBuffer
  ) throws(WireError) -> Content? {
    // Frame type 5 is a command for the player without a frame.
    if frameType == 5 { return nil }
    guard let coding = FLVCodecName.legacyTaken[codec] else {
      if codec == 0, bytes.readableBytes == 0 { return nil }
      throw .unsupported(codec: FLVCodecName.legacyVideo[codec] ?? "video codec \(codec)")
    }
    guard let packetType: UInt8 = bytes.readInteger(), let composition = bytes.readI24() else { return nil }
    switch packetType {
    case 0: return .configuration(coding, bytes)
    case 1: return bytes.readableBytes > 0 ? .frame(coding, bytes, composition: composition) : nil
    default: return nil
    }
  }

  private static func extendedContent(_ coding: CodecID, packetType: UInt8, _ body: ByteBuffer) -> Content? {
    var bytes = body
    switch packetType {
    // The record of VP9 lacks the size, which key frames have.
    case 0: return coding.type.isStatedByFrames ? nil : .configuration(coding, bytes)
    case 1:
      var composition: Int32 = 0
      if coding.type.hasNALUnits {
        guard let value = bytes.readI24() else { return nil }
        composition = value
      }
      return bytes.readableBytes > 0 ? .frame(coding, bytes, composition: composition) : nil
    case 3: return bytes.readableBytes > 0 ? .frame(coding, bytes, composition: 0) : nil
    case 4: return .metadata(bytes)
    default: return nil
    }
  }
}
