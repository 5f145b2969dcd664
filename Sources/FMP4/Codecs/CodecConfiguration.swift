package import NIOCore

/// What there is to know of a codec. Its file says it, and names itself in `CodecID`; a protocol has a line for it in its
/// map.
package protocol CodecConfiguration: Sendable, Hashable {
  static var id: CodecID { get }
  static var kind: MediaKind { get }
  /// For people.
  static var name: String { get }
  /// The type of its sample entry (ISO/IEC 14496-12 §8.5.2), and of the box in it that configures a decoder.
  static var sampleEntry: (type: FourCC, configuration: FourCC) { get }
  /// The brand of a file that has it (§4.3); nil where there is none.
  static var fileBrand: FourCC? { get }
  /// How many samples before a wanted one must be decoded, negative (§10.1); nil where none needs to be.
  static var rollDistance: Int16? { get }

  /// Reads a decoder configuration record: avcC, hvcC, av1C, an AudioSpecificConfig or an OpusHead.
  init(record: ByteBuffer) throws(CodecError)
  /// From what an encoder's stream begins with: parameter sets behind start codes, OBUs. A record where the codec has no
  /// other form.
  init(stream: ByteBuffer) throws(CodecError)
  /// Reads the payload of its box in a sample entry.
  init(boxed: ByteBuffer) throws(CodecError)
  func record() -> [UInt8]
  func boxed() -> [UInt8]

  /// For people, where the configuration says more than the codec's name.
  var name: String { get }
  /// For the CODECS attribute and media types (RFC 6381).
  var codecString: String { get }
  /// What the parameter sets say about the pictures; nil for audio.
  var video: VideoFormat? { get }
  /// Hz and channels of the output; nil for picture.
  var audio: (sampleRate: UInt32, channels: Int)? { get }

  /// The access unit in a payload whose NAL units stand behind their lengths, as the configuration says; nil for audio.
  func accessUnit(_ payload: ByteBuffer) throws(CodecError) -> AccessUnit?
  /// The same of a payload as encoders write it: NAL units stand behind start codes.
  func accessUnit(stream payload: ByteBuffer) throws(CodecError) -> AccessUnit?
  /// What parameter sets that travelled in an access unit make of the configuration; nil where they change nothing, or where
  /// one cannot be read.
  func updated(withParameterSets sets: [[UInt8]]) -> Self?

  /// Ticks of every frame of audio; nil where they differ.
  var frameDuration: UInt32? { get }
  /// Ticks of a frame of audio; nil where the frame is broken, and for picture.
  func duration(of frame: ByteBuffer) -> UInt32?
}

extension CodecConfiguration {
  package static var fileBrand: FourCC? { nil }
  package init(stream: ByteBuffer) throws(CodecError) { try self.init(record: stream) }
  package init(boxed: ByteBuffer) throws(CodecError) { try self.init(record: boxed) }
  package func boxed() -> [UInt8] { record() }
  package var name: String { Self.name }
}

/// A codec's configuration that describes pictures.
package protocol VideoConfiguration: CodecConfiguration {
  var picture: VideoFormat { get }
}

extension VideoConfiguration {
  package static var kind: MediaKind { .video }
  package static var rollDistance: Int16? { nil }
  package var video: VideoFormat? { picture }
  package var audio: (sampleRate: UInt32, channels: Int)? { nil }
  package var frameDuration: UInt32? { nil }
  package func duration(of frame: ByteBuffer) -> UInt32? { nil }
}

/// A codec's configuration that describes audio.
package protocol AudioConfiguration: CodecConfiguration {
  /// Hz of the output; the track's timescale.
  var sampleRate: UInt32 { get }
  /// Of the output.
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
