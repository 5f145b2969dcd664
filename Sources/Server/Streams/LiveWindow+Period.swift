package import FMP4

extension LiveWindow {
  /// A DASH Period: segments on one clock without a discontinuity, each as long as manifests announced.
  package struct Period: Sendable, Hashable {
    /// Counts from 0 within the epoch.
    package let ordinal: Int
    /// Media time at which it starts.
    package let mediaStart: MediaTime
    /// Wall-clock time of `mediaStart`.
    package var wallStart: WallTime
    package let initVersion: Int
    /// It continues another one with other tracks.
    package let changesTracks: Bool
    package let firstSequenceNumber: Int
    /// The ordinal of the Period that this one continues. Tracks that both have are the same.
    package let continued: Int?
  }
}
