internal import FMP4
internal import NIOCore

/// Finds frames of E-AC-3, and puts those of six blocks together as MP4 stores them: those of the first programme, with the
/// frames that depend on them (ETSI TS 102 366 annex E and F). Frames of other programmes are left out.
struct EAC3FrameReader: SyncedAudioReader {
  let coding = CodecID.eac3
  var sync = AudioSync()
  /// The frames of the sample that is put together, their bytes, and the position of the first.
  private var frames: [EAC3.Frame] = []
  private var payload = ByteBuffer()
  private var start = 0
  /// Frames of the last sample. As many make the next one, so it need not wait for what follows.
  private var usualCount = 0
  private var configuration: EAC3.Configuration?
  /// The first programme's frame was the last one that is independent.
  private var isFirstProgram = false

  var position: Int { frames.isEmpty ? sync.bytes.position : start }
  var heldBytes: Int { sync.bytes.position &+ sync.bytes.count &- position }

  mutating func drop() {
    sync.drop()
    (frames, payload, isFirstProgram) = ([], ByteBuffer(), false)
  }

  private var blocks: Int { frames.reduce(0) { $0 &+ ($1.role == .independent ? $1.blocks : 0) } }

  mutating func next() -> AudioFrame? {
    while let frame = sync.frame(
      least: EAC3.headerBytes,
      header: { $0.hasSyncWord(at: 0) ? EAC3.Frame($0.bytes).map { ($0, $0.byteCount) } : nil }, following: 2,
      follows: { $0.hasSyncWord(at: $1) })
    {
      let beginsFirst = frame.role == .independent && frame.substream == 0
      if beginsFirst, blocks >= EAC3.blocksPerSample, let sample = cut() { return sample }
      let position = sync.bytes.position
      guard let more = sync.bytes.take(frame.byteCount) else { return nil }
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
      sync.noteDamage()
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
