internal import FMP4
internal import NIOCore

/// Finds frames of AC-3 by their sync words (ETSI TS 102 366 §4).
struct AC3FrameReader: AudioFrameReader {
  let coding = CodecID.ac3
  private(set) var damaged = 0
  private var bytes = AudioBytes()
  /// A frame begins with the next byte. Otherwise a header counts only if another one follows its frame.
  private var isAligned = false

  var position: Int { bytes.position }
  var heldBytes: Int { bytes.count }

  mutating func begin() { if bytes.count == 0 { isAligned = true } }
  mutating func append(_ more: ByteBuffer) { bytes.append(more) }

  mutating func drop() {
    bytes.removeAll()
    isAligned = false
  }

  mutating func next() -> AudioFrame? {
    while bytes.count >= AC3.headerBytes {
      guard let frame = AC3.Frame(bytes.bytes) else {
        if isAligned { damaged &+= 1 }
        isAligned = false
        bytes.skip(1)
        continue
      }
      if !isAligned {
        guard bytes.count >= frame.byteCount &+ 2 else { return nil }
        guard bytes.hasSyncWord(at: frame.byteCount) else {
          bytes.skip(1)
          continue
        }
      }
      let position = bytes.position
      guard let payload = bytes.take(frame.byteCount) else { return nil }
      isAligned = true
      return AudioFrame(
        position: position, payload: payload, record: frame.configuration.record(),
        samples: Int64(AC3.samplesPerFrame), rate: frame.configuration.sampleRate)
    }
    return nil
  }
}

extension AudioBytes {
  func hasSyncWord(at offset: Int) -> Bool { byte(offset) == 0x0B && byte(offset &+ 1) == 0x77 }
}
