internal import Basics
internal import FMP4
internal import Ingest

/// `/api/v1/streams`: all streams, and the properties of this server.
struct ServerAnswer: Encodable {
  let version = Version.number
  let streams: [StreamAnswer]
  let publishKeyRequired: Bool
  /// Whether an admin token is configured, which changes need.
  let writable: Bool
  let records: Bool
  let rtmpPort: Int?
  let capacity: [String: Int]
  let publicURL: String?
}

/// `/api/v1/streams/{stream}`.
struct StreamAnswer: Encodable {
  let name: String
  let state: String
  let `protocol`: String
  let startedAt: String
  let ageSeconds: Double
  let viewers: Int
  /// Bits a second.
  let bitrate: Int
  let gopSeconds: Double?
  let targetDuration: Int?
  let memoryBytes: Int
  let playlistRenders: Int
  let tracks: [TrackAnswer]
  let warnings: [String]
  let ladder: Ladder?
  /// The audio transcoded to another codec.
  let audio: Audio?
  let recording: RecordingStateAnswer?
  let capture: CaptureAnswer?
  let anchor: Anchor?
  let urls: [String: String]

  /// The transcoding worker and its renditions.
  struct Ladder: Encodable {
    let worker: String
    let processID: Int?
    let restarts: Int
    let droppedFrames: Int
    /// Names of the renditions being made.
    let expected: [String]
    /// Renditions that can be played.
    let renditions: [Rendition]
  }

  struct Rendition: Encodable {
    let name: String
    let width: Int
    let height: Int
    let codecString: String
    let bitrate: Int
  }

  struct Audio: Encodable {
    let worker: String
    let processID: Int?
    let restarts: Int
    let droppedFrames: Int
    let expected: [String]
    /// Null until it can be played.
    let codecString: String?
    let bitrate: Int?
  }

  /// A media time and its wall-clock time.
  struct Anchor: Encodable {
    let mediaSeconds: Double
    let wall: String
  }

  /// `base`: what absolute paths begin with.
  init(
    _ status: StreamStatus, viewers: Int, recording: RecordingStateAnswer?, capture: CaptureAnswer?, now: WallTime,
    base: String
  ) {
    (name, state, `protocol`) = (status.name.description, status.phase.rawValue, status.protocolName)
    startedAt = JSONText.time(status.startedAt)
    ageSeconds = MediaTime(nanoseconds: (status.endedAt ?? now) &- status.startedAt).thousandths
    (self.viewers, bitrate) = (viewers, status.bitrate)
    (gopSeconds, targetDuration) = (status.longestGroup?.thousandths, status.targetDuration)
    (memoryBytes, playlistRenders) = (status.residentBytes, status.playlistRenders)
    (tracks, warnings) = (status.tracks.map(TrackAnswer.init), status.warnings)
    ladder = status.transcoding.map { Ladder($0, status.rungs) }
    audio = status.audioTranscoding.map { Audio($0, status.audio) }
    (self.recording, self.capture) = (recording, capture)
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
struct TrackAnswer: Encodable {
  let id: UInt32
  let kind: String
  let codec: String
  let codecString: String
  let width: Int?
  let height: Int?
  let frameRate: Double?
  let sampleRate: Int?
  let channels: Int?

  init(_ track: TrackDescription) {
    let (size, format) = (track.codec.displaySize, track.codec.audio)
    (id, kind) = (track.id.rawValue, track.kind.rawValue)
    (codec, codecString) = (track.codec.name, track.codec.codecString)
    (width, height, frameRate) = (size?.width, size?.height, track.frameRate.map { Double($0) / 1000 })
    (sampleRate, channels) = (format.map { Int($0.sampleRate) }, format?.channels)
  }
}

extension MediaTime {
  /// Seconds, rounded to thousandths.
  var thousandths: Double { Double(rescaled(to: 1000)) / 1000 }
}
