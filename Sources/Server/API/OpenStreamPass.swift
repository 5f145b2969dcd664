internal import HTTP
internal import Ingest
internal import Synchronization

/// The time in which the rules for viewers stay the same: another one begins with each configuration.
final class ViewersEra: Sendable {}

/// Admits to a stream that is open to every client, until it is no longer. Then it holds for those whose tokens may watch it.
final class OpenStreamPass: ViewerPass {
  private let stream: StreamName
  private let tokens: [VerifiedToken]
  private let rule: @Sendable (StreamName) -> ViewersRule
  private let era: @Sendable () -> ViewersEra
  /// In this one the stream is open: finding its rule again would take a walk over all patterns.
  private let openIn: Mutex<ViewersEra>

  init(
    _ stream: StreamName, _ tokens: [VerifiedToken], rule: @escaping @Sendable (StreamName) -> ViewersRule,
    era: @escaping @Sendable () -> ViewersEra, now: ViewersEra
  ) {
    (self.stream, self.tokens, self.rule, self.era) = (stream, tokens, rule, era)
    openIn = Mutex(now)
  }

  var holds: Bool {
    let now = era()
    if openIn.withLock({ $0 === now }) { return true }
    guard rule(stream) != .token else { return tokens.contains { $0.holds && $0.mayWatch(stream) } }
    openIn.withLock { $0 = now }
    return true
  }
}
