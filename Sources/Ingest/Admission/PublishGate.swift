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

/// Why a publisher is not admitted. The text says what failed, with which value, why, and what to do.
package enum PublishRefusal: Error, Sendable, Hashable {
  /// The key is missing or wrong.
  case unauthorized
  /// Another publisher holds the name and keeps it.
  case busy(stream: StreamName, holder: String)
  /// Too many switches of publisher within a short time.
  case tooManyTakeovers(stream: StreamName, retryAfterSeconds: Int)
  /// Publications of the stream began and timestamps jumped too often within a minute.
  case tooManyBreaks(stream: StreamName, retryAfterSeconds: Int)
  /// The address took too many new names without a key.
  case tooManyNames(limit: Int, retryAfterSeconds: Int)
  /// The address holds as many streams as one may without a key.
  case tooManyOfAddress(streams: Int)
  /// The server has as many streams as it may have.
  case tooManyStreams(limit: Int)
  /// The server has no room for another stream: what it lacks, and what to do about it.
  case noRoom(String)
  /// The server is going down.
  case shuttingDown

  /// One word for figures.
  package var code: String {
    switch self {
    case .unauthorized: "unauthorized"
    case .busy: "busy"
    case .tooManyTakeovers: "takeovers"
    case .tooManyBreaks: "breaks"
    case .tooManyNames: "names"
    case .tooManyOfAddress: "address"
    case .tooManyStreams: "streams"
    case .noRoom: "room"
    case .shuttingDown: "shutdown"
    }
  }

  package var description: String {
    switch self {
    case .unauthorized:
      "the publish key is missing or wrong; put it behind the stream name: NAME?key=SECRET"
    case .busy(_, let holder):
      "this name is being published by \(holder); stop that publisher or choose another name"
    case .tooManyTakeovers(_, let seconds):
      "two publishers are fighting for this name; wait \(seconds) s or choose another name"
    case .tooManyBreaks(_, let seconds):
      "this stream began anew and jumped too often within a minute; wait \(seconds) s and check encoder and uplink"
    case .tooManyNames(let limit, let seconds):
      "this address took \(limit) names without a key; wait \(seconds) s for another one, or publish with a key"
    case .tooManyOfAddress(let streams):
      "without a key this address may have half of the streams that there is room for, and has \(streams); end one, or"
        + " publish with a key"
    case .tooManyStreams(let limit):
      "the server has \(limit) streams, and may have no more (--max-streams); end one, or raise the limit"
    case .noRoom(let reason): reason
    case .shuttingDown: "the server is shutting down"
    }
  }

  /// The same without anybody's address.
  package var publicDescription: String {
    guard case .busy = self else { return description }
    return "this name is being published already; stop that publisher or choose another name"
  }
}

/// The door between publishers and streams: protocols knock, the server's registry answers.
package protocol PublishGate: Sendable {
  /// Admits a publisher to the stream it names, or says why not. May take the name over from another publisher.
  func admit(_ request: PublishRequest) async throws(PublishRefusal) -> any MediaSink
  /// Takes note of a publication that the protocol refused, or that ended because of what it sent, without blocking.
  func note(_ refused: RefusedPublication)
}

extension PublishGate {
  package func note(_ refused: RefusedPublication) {}
}

/// Where an admitted publication's events go. Calls come from one thread at a time, in order; the first event is
/// `.clock` or `.tracks`, the last is `.end`, and nothing follows it.
package protocol MediaSink: AnyObject, Sendable {
  /// Takes the event, without blocking. `.closed` says that this publication is over for the sink (taken over,
  /// refused in mid-stream, shutting down) and why: the publisher is told and its connection is closed.
  func receive(_ event: MediaEvent) -> SinkVerdict
  /// Takes note of a picture or a frame of sound that came and could not be used, without blocking.
  func lost(_ kind: MediaKind)
  /// Takes note of what is wrong with the publication, without blocking. It has been logged already; here it is for
  /// pages and the API.
  func warn(_ warning: PublicationWarning)
  /// What was warned of is over.
  func withdraw(_ warning: PublicationWarning)
}

extension MediaSink {
  package func lost(_ kind: MediaKind) {}
}

/// What whoever looks after a stream should know about its publication, which goes on all the same.
package enum PublicationWarning: Sendable, Hashable, CustomStringConvertible {
  /// A track was announced and waited for in vain. It no longer holds once `.tracks` has one of this kind.
  case neverCame(MediaKind)
  /// Media arrives more slowly than it plays; withdrawn when it keeps up again.
  case fallsBehind
  /// Something came in a codec that weir does not take: its name, as it may stand in a log line.
  case leftOutCodec(MediaKind, String)
  /// It came in a form of its codec that weir does not take: why, as it may stand in a log line.
  case leftOutForm(MediaKind, String)
  /// More than one track of a kind came.
  case leftOutTrack(MediaKind)
  /// Media arrives much faster than it plays; withdrawn when it no longer does.
  case runsAhead
  /// Its media need more memory than the stream may have, so viewers can go back less far.
  case outgrowsMemory

  package var description: String {
    switch self {
    case .neverCame(let kind):
      "\(kind.rawValue) never came, though it was announced; the stream began without it"
    case .fallsBehind:
      "media arrives more slowly than it plays, so viewers will stall: the publisher's uplink or encoder is too slow for"
        + " its bit rate; lower the bit rate"
    case .leftOutCodec(let kind, let codec):
      "\(kind.rawValue) in \(codec) is left out; weir takes \(Self.taken(kind)): choose one of them in the encoder"
    case .leftOutForm(let kind, let reason): "\(kind.rawValue) is left out: \(reason)"
    case .leftOutTrack(let kind):
      "a further \(kind.rawValue) track is left out; weir takes one \(kind.rawValue) track of a publication, the first"
    case .runsAhead:
      "media arrives more than twice as fast as it plays, so old segments go sooner than viewers need them; send at real"
        + " time (ffmpeg: -re)"
    case .outgrowsMemory:
      "its media need more memory than the stream may have, so viewers can go back less far than --window; lower the bit"
        + " rate, or raise --stream-memory or --media-memory"
    }
  }

  private static func taken(_ kind: MediaKind) -> String {
    switch kind {
    case .video: "H.264, HEVC and AV1"
    case .audio: "AAC and Opus"
    }
  }
}

/// What a sink says to an event.
package enum SinkVerdict: Sendable, Equatable {
  case accepted
  case closed(EndReason)
}
