internal import FMP4
internal import NIOCore

/// Finds AAC frames behind ADTS headers (ISO/IEC 14496-3 §1.A.2.2). The configuration comes from the header.
struct ADTSReader: SyncedAudioReader {
  let coding = CodecID.aac
  var sync = AudioSync()
  /// The newest configuration of a program config element: not every frame has one.
  private var programConfig: [UInt8]?

  var position: Int { sync.bytes.position }
  var heldBytes: Int { sync.bytes.count }

  mutating func drop() { sync.drop() }

  mutating func next() -> AudioFrame? {
    while let header = sync.frame(
      least: ADTSHeader.bytes, header: { ADTSHeader($0.bytes, at: 0).map { ($0, $0.frameBytes) } },
      following: ADTSHeader.bytes, follows: { ADTSHeader($0.bytes, at: $1) != nil })
    {
      // Several blocks behind one header cannot be told apart without decoding them.
      guard header.blocks == 1 else {
        sync.lose(header.frameBytes)
        continue
      }
      guard let record = record(of: header) else {
        sync.lose(header.frameBytes)
        continue
      }
      let position = sync.bytes.position
      sync.bytes.skip(header.headerBytes)
      guard let payload = sync.bytes.take(header.frameBytes &- header.headerBytes) else { return nil }
      return AudioFrame(
        position: position, payload: payload, record: record, samples: ADTSHeader.samples, rate: header.rate)
    }
    return nil
  }

  /// The configuration of the next frame. Nil if its header leaves the channels to a program config element, and none has come.
  private mutating func record(of header: ADTSHeader) -> [UInt8]? {
    guard header.leavesChannels else { return header.audioSpecificConfig }
    let end = min(header.frameBytes, header.headerBytes &+ AAC.programConfigBytes)
    let beginning = (header.headerBytes..<end).compactMap { sync.bytes.byte($0) }
    if let found = AAC.specificConfig(header.audioSpecificConfig, inFrame: beginning) { programConfig = found }
    guard let known = programConfig, known.starts(with: header.audioSpecificConfig) else { return nil }
    return known
  }
}
