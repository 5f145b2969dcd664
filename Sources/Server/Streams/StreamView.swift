/// A stream at one moment, for answers to viewers. It is made with the stream's lock held, and read without it.
final class StreamView: Sendable {
  /// The epoch that was asked for, with its rungs.
  let epoch: EpochView
  /// What has been rendered of the epoch.
  let renderings: EpochRenderings
  let phase: StreamPhase
  /// Nobody is kept waiting any more.
  let hasLetGo: Bool

  init(
    _ epoch: EpochView, renderings: EpochRenderings = EpochRenderings(), phase: StreamPhase = .live,
    hasLetGo: Bool = false
  ) {
    self.epoch = epoch
    self.renderings = renderings
    self.phase = phase
    self.hasLetGo = hasLetGo
  }
}
