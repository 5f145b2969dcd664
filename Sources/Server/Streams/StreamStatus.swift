package import FMP4
package import Publishing
package import Transcode

/// The state of a stream.
package enum StreamPhase: String, Sendable, Hashable, CaseIterable {
  /// There is a publisher, but nothing can be played yet.
  case starting
  case live
  /// The publisher's connection was lost; playlists wait for its return.
  case reconnecting
  /// Off air: the publisher has stopped, or did not return; playlists wait for the next one (`StreamSettings.EndRule`).
  case offAir
  case ended
}

/// The status of a stream, for the API and the log.
package struct StreamStatus: Sendable {
  package var name: StreamName
  package var phase: StreamPhase
  /// What viewers get; nil while nobody sends.
  package var onAir: Input?
  var epoch: String
  package var protocolName: String
  package var startedAt: WallTime
  /// When its last publisher left, after the end.
  package var endedAt: WallTime?
  package var tracks: [TrackDescription]
  /// Bits per second over the last complete segments.
  package var bitrate: Int
  package var longestGroup: MediaTime?
  package var targetDuration: Int?
  package var warnings: [String]
  package var anchor: WallClockAnchor?
  package var residentBytes: Int
  /// HLS playlists rendered since the stream was created: one for each version that was requested, however often.
  package var playlistRenders: Int
  /// Since the stream was created.
  package var counters: StreamCounters
  /// Seconds by which the newest audio is ahead of the newest video; nil when one of them is missing.
  package var skew: Double?
  /// Of the publisher's connection; nil where its protocol has none.
  package var link: LinkFigures?
  package var cues: StreamCues
  /// Closed captions that playlists declare for the first video.
  package var captions: [Caption]
  /// Of the publisher's transport stream; nil without one.
  package var content: TransportContent?
  /// Nil without a ladder, and before the first frame.
  package var transcoding: TranscodeStatus?
  /// The rungs that can be played.
  package var rungs: [RungStatus]
  /// Nil when no audio is transcoded.
  package var audioTranscoding: TranscodeStatus?
  /// The transcoded audio, when it can be played.
  package var audio: RungStatus?
}

/// A rung that can be played.
package struct RungStatus: Sendable {
  package var name: String
  package var track: TrackDescription
  /// Bits per second over the last complete segments.
  package var bitrate: Int

  init?(_ rung: TranscodedRendition) {
    guard let track = rung.currentTrack else { return nil }
    name = rung.name
    self.track = track
    bitrate = rung.window.recentBitrate
  }
}
