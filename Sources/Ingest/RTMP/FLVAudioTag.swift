internal import NIOCore

/// The body of an audio message: FLV's AudioTagHeader (E.4.2.1) or the extended one ("Enhanced Audio").
struct FLVAudioTag {
  enum Coding: Sendable { case aac, opus }

  enum Content {
    /// An AudioSpecificConfig or an OpusHead.
    case configuration(Coding, ByteBuffer)
    /// One raw AAC frame or Opus packet.
    case frame(Coding, ByteBuffer)
    case nothing
  }

  var content: Content
  /// As for video.
  var nanoseconds: UInt32 = 0

  init(_ payload: ByteBuffer) throws(RTMPError) {
    var bytes = payload
    guard let first: UInt8 = bytes.readInteger() else {
      content = .nothing
      return
    }
    switch first >> 4 {
    case 9:
      let header = try FLVExtendedHeader(packetType: first & 0x0F, isCommand: false, isAudio: true, &bytes)
      nanoseconds = header.nanoseconds
      content = try Self.extendedContent(header, bytes)
    case 10:
      guard let packetType: UInt8 = bytes.readInteger() else {
        content = .nothing
        return
      }
      switch packetType {
      case 0: content = .configuration(.aac, bytes)
      case 1: content = bytes.readableBytes > 0 ? .frame(.aac, bytes) : .nothing
      default: content = .nothing
      }
    case let format:
      if bytes.readableBytes == 0 {
        content = .nothing
      } else {
        throw FLVCodecName.unsupported(FLVCodecName.legacyAudio[format] ?? "audio format \(format)")
      }
    }
  }

  private static func extendedContent(_ header: FLVExtendedHeader, _ bytes: ByteBuffer) throws(RTMPError) -> Content {
    guard let fourCC = header.fourCC else { return .nothing }
    let coding: Coding
    switch fourCC {
    case "mp4a": coding = .aac
    case "Opus": coding = .opus
    default: throw FLVCodecName.unsupported(fourCC)
    }
    switch header.packetType {
    case 0: return .configuration(coding, bytes)
    case 1: return bytes.readableBytes > 0 ? .frame(coding, bytes) : .nothing
    default: return .nothing
    }
  }
}
