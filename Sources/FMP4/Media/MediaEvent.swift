/// The events of a publication, in their order.
public enum MediaEvent: Sendable {
  /// The tracks from here on. Sent again for each parameter change: the samples that follow belong to the new tracks.
  case tracks([TrackDescription])
  /// A sample of one of these tracks. Those of a track come in decode order.
  case sample(Sample)
  /// Wall clock time of a media time, where it is known. Sent before the first sample of a publication, and again when
  /// it proves wrong.
  case clock(WallClockAnchor)
  /// The media clock has reached at least this time. A sender with a clock reports it. It bounds the wait for late
  /// tracks or tracks without samples; FMP4 has no clock itself.
  case progress(MediaTime)
  /// The timeline breaks here: the media after it does not continue the media before.
  case discontinuity
  /// The publication is over: no event follows.
  case end(EndReason)
}

/// Media time and wall clock time of one instant. Gives the time of day of the media; never used to compute media
/// times.
public struct WallClockAnchor: Sendable, Hashable {
  /// The media time of that instant.
  public var mediaTime: MediaTime
  /// Its time of day, on a clock that never steps.
  public var wallTime: WallTime
  /// Times of day step by it: what it dates begins a timeline of its own in lists, though the media goes on.
  package var beginsTimeline = false
  /// Media turn out to be older with each sample. Another clock follows, within a second or so: samples may wait for it.
  package var isProvisional = false

  /// States that the media of one time is of a time of day.
  public init(mediaTime: MediaTime, wallTime: WallTime) {
    self.mediaTime = mediaTime
    self.wallTime = wallTime
  }

  /// The wall time of another media time on the same timeline.
  public func wallTime(at time: MediaTime) -> WallTime {
    wallTime &+ time.nanoseconds &- mediaTime.nanoseconds
  }
}

/// Why a publication ended. Carried to those who follow it; nothing here depends on it.
public enum EndReason: Sendable, Hashable {
  /// Its source ended it: nothing follows.
  case finished
  /// The connection to the source was lost. The source may come back.
  case connectionLost(String)
  /// The source sent unusable data.
  case failed(String)
  /// Another publication took its place.
  case replaced
  /// The process is ending.
  case shutdown
}
