internal import Base
internal import Control
internal import HTTP
internal import Publishing
internal import Synchronization

/// Admits to a stream that is open to every client, until it is no longer. Then it holds for those whose tokens may watch it.
final class OpenStreamPass: ViewerOpenness {
  private let stream: StreamName
  private let tokens: [VerifiedToken]
  private let rule: @Sendable (StreamName) -> ViewersRule
  private let rules: Generation
  /// At this version of the rules the stream was open: finding its rule again would take a walk over all patterns. Each request
  /// asks, so it takes no lock.
  private let openAt: Atomic<Int>

  /// `rules` changes after a rule does. `version`: the one that `stream` was found open at.
  init(
    _ stream: StreamName, _ tokens: [VerifiedToken], rule: @escaping @Sendable (StreamName) -> ViewersRule,
    rules: Generation, version: Int
  ) {
    (self.stream, self.tokens, self.rule, self.rules) = (stream, tokens, rule, rules)
    openAt = Atomic(version)
  }

  var holds: Bool {
    let now = rules.version
    if openAt.load(ordering: .relaxed) == now { return true }
    guard rule(stream) != .token else { return tokens.contains { $0.holds && $0.mayWatch(stream) } }
    openAt.store(now, ordering: .relaxed)
    return true
  }

  func extended(by token: any ViewerPass) -> any ViewerPass {
    guard let token = token as? VerifiedToken else { return self }
    return OpenStreamPass(
      stream, [token], rule: rule, rules: rules, version: openAt.load(ordering: .relaxed))
  }
}
