internal import FMP4
internal import NIOCore

/// Finds Opus packets behind the control headers of "Opus in MPEG-TS" (version 0.1.3-draft §5, as libavformat writes and
/// reads it).
struct OpusPacketReader: AudioFrameReader {
  let coding = CodecID.opus
  private(set) var damaged = 0
  private var bytes = AudioBytes()
  private let record: [UInt8]

  var position: Int { bytes.position }
  var heldBytes: Int { bytes.count }

  /// Nil for assignments of channels that weir does not take.
  init?(channels: UInt8) {
    guard let record = Self.record(channels) else { return nil }
    self.record = record
  }

  mutating func begin() {}
  mutating func append(_ more: ByteBuffer) { bytes.append(more) }
  mutating func drop() { bytes.removeAll() }

  mutating func next() -> AudioFrame? {
    var isLost = false
    while let first = bytes.byte(0), let flags = bytes.byte(1) {
      // `control_header_prefix` of eleven bits.
      guard first == 0x7F, flags & 0xE0 == 0xE0 else {
        if !isLost { damaged &+= 1 }
        isLost = true
        bytes.skip(1)
        continue
      }
      guard let (header, size) = sizes(flags) else { return nil }
      guard bytes.count >= header &+ size else { return nil }
      let position = bytes.position
      bytes.skip(header)
      guard let payload = bytes.take(size) else { return nil }
      guard let duration = Opus.packetDuration(payload) else {
        damaged &+= 1
        continue
      }
      return AudioFrame(
        position: position, payload: payload, record: record, samples: Int64(duration), rate: Opus.timescale)
    }
    return nil
  }

  /// Bytes of the control header and of the packet. Nil if they have not come.
  private func sizes(_ flags: UInt8) -> (header: Int, packet: Int)? {
    var header = 2
    var size = 0
    while true {
      guard let byte = bytes.byte(header) else { return nil }
      header &+= 1
      size &+= Int(byte)
      if byte < 255 || size > MPEGTSLimits.audioBytes { break }
    }
    // `start_trim_flag` and `end_trim_flag`.
    if flags & 0x10 != 0 { header &+= 2 }
    if flags & 0x08 != 0 { header &+= 2 }
    // `control_extension_flag`.
    if flags & 0x04 != 0 {
      guard let length = bytes.byte(header) else { return nil }
      header &+= 1 &+ Int(length)
    }
    return (header, size)
  }

  /// The identification header (RFC 7845 §5.1) for a `channel_config_code`. From three channels on the mapping is that
  /// of Vorbis.
  private static func record(_ code: UInt8) -> [UInt8]? {
    let streams: [(total: UInt8, coupled: UInt8, order: [UInt8])] = [
      (2, 1, [0, 2, 1]), (2, 2, [0, 1, 2, 3]), (3, 2, [0, 4, 1, 2, 3]), (4, 2, [0, 4, 1, 2, 3, 5]),
      (4, 3, [0, 4, 1, 2, 3, 5, 6]), (5, 3, [0, 6, 1, 2, 3, 4, 5, 7]),
    ]
    // Version 1, no pre-skip: a live stream is joined in its midst. 48 kHz, no gain.
    let head = Array("OpusHead".utf8) + [1, code, 0, 0, 0x80, 0xBB, 0, 0, 0, 0]
    switch code {
    case 1, 2: return head + [0]
    case 3...8:
      let mapping = streams[Int(code) - 3]
      return head + [1, mapping.total, mapping.coupled] + mapping.order
    default: return nil
    }
  }
}
