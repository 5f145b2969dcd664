internal import FMP4
internal import NIOCore

/// Body of an audio message: FLV's AudioTagHeader (E.4.2.1) or the extended one ("Enhanced Audio").
struct FLVAudioTag {
  enum Content {
    /// An AudioSpecificConfig or an OpusHead.
    case configuration(CodecID, ByteBuffer)
    /// One audio frame.
    case frame(CodecID, ByteBuffer)
  }

  /// In the message's order. Empty if it has nothing for a decoder.
  private(set) var tracks: [FLVTrackContent<Content>] = []
  /// Name of an unsupported codec in it, and the number of its track.
  private(set) var leftOut: String?
  private(set) var leftOutNumber: UInt8 = 0
  /// Frames in unsupported codecs.
  private(set) var leftOutFrames = 0
  /// The configurations that frames state themselves, by the numbers of their tracks.
  private(set) var ownRecords: [UInt8: ByteBuffer] = [:]
  /// As in `FLVVideoTag`.
  private(set) var nanoseconds: UInt32 = 0

  init(_ payload: ByteBuffer) {
    var bytes = payload
    guard let first: UInt8 = bytes.readInteger() else { return }
    switch first >> 4 {
    case 9:
      var header = FLVExtendedHeader(packetType: first & 0x0F, isCommand: false, isAudio: true, bytes)
      nanoseconds = header.nanoseconds
      while let track = header.nextTrack() {
        guard let coding = FLVCodecName.codec(.audio, fourCC: track.fourCC) else {
          (leftOut, leftOutNumber) = (FLVCodecName.audio(fourCC: track.fourCC), track.number)
          if header.packetType == 1 { leftOutFrames += 1 }
          continue
        }
        take(track.number, coding, packetType: header.packetType, track.body)
      }
    case 10:
      guard let packetType: UInt8 = bytes.readInteger() else { return }
      take(0, .aac, packetType: packetType, bytes)
    case let format where bytes.readableBytes > 0:
      guard let coding = FLVCodecName.legacyAudioTaken[format] else {
        (leftOut, leftOutFrames) = (FLVCodecName.legacyAudio[format] ?? "audio format \(format)", 1)
        return
      }
      take(0, coding, packetType: 1, bytes)
      // G.711 is always of 8 kHz, whatever the tag's rate says. The lowest bit is SoundType.
      if coding != .mpegAudio {
        ownRecords[0] = ByteBuffer(bytes: G711.record(sampleRate: 8000, channels: first & 1 + 1))
      }
    default: break
    }
  }

  private mutating func take(_ track: UInt8, _ coding: CodecID, packetType: UInt8, _ bytes: ByteBuffer) {
    switch packetType {
    case 0 where !coding.type.isStatedByFrames:
      tracks.append(FLVTrackContent(number: track, content: .configuration(coding, bytes)))
    case 1 where bytes.readableBytes > 0:
      tracks.append(FLVTrackContent(number: track, content: .frame(coding, bytes)))
      if let record = coding.type.record(inFrame: bytes) { ownRecords[track] = ByteBuffer(bytes: record) }
    default: break
    }
  }
}
