package import FMP4

/// A stream whose samples viewers by WebRTC get. Safe to use from any thread.
package protocol WatchedStream: AnyObject, Sendable {
  var name: StreamName { get }
  /// From now on the follower gets each event: at once the present tracks, then what comes. False if the stream has ended.
  func follow(_ follower: any SampleFollower) -> Bool
  func unfollow(_ follower: any SampleFollower)
  /// A follower's viewers get these tracks now. Called each second while there are some: what nobody gets is not made for long.
  func use(_ tracks: Set<TrackID>)
  /// Asks the publisher for a key frame soon. False if it cannot be asked.
  func askForKeyFrame() -> Bool
}

/// Gets the events of a stream on the stream's timeline, in order, while the stream's lock is held. Returns at once.
package protocol SampleFollower: AnyObject, Sendable {
  func receive(_ event: MediaEvent)
}
