internal import FMP4
internal import Ingest

/// What a stream is doing.
enum StreamPhase: String, Sendable, Hashable {
  /// A publisher is there; nothing can be played yet.
  case starting
  case live
  /// The publisher's connection was lost; its playlists wait for it.
  case reconnecting
  case ended
}

/// A stream as the API and the log tell of it.
struct StreamStatus: Sendable {
  var name: StreamName
  var phase: StreamPhase
  var epoch: String
  var protocolName: String
  /// Nanoseconds since 1970.
  var startedAt: Int64
  /// When its last publisher left, once it has ended; nanoseconds since 1970.
  var endedAt: Int64?
  var tracks: [TrackDescription]
  /// Bits a second over the last complete segments.
  var bitrate: Int
  var longestGroup: MediaTime?
  var targetDuration: Int?
  var warnings: [String]
  var anchor: WallClockAnchor?
  var residentBytes: Int
  /// HLS playlists rendered since the stream's name came up: one for each state that anybody asked for, however many
  /// asked.
  var playlistRenders: Int
  /// Since the stream's name came up.
  var counters: StreamCounters
  /// Seconds by which the newest audio is ahead of the newest picture; nil where one of them is missing.
  var skew: Double?
  /// Nil where there is no ladder, or no picture yet.
  var transcoding: TranscodeStatus?
  /// The rungs that can be played.
  var rungs: [RungStatus]
  /// Nil where no audio is made in another codec.
  var audioTranscoding: TranscodeStatus?
  /// The audio in another codec, once it can be played.
  var audio: RungStatus?
}

/// A rung that can be played.
struct RungStatus: Sendable {
  var name: String
  var track: TrackDescription
  /// Bits a second over the last complete segments.
  var bitrate: Int

  init?(_ rung: TranscodedRendition) {
    guard let track = rung.currentTrack else { return nil }
    name = rung.name
    self.track = track
    bitrate = rung.window.recentBitrate
  }
}
