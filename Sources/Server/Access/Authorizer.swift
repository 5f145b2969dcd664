internal import Basics
internal import FMP4
internal import Ingest
internal import Logging

/// Decides who may publish, watch, record and administer: one for all protocols.
final class Authorizer: Sendable {
  /// What the configuration says.
  struct Rules: Sendable {
    var publishKeys = PublishKeys()
    /// Nil where the configuration has none.
    var adminToken: Secret?
    /// Asked about publishers whose key is not known here; nil for nobody.
    var callback: AuthorizationCallback.Settings?
  }

  private let rules: Reloadable<Rules>
  private let callback: Reloadable<AuthorizationCallback?>
  /// The keys that were made over the API.
  let keys: KeyRing
  private let clock: SteadyClock
  private let logger: Logger

  init(
    _ rules: Rules = Rules(), keys: KeyRing = KeyRing(), clock: SteadyClock,
    logger: Logger = Logger(label: "access") { _ in SwiftLogNoOpLogHandler() }
  ) {
    self.logger = logger
    self.rules = Reloadable(rules)
    callback = Reloadable(rules.callback.map { AuthorizationCallback($0, clock: clock) })
    self.keys = keys
    self.clock = clock
  }

  /// Follows other rules from now on.
  func follow(_ rules: Rules) {
    self.rules.now = rules
    guard callback.now?.settings != rules.callback else { return }
    callback.now = rules.callback.map { AuthorizationCallback($0, clock: clock) }
  }

  // MARK: Publishers

  /// Publishing needs a key or a token.
  var isClosed: Bool {
    let rules = rules.now
    return !rules.publishKeys.isEmpty || keys.mayPublish || rules.callback != nil
  }

  /// How a publisher proved its right.
  struct Proof: Sendable {
    var right: PublishRight
    /// The name of the key; nil for keys of the configuration, and where none is needed.
    var name: String?
    /// The key that the publication depends on: it ends when the key is revoked.
    var key: Secret?
  }

  /// The right of a publisher to a name. The keys of this server decide first, then the callback.
  func proof(of request: PublishRequest) async throws(PublishRefusal) -> Proof {
    if let proof = proof(of: request.key, to: request.stream) { return proof }
    guard let callback = callback.now else { throw .unauthorized }
    let question = AuthorizationCallback.Question(
      stream: request.stream, protocolName: request.protocolName, address: request.host, key: request.key)
    switch await callback.ask(question) {
    case .admitted: return Proof(right: .keyOfName, name: "the callback")
    case .refused: throw .unauthorized
    case .unanswered(.admit, let reason):
      logger.warning("the callback did not answer, and the publisher is admitted: \(reason)")
      return Proof(right: .unproven)
    case .unanswered(.refuse, let reason):
      logger.warning("the callback did not answer, and the publisher is refused: \(reason)")
      throw .unanswered
    }
  }

  /// The right of a publisher to a name by the keys of this server; nil if it has none.
  func proof(of key: Secret?, to stream: StreamName) -> Proof? {
    let configured = rules.now.publishKeys
    if !isClosed { return Proof(right: .unproven) }
    guard let key else { return nil }
    if !configured.isEmpty, let right = configured.right(of: key, to: stream) { return Proof(right: right, key: key) }
    guard let grant = keys.grant(of: key), grant.holds(at: clock.wallTime), grant.allows(.publish, of: stream) else {
      return nil
    }
    let isForAll = grant.streams[.publish]?.contains(.all) ?? false
    return Proof(right: isForAll ? .keyForAllNames : .keyOfName, name: grant.name, key: key)
  }

  /// All keys that allow to publish, with the names that each is for; empty if none is needed. Nil if a publisher may be accepted
  /// by something else.
  var knownPublishKeys: [(names: StreamPattern, key: Secret)]? {
    guard callback.now == nil else { return nil }
    let now = clock.wallTime
    return rules.now.publishKeys.all
      + keys.all.filter { $0.grant.holds(at: now) }.flatMap { key in
        (key.grant.streams[.publish] ?? []).map { ($0, key.secret) }
      }
  }

  /// Whether a key that a publication depends on still gives the right. A key that has expired ends no publication.
  func stillGives(_ key: Secret, rightTo stream: StreamName) -> Bool {
    rules.now.publishKeys.right(of: key, to: stream).map { $0 != .unproven } ?? false
      || keys.grant(of: key)?.allows(.publish, of: stream) ?? false
  }

  // MARK: Administrators

  /// Somebody may administer over HTTP.
  var hasAdministrators: Bool { rules.now.adminToken != nil || keys.hasAdministrators }

  /// What the bearer of a token may administer; nil for nothing.
  func scope(of token: Secret) -> AdminScope? {
    if rules.now.adminToken?.matches(token) ?? false { return .admin }
    guard let grant = keys.grant(of: token), grant.holds(at: clock.wallTime) else { return nil }
    return grant.scope
  }

  // MARK: Viewers and programs

  /// What a key that was made over the API allows; the admin token allows everything.
  func grant(of secret: Secret) -> Result<AccessGrant, CredentialRefusal> {
    if rules.now.adminToken?.matches(secret) ?? false {
      let all = Dictionary(uniqueKeysWithValues: AccessAction.allCases.map { ($0, [StreamPattern.all]) })
      return .success(AccessGrant(name: "the admin token", streams: all, scope: .admin))
    }
    guard let grant = keys.grant(of: secret) else { return .failure(.unknown) }
    let now = clock.wallTime
    if let begins = grant.begins, now < begins { return .failure(.notYet) }
    return grant.holds(at: now) ? .success(grant) : .failure(.expired)
  }
}
