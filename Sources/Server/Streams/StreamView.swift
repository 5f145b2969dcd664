/// A stream at one moment, for responses to viewers. Made under the stream's lock, read without it.
package final class StreamView: Sendable {
  /// The requested epoch, with its rungs.
  package let epoch: EpochView
  /// The renderings of the epoch.
  package let renderings: EpochRenderings
  package let phase: StreamPhase
  /// No request is kept waiting any more.
  package let hasLetGo: Bool

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
