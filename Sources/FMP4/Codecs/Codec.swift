package import NIOCore

/// A codec with its configuration, for any codec.
package struct Codec: Sendable {
  package let id: CodecID
  package let kind: MediaKind
  package let configuration: any CodecConfiguration

  package init(_ configuration: any CodecConfiguration) {
    id = type(of: configuration).id
    kind = id.kind
    self.configuration = configuration
  }

  /// Reads a decoder configuration record.
  package init(_ id: CodecID, record: ByteBuffer) throws(CodecError) { self.init(try id.type.init(record: record)) }

  /// Reads an encoder's extradata.
  package init(_ id: CodecID, stream: ByteBuffer) throws(CodecError) { self.init(try id.type.init(stream: stream)) }

  /// The decoder configuration record, as `init(_:record:)` reads it.
  package func record() -> [UInt8] { configuration.record() }

  package var codecString: String { configuration.codecString }
  package var name: String { configuration.name }
  package var videoFormat: VideoFormat? { configuration.video }
  package var audio: (sampleRate: UInt32, channels: Int)? { configuration.audio }

  /// Size in square samples before any rotation. Nil for audio.
  package var displaySize: (width: Int, height: Int)? { videoFormat?.displaySize }

  /// Size in coded samples after cropping. Nil for audio.
  package var codedSize: (width: Int, height: Int)? { videoFormat.map { ($0.width, $0.height) } }

  /// Frame rate stated by the stream. Nil if it states none, and for audio.
  package var frameRate: FrameRate? { videoFormat?.frameRate }

  package func accessUnit(_ payload: ByteBuffer) throws(CodecError) -> AccessUnit? {
    try configuration.accessUnit(payload)
  }

  package func accessUnit(stream payload: ByteBuffer) throws(CodecError) -> AccessUnit? {
    try configuration.accessUnit(stream: payload)
  }

  /// Ticks of an audio frame. Nil if the frame is invalid, and for video.
  package func duration(of frame: ByteBuffer) -> UInt32? { configuration.duration(of: frame) }

  /// An audio frame without sound. Nil if none is known, and for video.
  package var silence: ByteBuffer? { configuration.silence }

  /// The codec after parameter sets from an access unit. Nil if they change nothing.
  package func updated(withParameterSets sets: [[UInt8]]) -> Codec? {
    sets.isEmpty ? nil : configuration.updated(withParameterSets: sets).map { Codec($0) }
  }
}

extension Codec: Hashable {
  package static func == (a: Codec, b: Codec) -> Bool {
    func equals<Configuration: CodecConfiguration>(_ configuration: Configuration) -> Bool {
      b.configuration as? Configuration == configuration
    }
    return a.id == b.id && equals(a.configuration)
  }

  package func hash(into hasher: inout Hasher) { hasher.combine(configuration) }
}
