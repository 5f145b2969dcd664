internal import FMP4
internal import Logging

/// Tracks whose newest frames that should state their configuration cannot be read, and what was told of each.
struct UnreadableTracks {
  private var told: [TrackID: PublicationWarning] = [:]
  private var isLogged = false

  /// Tells of a track, unless that was told already.
  mutating func add(_ warning: PublicationWarning, _ track: TrackID, to out: inout [PublicationAction]) {
    guard told[track] == nil else { return }
    // A publisher may come and go here with each frame.
    if !isLogged { out.append(.log(.warning, warning.description)) }
    isLogged = true
    if !told.values.contains(warning) { out.append(.warn(warning)) }
    told[track] = warning
  }

  /// Takes back what was told of a track, unless it is true of another one.
  mutating func remove(_ track: TrackID, to out: inout [PublicationAction]) {
    guard let warning = told.removeValue(forKey: track), !told.values.contains(warning) else { return }
    out.append(.withdraw(warning))
  }
}

extension Publication {
  /// The frames of a track can be read again.
  mutating func canRead(_ track: TrackID, to out: inout [PublicationAction]) { unreadable.remove(track, to: &out) }
}
