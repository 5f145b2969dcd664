internal import FMP4
internal import Ingest

/// The state of a stream.
enum StreamPhase: String, Sendable, Hashable, CaseIterable {
  /// There is a publisher, but nothing can be played yet.
  case starting
  case live
  /// The publisher's connection was lost; playlists wait for its return.
  case reconnecting
  case ended
}

/// The status of a stream, for the API and the log.
struct StreamStatus: Sendable {
  var name: StreamName
  var phase: StreamPhase
  var epoch: String
  var protocolName: String
  var startedAt: WallTime
  /// When its last publisher left, after the end.
  var endedAt: WallTime?
  var tracks: [TrackDescription]
  /// Bits per second over the last complete segments.
  var bitrate: Int
  var longestGroup: MediaTime?
  var targetDuration: Int?
  var warnings: [String]
  var anchor: WallClockAnchor?
  var residentBytes: Int
  /// HLS playlists rendered since the stream was created: one for each version that was requested, however often.
  var playlistRenders: Int
  /// Since the stream was created.
  var counters: StreamCounters
  /// Seconds by which the newest audio is ahead of the newest video; nil when one of them is missing.
  var skew: Double?
  /// Of the publisher's connection; nil where its protocol has none.
  var link: LinkFigures?
  var cues: StreamCues
  /// Closed captions that playlists declare for the first video.
  var captions: [Caption]
  /// Of the publisher's transport stream; nil without one.
  var content: TransportContent?
  /// Nil without a ladder, and before the first frame.
  var transcoding: TranscodeStatus?
  /// The rungs that can be played.
  var rungs: [RungStatus]
  /// Nil when no audio is transcoded.
  var audioTranscoding: TranscodeStatus?
  /// The transcoded audio, when it can be played.
  var audio: RungStatus?
}

/// A rung that can be played.
struct RungStatus: Sendable {
  var name: String
  var track: TrackDescription
  /// Bits per second over the last complete segments.
  var bitrate: Int

  init?(_ rung: TranscodedRendition) {
    guard let track = rung.currentTrack else { return nil }
    name = rung.name
    self.track = track
    bitrate = rung.window.recentBitrate
  }
}
