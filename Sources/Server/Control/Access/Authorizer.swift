package import Base
package import Logging
package import Publishing
internal import Synchronization

/// Decides who may publish, watch, record and administer: one for all protocols.
package final class Authorizer: Sendable {
  /// What the configuration says.
  package struct Rules: Sendable {
    package var publishKeys = PublishKeys()
    /// Nil where the configuration has none.
    package var adminToken: Secret?
    /// Asked about publishers whose key is not known here; nil for nobody.
    package var callback: AuthorizationCallback.Settings?
    /// Keys with names.
    package var keys: [AccessKey] = []
    package var publishers = PublishersRule.auto

    package init(
      publishKeys: PublishKeys = PublishKeys(), adminToken: Secret? = nil,
      callback: AuthorizationCallback.Settings? = nil, keys: [AccessKey] = [],
      publishers: PublishersRule = .auto
    ) {
      (self.publishKeys, self.adminToken, self.callback, self.keys, self.publishers) = (
        publishKeys, adminToken, callback, keys, publishers
      )
    }
  }

  private let rules: Reloadable<Rules>
  private let callback: Reloadable<AuthorizationCallback?>
  /// Verifies JSON Web Tokens; nil where none are accepted.
  package let tokens = Reloadable<ViewerTokens?>(nil)
  /// The keys with names: of the configuration, and made over the API.
  package let keys: KeyRing
  /// Publishers needed a key once. Losing the last one does not open the server.
  private let wasClosed = Atomic(false)
  private let clock: SteadyClock
  private let logger: Logger

  package init(
    _ rules: Rules = Rules(), keys: KeyRing = KeyRing(), clock: SteadyClock,
    logger: Logger = Logger(label: "access") { _ in SwiftLogNoOpLogHandler() }
  ) {
    self.logger = logger
    self.rules = Reloadable(rules)
    callback = Reloadable(rules.callback.map { AuthorizationCallback($0, clock: clock) })
    self.keys = keys
    keys.configure(rules.keys)
    self.clock = clock
    noteKeys()
  }

  /// Follows other rules from now on.
  package func follow(_ rules: Rules) {
    noteKeys()
    self.rules.now = rules
    keys.configure(rules.keys)
    noteKeys()
    guard callback.now?.settings != rules.callback else { return }
    callback.now = rules.callback.map { AuthorizationCallback($0, clock: clock) }
  }

  // MARK: Publishers

  /// Publishing needs a key or a token.
  package var isClosed: Bool {
    switch rules.now.publishers {
    case .key: true
    case .open: hasPublishKeys
    case .auto: hasPublishKeys || staysClosed
    }
  }

  /// There is a key that allows to publish, or a callback that decides.
  private var hasPublishKeys: Bool {
    let rules = rules.now
    return !rules.publishKeys.isEmpty || keys.mayPublish || rules.callback != nil
  }

  /// Publishing needs a key, and there is none, nor a token or a callback that would do.
  package var isClosedToAll: Bool { isClosed && !hasPublishKeys && tokens.now == nil }

  /// Told at start, and whenever the last key goes.
  package static let closedToAll =
    "nobody may publish: publishers need a key, as they did before, and there is none; make one, or let everybody publish with "
    + "--publishers open"

  /// Told when the first key that allows to publish is there.
  package static let closed =
    "publishers need a key from now on: who has none is refused, and publications that run go on; give each publisher a key, or "
    + "revoke all keys and start with --publishers open"

  /// Publishers needed a key once, also in an earlier process (`restoreClosed`): with `PublishersRule.auto` they still do.
  package var staysClosed: Bool { wasClosed.load(ordering: .acquiring) || keys.hadPublishers }

  /// An earlier process needed keys.
  package func restoreClosed() { wasClosed.store(true, ordering: .releasing) }

  /// Remembers that there are keys; forgets it where everybody is to publish. Call after each change of the keys.
  package func noteKeys() {
    if hasPublishKeys {
      wasClosed.store(true, ordering: .releasing)
    } else if rules.now.publishers == .open {
      wasClosed.store(false, ordering: .releasing)
      keys.forgetPublishers()
    }
  }

  /// How a publisher proved its right.
  package struct Proof: Sendable {
    package var right: PublishRight
    /// The name of the key; nil for keys of the configuration, and where none is needed.
    package var name: String?
    /// The key or token that the publication depends on: it ends when that is revoked.
    package var key: Secret?

    package init(right: PublishRight, name: String? = nil, key: Secret? = nil) {
      (self.right, self.name, self.key) = (right, name, key)
    }
  }

  /// The right of a publisher to a name. The keys of this server decide first, then its token, then the callback.
  package func proof(of request: PublishRequest) async throws(PublishRefusal) -> Proof {
    let isFree = request.credential == .asConfigured
    // A callback could admit an address alone.
    guard isFree || request.key != nil else { throw .unauthorized }
    let own = isFree ? proof(of: request.key, to: request.stream) : keyProof(of: request.key, to: request.stream)
    if let own { return own }
    if let token = request.key?.text, JSONWebToken.isLike(token), let tokens = tokens.now,
      case .success(let grant) = await tokens.grant(of: token), grant.allows(.publish, of: request.stream)
    {
      return Proof(right: right(of: grant), name: grant.name, key: request.key)
    }
    guard let callback = callback.now else { throw .unauthorized }
    let question = AuthorizationCallback.Question(
      stream: request.stream, protocolName: request.protocolName, address: request.host, key: request.key)
    switch await callback.ask(question) {
    case .admitted: return Proof(right: .keyOfName, name: "the callback")
    case .refused: throw .unauthorized
    case .unanswered(.admit, let reason) where isFree:
      logger.warning(
        "the callback did not answer, and the publisher is admitted: \(reason)",
        metadata: ["stream": "\(request.stream)"])
      return Proof(right: .anonymous)
    case .unanswered(_, let reason):
      logger.warning(
        "the callback did not answer, and the publisher is refused: \(reason)",
        metadata: ["stream": "\(request.stream)"])
      throw .unanswered
    }
  }

  /// The right of a publisher to a name by the keys of this server; nil if it has none.
  func proof(of key: Secret?, to stream: StreamName) -> Proof? {
    isClosed ? keyProof(of: key, to: stream) : Proof(right: .anonymous)
  }

  /// The same of a key, also where publishers need none.
  private func keyProof(of key: Secret?, to stream: StreamName) -> Proof? {
    let configured = rules.now.publishKeys
    guard let key else { return nil }
    if !configured.isEmpty, let right = configured.right(of: key, to: stream) { return Proof(right: right, key: key) }
    guard let grant = keys.grant(of: key), grant.holds(at: clock.wallTime), grant.allows(.publish, of: stream) else {
      return nil
    }
    return Proof(right: right(of: grant), name: grant.name, key: key)
  }

  /// Whether a key or token allows a publisher to take a name, as far as that is known without asking a callback or fetching keys.
  /// False where publishers need none.
  package func knows(_ key: Secret, for stream: StreamName) -> Bool {
    guard isClosed else { return false }
    if proof(of: key, to: stream) != nil { return true }
    guard let tokens = tokens.now, let text = key.text, JSONWebToken.isLike(text),
      case .verified(let verified) = tokens.look(text)
    else { return false }
    return verified.grant.allows(.publish, of: stream)
  }

  private func right(of grant: AccessGrant) -> PublishRight {
    grant.streams[.publish]?.contains(.all) ?? false ? .keyForAllNames : .keyOfName
  }

  /// The most keys that a table of all of them may have.
  private static let mostInTable = 1000

  /// All keys that allow to publish, with the names that each is for; empty if none is needed. Nil if a publisher may be accepted
  /// by something else, if a key is needed and none holds, or if there are too many.
  package var knownPublishKeys: [(names: StreamPattern, key: Secret)]? {
    guard isClosed else { return [] }
    guard callback.now == nil, tokens.now == nil, keys.count <= Self.mostInTable else { return nil }
    let now = clock.wallTime
    let known =
      rules.now.publishKeys.all
      + keys.all.filter { $0.grant.holds(at: now) }.flatMap { key in
        (key.grant.streams[.publish] ?? []).map { ($0, key.secret) }
      }
    return known.isEmpty ? nil : known
  }

  /// Whether a key that a publication depends on still gives the right. A key that has expired ends no publication.
  package func stillGives(_ key: Secret, rightTo stream: StreamName) -> Bool {
    rules.now.publishKeys.right(of: key, to: stream).map { $0 != .anonymous } ?? false
      || keys.grant(of: key)?.allows(.publish, of: stream) ?? false || tokenStillGives(key, rightTo: stream)
  }

  /// The same for a token: it is revoked with the key that signed it.
  private func tokenStillGives(_ token: Secret, rightTo stream: StreamName) -> Bool {
    guard let tokens = tokens.now, let text = token.text, JSONWebToken.isLike(text) else { return false }
    switch tokens.look(text) {
    case .verified(let verified): return verified.grant.allows(.publish, of: stream)
    case .refused(let reason): return reason == .expired
    case .needsKeys: return true
    }
  }

  // MARK: Administrators

  /// Somebody may administer over HTTP.
  package var hasAdministrators: Bool { rules.now.adminToken != nil || keys.hasAdministrators || tokens.now != nil }

  /// What the bearer of a token may administer; nil for nothing.
  ///
  /// - Parameter stream: who may record it has at least the scope operate.
  package func scope(of token: Secret, orRecording stream: StreamName? = nil) -> AdminScope? {
    if rules.now.adminToken?.matches(token) ?? false { return .admin }
    guard let grant = grant(of: token) else { return nil }
    let mayRecord = stream.map { grant.allows(.record, of: $0) } ?? false
    return mayRecord ? max(.operate, grant.scope ?? .operate) : grant.scope
  }

  /// What a key or token with a name allows now.
  private func grant(of token: Secret) -> AccessGrant? {
    if let grant = keys.grant(of: token) { return grant.holds(at: clock.wallTime) ? grant : nil }
    guard let tokens = tokens.now, let text = token.text, JSONWebToken.isLike(text) else { return nil }
    guard case .verified(let verified) = tokens.look(text) else { return nil }
    return verified.grant
  }

  /// Whether a token can be judged only when the key set has been fetched again. `ViewerGate` waits for that.
  package func needsKeys(of token: Secret) -> Bool { token.text.map { tokens.now?.needsKeys($0) ?? false } ?? false }
}

/// Keys that may watch: those that were made over the API, and the admin token.
extension Authorizer: ViewerCredentials {
  package func credential(of key: String) -> ViewerCredential? {
    let secret = Secret(key)
    if rules.now.adminToken?.matches(secret) ?? false {
      return ViewerCredential(grant: AccessGrant(name: "the admin token", streams: [.watch: [.all]], scope: .admin)) {
        [self] in rules.now.adminToken?.matches(secret) ?? false
      }
    }
    return keys.grant(of: secret).map { grant in
      // The same text may stand for other rights after a reload.
      ViewerCredential(grant: grant) { [keys] in keys.grant(of: secret) == grant }
    }
  }
}
