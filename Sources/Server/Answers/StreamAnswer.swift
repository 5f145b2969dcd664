package import FMP4
internal import Publishing
package import Streams
internal import Transcode

/// `/api/v1/streams`: all streams, and the properties of this server.
package struct ServerAnswer: APIObject {
  let version: String
  package let streams: [StreamAnswer]
  let publishKeyRequired: Bool
  /// Whether an admin token is configured, which changes need.
  let writable: Bool
  let records: Bool
  let rtmpPort: Int?
  let rtmpsPort: Int?
  let srtPort: Int?
  let webRTCPort: Int?
  let capacity: [String: Int]
  let publicURL: String?
  let embedFrom: [String]

  package init(
    version: String, streams: [StreamAnswer], publishKeyRequired: Bool, writable: Bool, records: Bool, rtmpPort: Int?,
    rtmpsPort: Int?, srtPort: Int?, webRTCPort: Int?, capacity: [String: Int], publicURL: String?, embedFrom: [String]
  ) {
    (self.version, self.streams, self.publishKeyRequired, self.writable, self.records) = (
      version, streams, publishKeyRequired, writable, records
    )
    (self.rtmpPort, self.rtmpsPort, self.srtPort, self.webRTCPort, self.capacity) = (
      rtmpPort, rtmpsPort, srtPort, webRTCPort, capacity
    )
    (self.publicURL, self.embedFrom) = (publicURL, embedFrom)
  }

  package static let notes: [String: FieldNote] = [
    "publishKeyRequired": "Whether publishers need a key.",
    "writable": "Whether an admin token is configured, which changes need.",
    "records": "Whether streams can be recorded.",
    "rtmpPort": "For publishers; null without RTMP.",
    "rtmpsPort": "The same over TLS; null without RTMPS.",
    "srtPort": "For publishers by SRT (UDP); null without SRT.",
    "webRTCPort": "For the media of publishers by WebRTC (WHIP); null without WebRTC.",
    "capacity": "What this machine allows: numbers of streams, connections and descriptors, and bytes of media.",
    "publicURL": "--public-url",
    "embedFrom": "Origins whose pages may embed the player.",
  ]
}

