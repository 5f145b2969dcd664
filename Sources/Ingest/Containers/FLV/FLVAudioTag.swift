internal import FMP4
internal import NIOCore

/// Body of an audio message: FLV's AudioTagHeader (E.4.2.1) or the extended one ("Enhanced Audio").
struct FLVAudioTag {
  enum Content {
    /// An AudioSpecificConfig or an OpusHead.
    case configuration(CodecID, ByteBuffer)
    /// One raw AAC frame or Opus packet.
    case frame(CodecID, ByteBuffer)
    case nothing
  }

  /// Content of the accepted track.
  private(set) var content = Content.nothing
  /// The configuration that the frame states itself.
  private(set) var ownRecord: ByteBuffer?
  private(set) var leftOut = FLVLeftOut()
  /// As in `FLVVideoTag`.
  private(set) var nanoseconds: UInt32 = 0

  /// `choice` belongs to the publication.
  init(_ payload: ByteBuffer, _ choice: inout FLVTrackChoice) {
    var bytes = payload
    guard let first: UInt8 = bytes.readInteger() else { return }
    switch first >> 4 {
    case 9:
      var header = FLVExtendedHeader(packetType: first & 0x0F, isCommand: false, isAudio: true, bytes)
      nanoseconds = header.nanoseconds
      while let track = header.nextTrack() {
        guard let coding = FLVCodecName.codec(.audio, fourCC: track.fourCC) else {
          leftOut.codec = FLVCodecName.audio(fourCC: track.fourCC)
          continue
        }
        take(track.number, coding, packetType: header.packetType, track.body, &choice)
      }
    case 10:
      guard let packetType: UInt8 = bytes.readInteger() else { return }
      take(0, .aac, packetType: packetType, bytes, &choice)
    case let format where bytes.readableBytes > 0:
      leftOut.codec = FLVCodecName.legacyAudio[format] ?? "audio format \(format)"
    default: break
    }
  }

  private mutating func take(
    _ track: UInt8, _ coding: CodecID, packetType: UInt8, _ bytes: ByteBuffer, _ choice: inout FLVTrackChoice
  ) {
    guard packetType <= 1, packetType == 1 || !coding.type.isStatedByFrames else { return }
    // The configuration decides whether the track is accepted, or a frame that states its own.
    let record = packetType == 1 ? coding.type.record(inFrame: bytes) : nil
    guard packetType == 0 || record != nil ? choice.takes(track) : choice.follows(track) else {
      leftOut.hasFurtherTrack = true
      return
    }
    if packetType == 0 {
      content = .configuration(coding, bytes)
    } else if bytes.readableBytes > 0 {
      content = .frame(coding, bytes)
      ownRecord = record.map { ByteBuffer(bytes: $0) }
    }
  }
}
