internal import FMP4
internal import NIOCore

/// Finds frames of AC-3 by their sync words (ETSI TS 102 366 §4).
struct AC3FrameReader: SyncedAudioReader {
  let coding = CodecID.ac3
  var sync = AudioSync()

  var position: Int { sync.bytes.position }
  var heldBytes: Int { sync.bytes.count }

  mutating func drop() { sync.drop() }

  mutating func next() -> AudioFrame? {
    let frame = sync.frame(
      least: AC3.headerBytes, header: { $0.hasSyncWord(at: 0) ? AC3.Frame($0.bytes).map { ($0, $0.byteCount) } : nil },
      following: 2, follows: { $0.hasSyncWord(at: $1) })
    let position = sync.bytes.position
    guard let frame, let payload = sync.bytes.take(frame.byteCount) else { return nil }
    return AudioFrame(
      position: position, payload: payload, record: frame.configuration.record(),
      samples: Int64(AC3.samplesPerFrame), rate: frame.configuration.sampleRate)
  }
}

extension AudioBytes {
  func hasSyncWord(at offset: Int) -> Bool { byte(offset) == 0x0B && byte(offset &+ 1) == 0x77 }
}
