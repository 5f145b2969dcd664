internal import FMP4
internal import NIOCore

/// Finds AAC frames in LOAS: an `AudioSyncStream` with an `AudioMuxElement` in each of its frames (ISO/IEC 14496-3 §1.7.2,
/// §1.7.3). Takes one programme with one layer, as all encoders send it.
struct LATMReader: SyncedAudioReader {
  let coding = CodecID.aac
  var sync = AudioSync()
  /// The newest configuration. Elements may rely on an earlier one.
  private var configuration: LATMConfiguration?
  /// Frames of the last element that have not been taken.
  private var ready: [AudioFrame] = []

  private static let headerBytes = 3
  /// `syncword` of eleven bits, with those of the length.
  private static let (syncWord, syncMask): (UInt16, UInt16) = (0x2B7 << 5, 0xFFE0)

  var position: Int { ready.first?.position ?? sync.bytes.position }
  var heldBytes: Int { sync.bytes.count &+ sync.bytes.position &- position }

  mutating func drop() {
    sync.drop()
    ready = []
  }

  mutating func next() -> AudioFrame? {
    while ready.isEmpty {
      let length = sync.frame(
        least: Self.headerBytes, header: { bytes in Self.length(in: bytes, at: 0).map { ($0, $0) } },
        following: Self.headerBytes, follows: { Self.length(in: $0, at: $1) != nil })
      guard let length else { return nil }
      let position = sync.bytes.position
      sync.bytes.skip(Self.headerBytes)
      guard let element = sync.bytes.take(length &- Self.headerBytes) else { return nil }
      do throws(CodecError) {
        ready = try frames(Array(element.readableBytesView), position)
      } catch {
        sync.noteDamage()
      }
    }
    return ready.removeFirst()
  }

  /// Bytes of the frame at an offset, with its header. Nil if there is no header.
  private static func length(in bytes: AudioBytes, at offset: Int) -> Int? {
    guard let first = bytes.byte(offset), let second = bytes.byte(offset &+ 1), let third = bytes.byte(offset &+ 2),
      (UInt16(first) << 8 | UInt16(second)) & syncMask == syncWord
    else { return nil }
    return headerBytes &+ (Int(second & 31) << 8 | Int(third))
  }

  /// The frames of an `AudioMuxElement` (table 1.41).
  private mutating func frames(_ element: [UInt8], _ position: Int) throws(CodecError) -> [AudioFrame] {
    var reader = BitReader(element)
    if try !reader.flag() { configuration = try LATMConfiguration(&reader, of: element) }
    // Without a configuration nothing can be decoded yet. That is no damage.
    guard let configuration else { return [] }
    var frames: [AudioFrame] = []
    for _ in 0..<configuration.frames {
      // `PayloadLengthInfo` (table 1.44).
      var length = 0
      var part: UInt32
      repeat {
        part = try reader.bits(8)
        length &+= Int(part)
      } while part == 255
      let payload = try reader.bytes(length)
      guard length > 0 else { continue }
      frames.append(
        AudioFrame(
          position: position, payload: ByteBuffer(bytes: payload), record: configuration.record,
          samples: configuration.samples, rate: configuration.rate))
    }
    return frames
  }
}

/// A `StreamMuxConfig` (ISO/IEC 14496-3 table 1.42).
struct LATMConfiguration {
  /// The `AudioSpecificConfig`.
  let record: [UInt8]
  /// Samples of a frame, at `rate` per second.
  let samples: Int64
  let rate: UInt32
  /// Audio frames of an element.
  let frames: Int

  private static func unsupported(_ what: String) -> CodecError { CodecError(.unsupported, "LATM with \(what)") }

  /// Reads it within an element.
  init(_ reader: inout BitReader, of element: [UInt8]) throws(CodecError) {
    let isSecondVersion = try reader.flag()
    if isSecondVersion {
      guard try !reader.flag() else { throw Self.unsupported("audioMuxVersionA 1") }
      _ = try Self.value(&reader)  // taraBufferFullness
    }
    guard try reader.flag() else { throw Self.unsupported("streams of different framing") }
    frames = Int(try reader.bits(6)) + 1
    guard try reader.bits(4) == 0 else { throw Self.unsupported("several programmes") }
    guard try reader.bits(3) == 0 else { throw Self.unsupported("several layers") }
    if isSecondVersion {
      let bits = Int(try Self.value(&reader))
      guard bits <= AAC.Configuration.maximumSize * 8 else { throw Self.unsupported("a configuration of \(bits) bits") }
      record = try reader.bytes(bits / 8, andBits: bits % 8)
    } else {
      let (record, bits) = try AAC.specificConfig(in: element, at: reader.position)
      self.record = record
      try reader.skip(bits)
    }
    let configuration = try AAC.Configuration(record: ByteBuffer(bytes: record))
    (samples, rate) = (Int64(configuration.samplesPerFrame), configuration.sampleRate)
    guard try reader.bits(3) == 0 else { throw Self.unsupported("frames of fixed length") }
    try reader.skip(8)  // latmBufferFullness
    if try reader.flag() {
      // The length of other data behind the frames, which is not read.
      if isSecondVersion {
        _ = try Self.value(&reader)
      } else {
        while try reader.flag() { try reader.skip(8) }
        try reader.skip(8)
      }
    }
    if try reader.flag() { try reader.skip(8) }  // crcCheckSum
  }

  /// `LatmGetValue` (table 1.43).
  private static func value(_ reader: inout BitReader) throws(CodecError) -> UInt32 {
    let bytes = try reader.bits(2) + 1
    return try reader.bits(Int(bytes) * 8)
  }
}
