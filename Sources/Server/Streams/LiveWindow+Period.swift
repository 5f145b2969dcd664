internal import FMP4
internal import Storage

extension LiveWindow {
  /// A DASH Period: segments on one clock without a discontinuity, each as long as manifests announced.
  struct Period: Sendable, Hashable {
    /// Counts from 0 within the epoch.
    let ordinal: Int
    /// Media time at which it starts.
    let mediaStart: MediaTime
    /// Wall-clock time of `mediaStart`.
    var wallStart: WallTime
    let initVersion: Int
    /// It continues another one with other tracks.
    let changesTracks: Bool
    let firstSequenceNumber: Int
    /// The ordinal of the Period that this one continues. Tracks that both have are the same.
    let continued: Int?
  }
}
