public import NIOCore

/// A codec with its configuration, for any codec.
public struct Codec: Sendable {
  /// Which codec it is.
  public let id: CodecID
  /// Video or audio.
  public let kind: MediaKind
  package let configuration: any CodecConfiguration

  package init(_ configuration: any CodecConfiguration) {
    id = type(of: configuration).id
    kind = id.kind
    self.configuration = configuration
  }

  /// Reads a decoder configuration record: avcC, hvcC, av1C, an AudioSpecificConfig, an OpusHead. Throws if it is none,
  /// or if its profile is not supported.
  public init(_ id: CodecID, record: ByteBuffer) throws(CodecError) { self.init(try id.type.init(record: record)) }

  /// Reads an encoder's extradata: parameter sets with start codes (ITU-T H.264 Annex B), or OBUs. A record if the
  /// codec has no other form. Throws as `init(_:record:)` does.
  public init(_ id: CodecID, stream: ByteBuffer) throws(CodecError) { self.init(try id.type.init(stream: stream)) }

  /// The decoder configuration record, as `init(_:record:)` reads it.
  public func record() -> [UInt8] { configuration.record() }

  /// For the CODECS attribute of playlists and for media types (RFC 6381).
  public var codecString: String { configuration.codecString }
  /// Name for display.
  public var name: String { configuration.name }
  package var videoFormat: VideoFormat? { configuration.video }
  /// Output rate in Hz, and output channels. Nil for video.
  public var audio: (sampleRate: UInt32, channels: Int)? { configuration.audio }

  /// Size in square samples before any rotation. Nil for audio.
  public var displaySize: (width: Int, height: Int)? { videoFormat?.displaySize }

  /// Size in coded samples after cropping. Nil for audio.
  package var codedSize: (width: Int, height: Int)? { videoFormat.map { ($0.width, $0.height) } }

  /// Frame rate stated by the stream. Nil if it states none, and for audio.
  package var frameRate: FrameRate? { videoFormat?.frameRate }

  /// A frame as a sample stores it, and what is found in it. NAL units follow their lengths, of the size that the
  /// record states. Nil for audio. Throws if the lengths do not fit.
  public func accessUnit(_ payload: ByteBuffer) throws(CodecError) -> AccessUnit? {
    try configuration.accessUnit(payload)
  }

  /// The same for a frame from an encoder, where NAL units follow start codes (ITU-T H.264 Annex B).
  public func accessUnit(stream payload: ByteBuffer) throws(CodecError) -> AccessUnit? {
    try configuration.accessUnit(stream: payload)
  }

  /// Ticks of an audio frame. Nil if the frame is invalid, and for video.
  public func duration(of frame: ByteBuffer) -> UInt32? { configuration.duration(of: frame) }

  /// An audio frame without sound. Nil if none is known, and for video.
  package var silence: ByteBuffer? { configuration.silence }

  /// The codec after parameter sets from an access unit. Nil if they change nothing.
  public func updated(withParameterSets sets: [[UInt8]]) -> Codec? {
    sets.isEmpty ? nil : configuration.updated(withParameterSets: sets).map { Codec($0) }
  }
}

extension Codec: Hashable {
  /// Whether samples of both can be decoded alike.
  public static func == (a: Codec, b: Codec) -> Bool {
    func equals<Configuration: CodecConfiguration>(_ configuration: Configuration) -> Bool {
      b.configuration as? Configuration == configuration
    }
    return a.id == b.id && equals(a.configuration)
  }

  /// Of its configuration.
  public func hash(into hasher: inout Hasher) { hasher.combine(configuration) }
}
