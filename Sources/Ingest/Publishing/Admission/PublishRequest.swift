package import FMP4

/// A publisher's request, with everything that decides about admission.
package struct PublishRequest: Sendable {
  package var stream: StreamName
  /// The publisher's key, if it sent one. Printed as `***`.
  package var key: Secret?
  /// "RTMP", "RTMPS", "test" …, for the log and the API.
  package var protocolName: String
  /// Address and port, for the log.
  package var remoteAddress: String
  /// The address for limits, without a port; nil if there is none. A later publisher with the same host may be the same
  /// one.
  package var host: String?
  /// Name and version of the publisher's software, as it states them; possibly empty. Not trusted.
  package var software: String
  /// Called at most once, from any thread, when the server ends this publication (replaced, shutdown). Later media of
  /// the publisher is ignored.
  package var onEviction: @Sendable (EndReason) -> Void
  /// Asks the publication's encoder for a key frame soon. Callable from any thread; does not block. Nil if the encoder
  /// cannot be asked.
  package var onKeyFrameWanted: (@Sendable () -> Void)?
  package var recording: RecordingMode
  package var origin: Origin
  package var keyFrames: KeyFrames
  package var connection: Connection
  package var credential = Credential.asConfigured

  /// Whether the publication's stream is recorded.
  package enum RecordingMode: Sendable {
    /// As the server is configured.
    case asConfigured
    /// Only on request: its media is being recorded already, before it became a stream.
    case whenAsked
    /// Not at all (the demo).
    case never
  }

  /// What is known in advance of the distance of its key frames.
  package enum KeyFrames: Sendable, Hashable {
    case asItsEncoderHasThem
    /// So far apart: for the server's own sources.
    case every(MediaTime)
    /// As they are asked for: it follows `MediaSink.keyFrameDistance`.
    case asAsked
  }

  /// Whether the publisher is connected.
  package enum Connection: Sendable, Hashable {
    case made
    /// It has made an offer, and `MediaSink.connected` follows. Until then its stream gives way to others where places run out.
    case awaited
  }

  /// Whether the publisher has to show that it may publish.
  package enum Credential: Sendable, Hashable {
    /// As the server is configured.
    case asConfigured
    /// In any case: it comes from a page of another site, which its visitor may not have meant to publish.
    case required
  }

  /// Origin of the publication.
  package enum Origin: Sendable, Hashable {
    /// A publisher over a network. It must have a key if one is required.
    case peer
    /// One of the server's own sources. It needs no key.
    case server
  }

  package init(
    stream: StreamName, key: Secret?, protocolName: String, remoteAddress: String, host: String? = nil,
    software: String = "", recording: RecordingMode = .asConfigured, origin: Origin = .peer,
    keyFrames: KeyFrames = .asItsEncoderHasThem, connection: Connection = .made,
    onKeyFrameWanted: (@Sendable () -> Void)? = nil, onEviction: @escaping @Sendable (EndReason) -> Void
  ) {
    self.stream = stream
    self.key = key
    self.protocolName = protocolName
    self.remoteAddress = remoteAddress
    self.host = host
    self.software = software
    self.recording = recording
    self.origin = origin
    self.keyFrames = keyFrames
    self.connection = connection
    self.onKeyFrameWanted = onKeyFrameWanted
    self.onEviction = onEviction
  }
}
