package import NIOCore

/// All properties of a codec. Each codec has its own file and a case in `CodecID`; each protocol maps its names to it.
package protocol CodecConfiguration: Sendable, Hashable {
  static var id: CodecID { get }
  static var kind: MediaKind { get }
  /// Name for display.
  static var name: String { get }
  /// Type of its sample entry (ISO/IEC 14496-12 §8.5.2), and type of the box in it with the decoder configuration.
  /// Nil if no output carries the codec.
  static var sampleEntry: (type: FourCC, configuration: FourCC)? { get }
  /// Brand of files with this codec (§4.3). Nil if there is none.
  static var fileBrand: FourCC? { get }
  /// Number of samples to decode before a wanted one, as a negative number (§10.1). Nil if none is needed.
  static var rollDistance: Int16? { get }

  /// Reads a decoder configuration record: avcC, hvcC, av1C, an AudioSpecificConfig, an OpusHead, or one of
  /// weir's own.
  init(record: ByteBuffer) throws(CodecError)
  /// Reads an encoder's extradata: parameter sets with start codes, or OBUs. A record if the codec has no other form.
  init(stream: ByteBuffer) throws(CodecError)
  /// Reads the payload of its box in a sample entry.
  init(boxed: ByteBuffer) throws(CodecError)
  /// The same, with the size in samples that the entry of a video has beside the box.
  init(boxed: ByteBuffer, size: (width: UInt16, height: UInt16)) throws(CodecError)
  func record() -> [UInt8]
  func boxed() -> [UInt8]

  /// Name for display, if the configuration gives more than the codec's name.
  var name: String { get }
  /// For the CODECS attribute and media types (RFC 6381).
  var codecString: String { get }
  /// Format of the video from the parameter sets. Nil for audio.
  var video: VideoFormat? { get }
  /// Hz and channels of the output. Nil for video.
  var audio: (sampleRate: UInt32, channels: Int)? { get }

  /// The access unit of a payload. NAL units follow their lengths, of the size in the configuration. Nil for audio.
  func accessUnit(_ payload: ByteBuffer) throws(CodecError) -> AccessUnit?
  /// The same for a payload from an encoder, where NAL units follow start codes.
  func accessUnit(stream payload: ByteBuffer) throws(CodecError) -> AccessUnit?
  /// The configuration after parameter sets from an access unit. Nil if they change nothing, or if one is unreadable.
  func updated(withParameterSets sets: [[UInt8]]) -> Self?

  /// Whether frames state the configuration, and nothing else does.
  static var isStatedByFrames: Bool { get }
  /// The record that a frame states. Nil if the codec's frames state none, or if it is not a frame.
  static func record(inFrame frame: ByteBuffer) -> [UInt8]?
  /// Why a frame that should state the configuration cannot be read. Nil if it can, if it states none, and where frames
  /// without one cannot be told from such.
  static func fault(inFrame frame: ByteBuffer) -> CodecError?

  /// Whether access units are made of NAL units.
  static var hasNALUnits: Bool { get }
  /// The role of the NAL unit whose header is at an offset of the readable bytes. Nil if its first bytes have not come, and for
  /// codecs without NAL units.
  static func role(ofUnitAt offset: Int, in bytes: ByteBuffer) -> NALUnitRole?

  /// Ticks of each audio frame. Nil if they differ.
  var frameDuration: UInt32? { get }
  /// Ticks of an audio frame. Nil if the frame is invalid, and for video.
  func duration(of frame: ByteBuffer) -> UInt32?
  /// An audio frame without sound. Nil if none is known, and for video.
  var silence: ByteBuffer? { get }
}

extension CodecConfiguration {
  package static var fileBrand: FourCC? { nil }
  package static var hasNALUnits: Bool { false }
  package static func role(ofUnitAt offset: Int, in bytes: ByteBuffer) -> NALUnitRole? { nil }
  package static var isStatedByFrames: Bool { false }
  package static func record(inFrame frame: ByteBuffer) -> [UInt8]? { nil }
  package static func fault(inFrame frame: ByteBuffer) -> CodecError? { nil }
  package init(stream: ByteBuffer) throws(CodecError) { try self.init(record: stream) }
  package init(boxed: ByteBuffer) throws(CodecError) { try self.init(record: boxed) }
  package init(boxed: ByteBuffer, size: (width: UInt16, height: UInt16)) throws(CodecError) {
    try self.init(boxed: boxed)
  }
  package func boxed() -> [UInt8] { record() }
  package var name: String { Self.name }
  package var silence: ByteBuffer? { nil }
}

/// A codec configuration for video.
package protocol VideoConfiguration: CodecConfiguration {
  var format: VideoFormat { get }
}

extension VideoConfiguration {
  package static var kind: MediaKind { .video }
  package static var rollDistance: Int16? { nil }
  package var video: VideoFormat? { format }
  package var audio: (sampleRate: UInt32, channels: Int)? { nil }
  package var frameDuration: UInt32? { nil }
  package func duration(of frame: ByteBuffer) -> UInt32? { nil }
}

/// A codec configuration for audio.
package protocol AudioConfiguration: CodecConfiguration {
  /// Output rate in Hz; also the track's timescale.
  var sampleRate: UInt32 { get }
  /// Output channels.
  var channels: Int { get }
}

extension AudioConfiguration {
  package static var kind: MediaKind { .audio }
  package var video: VideoFormat? { nil }
  package var audio: (sampleRate: UInt32, channels: Int)? { (sampleRate, channels) }
  package func accessUnit(_ payload: ByteBuffer) -> AccessUnit? { nil }
  package func accessUnit(stream payload: ByteBuffer) -> AccessUnit? { nil }
  package func updated(withParameterSets sets: [[UInt8]]) -> Self? { nil }
}
