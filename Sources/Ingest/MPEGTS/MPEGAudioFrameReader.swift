internal import FMP4
internal import NIOCore

/// Finds frames of MP1, MP2 and MP3 by their headers (ISO/IEC 11172-3 §2.4.1.3), with or without a checksum. Frames in
/// free format state no length: such a track is unusable, and says so in its record.
struct MPEGAudioFrameReader: SyncedAudioReader {
  let coding = CodecID.mpegAudio
  var sync = AudioSync()

  var position: Int { sync.bytes.position }
  var heldBytes: Int { sync.bytes.count }

  mutating func drop() { sync.drop() }

  mutating func next() -> AudioFrame? {
    let frame = sync.frame(
      least: MPEGAudio.headerBytes, header: { MPEGAudio.Frame($0.bytes).map { ($0, $0.byteCount) } },
      following: Self.comparedBytes, follows: { $0.hasSameHeader(at: $1) })
    let position = sync.bytes.position
    guard let frame, let payload = sync.bytes.take(frame.byteCount) else { return nil }
    let configuration = frame.configuration
    return AudioFrame(
      position: position, payload: payload, record: configuration.record(),
      samples: Int64(configuration.samplesPerFrame), rate: configuration.sampleRate)
  }

  /// Bytes of the next header that are compared.
  private static let comparedBytes = 3
}

extension AudioBytes {
  /// Whether a header with the layer and sampling rate of the first one begins there. The sync word alone is short, and
  /// common in coded audio.
  fileprivate func hasSameHeader(at offset: Int) -> Bool {
    guard let layer = byte(1), let next = byte(offset &+ 1), let rate = byte(2), let nextRate = byte(offset &+ 2) else {
      return false
    }
    return byte(offset) == 0xFF && next | 1 == layer | 1 && (next ^ layer | (nextRate ^ rate) & 0x0C) & 0xFE == 0
  }
}
