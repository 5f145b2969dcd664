/// Everything that happens to a publication, in the order in which it happens.
package enum MediaEvent: Sendable {
  /// The tracks from here on. Again in mid-stream: a parameter change; samples that follow belong to the new set.
  case tracks([TrackDescription])
  case sample(Sample)
  /// Which wall-clock time a media time had; once per publication, before its first sample.
  case clock(WallClockAnchor)
  /// The media clock has reached at least this time: whoever has a clock says so, and waits (for late or silent
  /// tracks) follow from it. FMP4 itself knows no clock.
  case progress(MediaTime)
  /// The timeline breaks here: what follows does not continue what came before.
  case discontinuity
  case end(EndReason)
}

/// Media time ↔ wall time at one instant: tells the time of day of what is seen, and is never used for media times.
package struct WallClockAnchor: Sendable, Hashable {
  package var mediaTime: MediaTime
  /// Nanoseconds since 1970-01-01T00:00:00Z on the server's steady clock, which never steps.
  package var wallNanoseconds: Int64

  package init(mediaTime: MediaTime, wallNanoseconds: Int64) {
    self.mediaTime = mediaTime
    self.wallNanoseconds = wallNanoseconds
  }

  /// The wall time, in nanoseconds since 1970, of another media time on the same timeline.
  package func wallNanoseconds(at time: MediaTime) -> Int64 {
    wallNanoseconds &+ time.nanoseconds &- mediaTime.nanoseconds
  }
}

/// Why a publication is over; what is made of it, and how it is told, is said where it is.
package enum EndReason: Sendable, Hashable {
  /// As its source meant it: the stream ends at once.
  case finished
  /// The source was lost, and may come back.
  case connectionLost(String)
  /// It sent what cannot be used.
  case failed(String)
  /// Another took its place.
  case replaced
  /// The program is stopping.
  case shutdown
}
