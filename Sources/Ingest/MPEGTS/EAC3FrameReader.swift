internal import FMP4
internal import NIOCore

/// Finds frames of E-AC-3, and puts those of six blocks together as MP4 stores them: those of the first programme, with the
/// frames that depend on them (ETSI TS 102 366 annex E and F). Frames of other programmes are left out.
struct EAC3FrameReader: AudioFrameReader {
  let coding = CodecID.eac3
  private(set) var damaged = 0
  private var bytes = AudioBytes()
  private var isAligned = false
  /// The frames of the sample that is put together, their bytes, and the position of the first.
  private var frames: [EAC3.Frame] = []
  private var payload = ByteBuffer()
  private var start = 0
  /// Frames of the last sample. As many make the next one, so it need not wait for what follows.
  private var usualCount = 0
  private var configuration: EAC3.Configuration?
  /// The first programme's frame was the last one that is independent.
  private var isFirstProgram = false

  var position: Int { frames.isEmpty ? bytes.position : start }
  var heldBytes: Int { bytes.position &+ bytes.count &- position }

  mutating func begin() { if bytes.count == 0 { isAligned = true } }
  mutating func append(_ more: ByteBuffer) { bytes.append(more) }

  mutating func drop() {
    bytes.removeAll()
    (frames, payload) = ([], ByteBuffer())
    (isAligned, isFirstProgram) = (false, false)
  }

  private var blocks: Int { frames.reduce(0) { $0 &+ ($1.role == .independent ? $1.blocks : 0) } }

  mutating func next() -> AudioFrame? {
    while bytes.count >= EAC3.headerBytes {
      guard let frame = EAC3.Frame(bytes.bytes) else {
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
      guard bytes.count >= frame.byteCount else { return nil }
      isAligned = true
      let beginsFirst = frame.role == .independent && frame.substream == 0
      if beginsFirst, blocks >= EAC3.blocksPerSample, let sample = cut() { return sample }
      let position = bytes.position
      guard let more = bytes.take(frame.byteCount) else { return nil }
      if frame.role == .independent { isFirstProgram = frame.substream == 0 }
      // A frame that depends on one of a sample that is out already: from now on more are waited for.
      guard isFirstProgram, frame.role == .independent || !frames.isEmpty else {
        if isFirstProgram { usualCount = 0 }
        continue
      }
      if frames.isEmpty { start = position }
      frames.append(frame)
      payload.writeImmutableBuffer(more)
      if blocks >= EAC3.blocksPerSample, frames.count == usualCount, let sample = cut() { return sample }
    }
    return nil
  }

  /// The sample of the frames so far.
  private mutating func cut() -> AudioFrame? {
    defer { (frames, payload) = ([], ByteBuffer()) }
    guard let new = EAC3.Configuration(frames) else {
      damaged &+= 1
      return nil
    }
    usualCount = frames.count
    let known = configuration.flatMap { $0.hasFormat(of: new) ? $0 : nil } ?? new
    configuration = known
    return AudioFrame(
      position: start, payload: payload, record: known.record(), samples: Int64(AC3.samplesPerFrame),
      rate: known.sampleRate)
  }
}
