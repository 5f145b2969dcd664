internal import FMP4
internal import NIOCore

/// Finds frames of MP1, MP2 and MP3 by their headers (ISO/IEC 11172-3 §2.4.1.3), with or without a checksum. Frames in
/// free format state no length: such a track is unusable, and says so in its record.
struct MPEGAudioFrameReader: SyncedAudioReader {
  let coding = CodecID.mpegAudio
  var sync = AudioSync()
  /// That of the frames so far. One damaged bit of a header would otherwise be another track.
  private var known: MPEGAudio.Configuration?

  var position: Int { sync.bytes.position }
  var heldBytes: Int { sync.bytes.count }

  mutating func drop() { sync.drop() }

  mutating func next() -> AudioFrame? {
    let frame = sync.frame(
      least: MPEGAudio.headerBytes, header: { MPEGAudio.Frame($0.bytes).map { ($0, $0.byteCount) } },
      isExpected: { [known] in known == nil || known == $0.configuration }, following: MPEGAudio.headerBytes,
      follows: { $0.hasSameHeader(at: $1) })
    let position = sync.bytes.position
    guard let frame, let payload = sync.bytes.take(frame.byteCount) else { return nil }
    let configuration = frame.configuration
    known = configuration
    return AudioFrame(
      position: position, payload: payload, record: configuration.record(),
      samples: Int64(configuration.samplesPerFrame), rate: configuration.sampleRate)
  }
}

extension AudioBytes {
  /// Whether a header there has the layer, the sampling rate and the mono flag of the first one. The sync word alone is
  /// short, and common in coded audio.
  fileprivate func hasSameHeader(at offset: Int) -> Bool {
    guard let first = header(at: 0), let other = header(at: offset) else { return false }
    return (first ^ other) & 0xFFFE_0C00 == 0 && (first >> 6 & 3 == 3) == (other >> 6 & 3 == 3)
  }

  private func header(at offset: Int) -> UInt32? { bytes.getInteger(at: bytes.readerIndex &+ offset) }
}
