package import FMP4
package import Publishing

/// What a viewer holds from its offer on, while it watches; freed with the last reference.
package protocol WatchingPlace: AnyObject, Sendable {
  /// The viewer is connected, and counts among all. False if there is no room for it.
  func connected() -> Bool
  /// Calls `end`, on any thread, when the place is taken away; at once if it already was.
  func whenRevoked(_ end: @escaping @Sendable () -> Void)
}

/// What one viewer may watch.
package struct WatchedMedia: Sendable {
  package var stream: any WatchedStream
  /// At most one audio. The publication's own video, then those that are made of it, the largest first.
  package var tracks: [TrackDescription]
  /// The frames of its own video are shown in another order than they are decoded (B-frames).
  package var isReordered: Bool
  /// What can be made where nothing fits a viewer: H.264 without B-frames, and Opus.
  package var makable: Set<MediaKind>
  package var place: any WatchingPlace
  /// Whether the viewer may still watch. Asked about each second.
  package var mayWatch: @Sendable () -> Bool

  package init(
    stream: any WatchedStream, tracks: [TrackDescription], isReordered: Bool, makable: Set<MediaKind> = [],
    place: any WatchingPlace, mayWatch: @escaping @Sendable () -> Bool
  ) {
    (self.stream, self.tracks, self.isReordered, self.makable) = (stream, tracks, isReordered, makable)
    (self.place, self.mayWatch) = (place, mayWatch)
  }
}
