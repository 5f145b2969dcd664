package import Base
package import Control
package import HTTP
package import NIOCore
internal import NIOHTTP1
package import Publishing

/// Decides which requests may read what. A token stands before the path (`/~TOKEN/live/…`) or in the Authorization field. That of
/// the path is verified before anything else. That of the field is looked at where a stream's rule asks for one.
package struct ViewerGate: Sendable {
  package let tokens: ViewerTokens
  /// Who may watch a stream.
  package let rule: @Sendable (StreamName) -> ViewersRule
  /// Whether some stream is not open.
  package let hasRules: @Sendable () -> Bool
  /// Changes after a rule does.
  package let rules: Generation
  /// Counts wrong tokens by address.
  package let attempts: AdminAttempts

  package init(
    tokens: ViewerTokens, rule: @escaping @Sendable (StreamName) -> ViewersRule,
    hasRules: @escaping @Sendable () -> Bool, rules: Generation, attempts: AdminAttempts
  ) {
    (self.tokens, self.rule, self.hasRules, self.rules, self.attempts) = (tokens, rule, hasRules, rules, attempts)
  }

  /// Whether a look may wait for a key set.
  private enum Patience {
    case waits, isOver
  }

  /// A token, verified or not.
  private enum Look {
    case verified(VerifiedToken)
    case refused(Problem)
    /// Verifying it takes a request for a key set.
    case later(String)
  }

  /// The answer of `route`, or why the request has none.
  package func admit(
    _ request: HTTPRequest, on eventLoop: any EventLoop, _ route: @escaping @Sendable (Viewer) -> HTTPAnswer
  ) -> HTTPAnswer {
    admit(request, on: eventLoop, .waits, route)
  }

  private func admit(
    _ request: HTTPRequest, on eventLoop: any EventLoop, _ patience: Patience,
    _ route: @escaping @Sendable (Viewer) -> HTTPAnswer
  ) -> HTTPAnswer {
    let version = rules.version
    var viewer = Viewer(rule: hasRules() ? rule : nil)
    let isOfAPI = request.path.first == "api"
    func wait(for token: String) -> HTTPAnswer {
      let tokens = tokens
      let verified = eventLoop.makeFutureWithTask { _ = await tokens.verified(token) }
      return .later(verified.flatMap { admit(request, on: eventLoop, .isOver, route).settled(on: eventLoop) })
    }
    // An administrator's token may be signed with a key that is new in the set.
    if isOfAPI, patience == .waits, let token = Self.bearer(of: request), tokens.needsKeys(token) {
      return wait(for: token)
    }
    if let token = request.token {
      switch look(at: token, of: request, patience) {
      case .verified(let verified): (viewer.tokens, viewer.isOfPath) = ([verified], true)
      case .refused(let problem): return .now(problem.response)
      case .later(let token): return wait(for: token)
      }
    }
    let stream = Self.stream(at: request.path)
    // Requests that change something need the admin token. An offer to watch is none.
    let reads = request.isRead || WHEPRoutes.isOffer(request)
    guard viewer.rule != nil, reads, isOfAPI || stream.map({ !viewer.maySee($0) }) == true else {
      return admitted(route(viewer), to: request, viewer, stream, at: version)
    }
    var reason = CredentialRefusal.missing
    if !viewer.tokens.isEmpty { reason = .notForThis }
    if let token = Self.bearer(of: request) {
      switch look(at: token, of: request, patience) {
      case .verified(let verified):
        viewer.tokens.append(verified)
        reason = .notForThis
      case .refused(let problem): if stream != nil { return .now(problem.response) }
      case .later(let token): return wait(for: token)
      }
    }
    if let stream, !viewer.maySee(stream) { return .now(Self.refused(reason, stream).response) }
    return admitted(route(viewer), to: request, viewer, stream, at: version)
  }

  /// The answer ends with the token that admitted the request, and is shared with those who may see the same.
  private func admitted(
    _ answer: HTTPAnswer, to request: HTTPRequest, _ viewer: Viewer, _ stream: StreamName?, at version: Int
  ) -> HTTPAnswer {
    guard let stream else {
      guard !answer.isAdmitted, let token = viewer.tokens.first else { return answer }
      return answer.admitted(by: token, rule: nil, isPrivate: false)
    }
    guard viewer.isGuarded(stream) else {
      // A publisher is judged by its key.
      guard request.isRead else { return answer }
      // What is shared has nobody's tokens: they would admit others once the stream wants one.
      let open = OpenStreamPass(stream, [], rule: rule, rules: rules, version: version)
      guard !viewer.tokens.isEmpty else { return answer.admitted(toOpen: open, by: open) }
      return answer.admitted(
        toOpen: open, by: OpenStreamPass(stream, viewer.tokens, rule: rule, rules: rules, version: version))
    }
    guard let index = viewer.tokens.firstIndex(where: { $0.mayWatch(stream) }) else { return answer }
    return answer.admitted(
      by: viewer.tokens[index], rule: StreamViewerRule(stream: stream), isPrivate: index > 0 || !viewer.isOfPath)
  }

  /// What admits a viewer to a stream that it may see, as long as it does.
  func pass(of viewer: Viewer, for stream: StreamName) -> any ViewerPass {
    if viewer.isGuarded(stream), let token = viewer.tokens.first(where: { $0.mayWatch(stream) }) { return token }
    // It looks at the rule once: that may have changed since the viewer was admitted.
    return OpenStreamPass(stream, viewer.tokens, rule: rule, rules: rules, version: rules.version &- 1)
  }

  /// The stream that an address is of; nil for other addresses.
  package static func stream(at path: [String]) -> StreamName? {
    switch path.first {
    case "live", "watch", "embed", "recordings", "whep": path.count > 1 ? StreamName(path[1]) : nil
    case "api" where path.count > 3 && ["streams", "recordings"].contains(path[2]): StreamName(path[3])
    default: nil
    }
  }

  // MARK: Tokens

  /// Whether a request has a token that holds, whatever that allows. One before the path is judged before any route runs (`admit`).
  package func hasToken(_ request: HTTPRequest) -> Bool { request.token != nil || hasToken(ofField: request) }

  /// The same for the Authorization field. A wrong token counts as an attempt at guessing; `tellsWrong` is whether it is told, too.
  /// One whose key is not known yet is a wrong one; its key is fetched for a later request.
  package func hasToken(ofField request: HTTPRequest, tellsWrong: Bool = true) -> Bool {
    guard let token = Self.bearer(of: request) else { return false }
    switch look(at: token, of: request, .waits, tellsWrong: tellsWrong) {
    case .verified: return true
    case .refused: return false
    case .later:
      attempts.fail(request.client, isTold: tellsWrong)
      tokens.keys.beginRefresh()
      return false
    }
  }

  private func look(at token: ByteBuffer, of request: HTTPRequest, _ patience: Patience) -> Look {
    guard let text = TokenPrefix.text(token) else {
      return .refused(
        Self.refused(
          .malformed(
            "in a path it has 1 to \(TokenPrefix.bytes) letters, digits, dots, hyphens, underscores and tildes")))
    }
    return look(at: text, of: request, patience)
  }

  private func look(
    at token: String, of request: HTTPRequest, _ patience: Patience, tellsWrong: Bool = true
  ) -> Look {
    if let known = tokens.remembered(ByteBuffer(string: token)) { return .verified(known) }
    // Many viewers may share an address: those whose tokens are known go on.
    let client = request.client
    if let seconds = attempts.pause(of: client) { return .refused(Self.tooMany(retryAfter: seconds)) }
    switch tokens.look(token) {
    case .verified(let verified): return .verified(verified)
    case .needsKeys where patience == .waits: return .later(token)
    case .needsKeys:
      attempts.fail(client, isTold: tellsWrong)
      return .refused(Self.refused(.unknown))
    case .refused(let reason):
      // A token that was good once is no attempt at guessing.
      switch reason {
      case .unknown, .malformed: attempts.fail(client, isTold: tellsWrong)
      default: break
      }
      return .refused(Self.refused(reason))
    }
  }

  private static func bearer(of request: HTTPRequest) -> String? {
    let fields = request.headers("Authorization")
    guard fields.count == 1 else { return nil }
    return AdminGate.bearer(fields[0]).map(String.init)
  }

  private static func refused(_ reason: CredentialRefusal, _ stream: StreamName? = nil) -> Problem {
    let name = stream.map { "\"\($0)\"" } ?? "this"
    let help =
      switch reason {
      case .missing: "Put a token before the path, /~TOKEN/live/…, or send it: Authorization: Bearer TOKEN."
      default: "Ask its issuer for another one."
      }
    return Problem(.viewerNotAllowed, "You may not see \(name): \(reason.description).", help: help)
  }

  private static func tooMany(retryAfter seconds: Int) -> Problem {
    Problem(
      .tooManyWrongTokens, "This address has sent too many wrong tokens.", help: "Try again in \(seconds) s.",
      retryAfter: seconds)
  }
}

extension ViewerGate: ViewerPasses {
  package func remembered(_ token: ByteBuffer) -> (any ViewerPass)? { tokens.remembered(token) }
}
