package import RecordingFiles
/// What a request for one recording asks for, beside the settings of its stream.
package struct RecordingOrder: Sendable, Hashable {
  /// Its name; nil for one that consists of stream and time.
  package var title: RecordingTitle?
  package var tracks = TrackChoice.all
  /// Nanoseconds of media after which it is complete. A lower limit of the settings holds as well.
  package var maximumDuration: Int64?
  /// Bytes of its files after which it is complete. A lower limit of the settings holds as well.
  package var maximumBytes: UInt64?

  package init(
    title: RecordingTitle? = nil, tracks: TrackChoice = .all, maximumDuration: Int64? = nil,
    maximumBytes: UInt64? = nil
  ) {
    (self.title, self.tracks, self.maximumDuration, self.maximumBytes) = (title, tracks, maximumDuration, maximumBytes)
  }
}

extension RecordingSettings {
  /// The settings for a recording that a request ordered.
  func ordered(_ order: RecordingOrder) -> RecordingSettings {
    var settings = self
    settings.title = order.title
    if order.tracks != .all { settings.tracks = order.tracks }
    if let title = order.title, let naming = RecordingNaming(title) { settings.policy.naming = naming }
    settings.policy.maximumDuration = [order.maximumDuration, policy.maximumDuration].compactMap(\.self).min()
    settings.policy.maximumBytes = [order.maximumBytes, policy.maximumBytes].compactMap(\.self).min()
    return settings
  }
}
