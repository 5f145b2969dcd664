package import FMP4

/// What a publisher asks for, once its protocol has told everything that decides about admission.
package struct PublishRequest: Sendable {
  package var stream: StreamName
  /// The key it gave, if any; printed as `***`.
  package var key: Secret?
  /// "RTMP", "RTMPS", "test" …, for the log and the API.
  package var protocolName: String
  /// Address and port, for the log.
  package var remoteAddress: String
  /// What counts as one address, without a port; nil where there is none. Who returns from it may be the same publisher.
  package var host: String?
  /// Name and version that the publisher's software gave of itself; empty when it gave none. Not trusted.
  package var software: String
  /// Called at most once, from any thread, when the server ends this publication (taken over, shutting down).
  /// What the publisher sends afterwards is ignored.
  package var onEviction: @Sendable (EndReason) -> Void
  /// Asks the publication's encoder for a key frame, soon; from any thread, without waiting. Nil where nobody can be asked.
  package var onKeyFrameWanted: (@Sendable () -> Void)?
  package var recording: RecordingWish
  package var origin: Origin
  /// How far apart its key frames are, where that is certain before they come: a source of the server's own.
  package var keyFrameInterval: MediaTime?

  /// Whether the publication's stream is recorded.
  package enum RecordingWish: Sendable {
    /// As the server does with streams.
    case asConfigured
    /// Only where somebody asks for it: it is being recorded already, before it became a stream.
    case whenAsked
    /// Not at all (the demo).
    case never
  }

  /// Who speaks for the publication.
  package enum Origin: Sendable, Hashable {
    /// A publisher over a network: it has to show its key where one is asked for.
    case peer
    /// A source of the server's own, which nobody else can speak for: it needs no key.
    case server
  }

  package init(
    stream: StreamName, key: Secret?, protocolName: String, remoteAddress: String, host: String? = nil,
    software: String = "", recording: RecordingWish = .asConfigured, origin: Origin = .peer,
    keyFrameInterval: MediaTime? = nil,
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
    self.keyFrameInterval = keyFrameInterval
    self.onKeyFrameWanted = onKeyFrameWanted
    self.onEviction = onEviction
  }
}