/// `/api/v1/streams/{stream}`.
package struct StreamAnswer: APIObject {
  package let name: String
  /// As configured.
  let title: String?
  let description: String?
  package let state: String
  package let `protocol`: String
  package let startedAt: String
  package let ageSeconds: Double
  package let viewers: Int
  /// What viewers get; null while nobody sends.
  let onAir: String?
  /// Bits a second.
  package let bitrate: Int
  let gopSeconds: Double?
  let targetDuration: Int?
  let memoryBytes: Int
  let playlistRenders: Int
  package let tracks: [TrackAnswer]
  package let warnings: [String]
  let ladder: Ladder?
  /// The audio transcoded to another codec.
  let audio: Audio?
  package let recording: RecordingStateAnswer?
  let capture: CaptureAnswer?
  /// The publisher's connection, where its protocol counts packets (SRT).
  let link: Link?
  let received: Received
  /// Closed captions that playlists declare.
  let captions: [CaptionAnswer]
  /// Cues of SCTE 35; null before the first.
  let cues: CuesAnswer?
  /// What the publisher's transport stream has; null without one.
  let transportStream: TransportAnswer?
  let anchor: Anchor?
  /// As configured for all streams.
  let player: String
  package let urls: [String: String]

  package static let notes: [String: FieldNote] = [
    "state": .words(
      StreamPhase.allCases.map(\.rawValue),
      "starting: nothing can be played yet. reconnecting: the publisher is away, and playlists wait for it. "
        + "offAir: the publisher has stopped, and playlists wait for the next publisher."),
    "onAir": .words(
      Input.allCases.map(\.rawValue),
      "What viewers get. fallback: the publisher is away, and the stream's fallback takes its place. Null while nobody sends."
    ),
    "protocol": "How it is published.",
    "title": "As configured.",
    "description": "As configured.",
    "startedAt": .time("When its epoch began."),
    "ageSeconds": "Since then, until its end.",
    "viewers":
      "Clients that requested media or a playlist within three target durations, open responses without an end, and sessions of WebRTC.",
    "bitrate": "Bits a second.",
    "gopSeconds": "The longest distance of key frames.",
    "targetDuration": "Of its playlists, in seconds.",
    "memoryBytes": "Its media in memory.",
    "warnings": "What is wrong with the publication, and what to do.",
    "ladder": "Null where nothing is transcoded.",
    "audio": "The audio that is transcoded to another codec.",
    "recording": "Its newest recording; null before the first.",
    "capture": "Camera and microphone, of one of the server's own sources.",
    "link": "The publisher's connection, where its protocol counts packets.",
    "received":
      "What came by its present protocol since the stream was created. What a publisher has sent is taken, came early or is lost: videoFrames, earlyVideoFrames and lostVideoFrames make up its frames.",
    "captions": "Closed captions within the first video, as playlists declare them.",
    "cues": "Cues of SCTE 35 since the stream was created; null before the first.",
    "transportStream": "What the publisher's MPEG transport stream has, told about each second; null without one.",
    "anchor": "A time of the media, and its time of day.",
    "player": .words(PlayerChoice.allCases.map(\.rawValue), "--player-default"),
    "urls": "Addresses of this server.",
  ]

  /// The transcoding worker and its renditions.
  struct Ladder: APIObject {
    let worker: String
    let processID: Int?
    let restarts: Int
    let droppedFrames: Int
    /// Names of the renditions being made.
    let expected: [String]
    /// Renditions that can be played.
    let renditions: [Rendition]
  }

  struct Rendition: APIObject {
    let name: String
    let width: Int
    let height: Int
    let codecString: String
    let bitrate: Int
  }

  struct Audio: APIObject {
    let worker: String
    let processID: Int?
    let restarts: Int
    let droppedFrames: Int
    let expected: [String]
    /// Null until it can be played.
    let codecString: String?
    let bitrate: Int?
  }

  /// Packets since the connection's beginning, and its state.
  struct Link: APIObject {
    let rttMilliseconds: Double
    let latencyMilliseconds: Int
    let bufferedMilliseconds: Int
    /// Bits a second.
    let bandwidth: Int
    let receivedPackets: Int
    let lostPackets: Int
    let retransmittedPackets: Int
    /// They came too late, and are missing in the media.
    let droppedPackets: Int
    let undecryptedPackets: Int

    fileprivate init(_ figures: LinkFigures) {
      (rttMilliseconds, bandwidth) = (Double(figures.roundTrip) / 1000, Int(clamping: figures.bandwidth))
      (latencyMilliseconds, bufferedMilliseconds) = (Int(figures.latency), Int(figures.buffered))
      (receivedPackets, lostPackets) = (Int(clamping: figures.received), Int(clamping: figures.lost))
      retransmittedPackets = Int(clamping: figures.retransmitted)
      (droppedPackets, undecryptedPackets) = (Int(clamping: figures.dropped), Int(clamping: figures.undecrypted))
    }
  }

  /// What came from publishers by the present protocol since the stream was created. It never decreases.
  struct Received: APIObject {
    /// Of coded media.
    let bytes: Int
    let videoFrames: Int
    let keyFrames: Int
    let audioFrames: Int
    /// They came, but could not be used.
    let lostVideoFrames: Int
    let lostAudioFrames: Int
    /// They came before the first key frame of the publication, or are audio that overlaps the frames before it.
    let earlyVideoFrames: Int
    let earlyAudioFrames: Int
    /// Their timestamp was wrong and is mended. They count above as well.
    let mendedVideoFrames: Int
    let mendedAudioFrames: Int
    /// Gaps and dropped frames that brought audio back to its timestamps.
    let audioCorrections: Int

    fileprivate init(_ intake: StreamCounters.Intake) {
      (bytes, videoFrames, keyFrames) = (intake.bytes, intake.frames, intake.keyFrames)
      audioFrames = intake.audioFrames
      (lostVideoFrames, lostAudioFrames) = (intake.lostFrames, intake.lostAudioFrames)
      (earlyVideoFrames, earlyAudioFrames) = (intake.earlyFrames, intake.earlyAudioFrames)
      (mendedVideoFrames, mendedAudioFrames) = (intake.mendedFrames, intake.mendedAudioFrames)
      audioCorrections = intake.audioCorrections
    }
  }

  /// A media time and its wall-clock time.
  struct Anchor: APIObject {
    let mediaSeconds: Double
    let wall: String
  }

  /// `base`: what absolute paths begin with.
  package init(
    _ status: StreamStatus, _ settings: StreamSettings, viewers: Int, recording: RecordingStateAnswer?,
    capture: CaptureAnswer?, player: PlayerChoice, now: WallTime, base: String
  ) {
    self.player = player.rawValue
    (title, description) = (settings.title, settings.description)
    (name, state, `protocol`) = (status.name.description, status.phase.rawValue, status.protocolName)
    onAir = status.onAir?.rawValue
    startedAt = JSONText.time(status.startedAt)
    ageSeconds = MediaTime(nanoseconds: (status.endedAt ?? now) &- status.startedAt).thousandths
    (self.viewers, bitrate) = (viewers, status.bitrate)
    (gopSeconds, targetDuration) = (status.longestGroup?.thousandths, status.targetDuration)
    (memoryBytes, playlistRenders) = (status.residentBytes, status.playlistRenders)
    (tracks, warnings) = (status.tracks.map { TrackAnswer($0, settings.audioNames) }, status.warnings)
    ladder = status.transcoding.map { Ladder($0, status.rungs) }
    audio = status.audioTranscoding.map { Audio($0, status.audio) }
    (self.recording, self.capture) = (recording, capture)
    link = status.link.map(Link.init)
    received = Received(status.counters.intake)
    captions = status.captions.map(CaptionAnswer.init)
    cues = CuesAnswer(status.cues, status.content)
    transportStream = status.content.map(TransportAnswer.init)
    anchor = status.anchor.map {
      Anchor(mediaSeconds: $0.mediaTime.thousandths, wall: JSONText.time($0.wallTime))
    }
    let live = "\(base)/live/\(status.name)"
    urls = [
      "watch": "\(base)/watch/\(status.name)", "hls": "\(live)/index.m3u8", "dash": "\(live)/manifest.mpd",
      "mp4": "\(live)/stream.mp4",
    ]
  }
}

extension StreamAnswer.Ladder {
  fileprivate init(_ status: TranscodeStatus, _ rungs: [RungStatus]) {
    (worker, processID, restarts) = (status.worker.rawValue, status.processID.map(Int.init), status.restarts)
    (droppedFrames, expected) = (status.droppedFrames, status.rungs)
    renditions = rungs.map { rung in
      let size = rung.track.codec.displaySize
      return StreamAnswer.Rendition(
        name: rung.name, width: size?.width ?? 0, height: size?.height ?? 0, codecString: rung.track.codec.codecString,
        bitrate: rung.bitrate)
    }
  }
}

extension StreamAnswer.Audio {
  fileprivate init(_ status: TranscodeStatus, _ made: RungStatus?) {
    (worker, processID, restarts) = (status.worker.rawValue, status.processID.map(Int.init), status.restarts)
    (droppedFrames, expected) = (status.droppedFrames, status.rungs)
    (codecString, bitrate) = (made?.track.codec.codecString, made?.bitrate)
  }
}

/// A track of a stream; members that do not apply to its kind are null.
package struct TrackAnswer: APIObject {
  let id: UInt32
  package let kind: String
  /// Its path segment in addresses of media.
  let rendition: String
  /// ISO 639-2; "und" if unknown.
  let language: String
  /// As configured.
  let name: String?
  let role: String
  package let codec: String
  let codecString: String
  package let width: Int?
  package let height: Int?
  let frameRate: Double?
  package let sampleRate: Int?
  let channels: Int?

  init(_ track: TrackDescription, _ names: AudioNames = AudioNames()) {
    name = names[track]
    let (size, format) = (track.codec.displaySize, track.codec.audio)
    (id, kind) = (track.id.rawValue, track.kind.rawValue)
    (rendition, language, role) = (Rendition(track).rawValue, track.language, track.role.rawValue)
    (codec, codecString) = (track.codec.name, track.codec.codecString)
    (width, height, frameRate) = (size?.width, size?.height, track.frameRate.map { Double($0) / 1000 })
    (sampleRate, channels) = (format.map { Int($0.sampleRate) }, format?.channels)
  }
}
