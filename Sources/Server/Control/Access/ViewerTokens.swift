internal import Base
internal import Crypto
package import FMP4
package import NIOCore
internal import Synchronization

/// Verifies tokens and keys, and remembers those that were good. Nothing here waits but `verified` and `grant`, and they wait
/// only for a key set to be fetched.
package final class ViewerTokens: Sendable {
  /// The result of a look that must not wait.
  package enum Look: Sendable {
    case verified(VerifiedToken)
    case refused(CredentialRefusal)
    /// The key of the token is not known yet: `verified` fetches it.
    case needsKeys
  }

  /// The most tokens that are remembered.
  static let capacity = 16_384

  private struct State {
    var rules: JSONWebTokenRules
    /// What these rules verified holds while they last.
    var era = Era()
    var remembered: [SHA256Digest: VerifiedToken] = [:]
  }

  /// The time in which the rules stay the same.
  private final class Era: Sendable {
    let isOver = Atomic(false)
  }

  package let keys: JSONWebKeys
  private let credentials: any ViewerCredentials
  private let now: @Sendable () -> WallTime
  private let state: Mutex<State>

  /// - Parameters:
  ///   - credentials: the keys that are no JSON Web Tokens.
  ///   - now: the time of day by which tokens expire: the system's, which may be corrected after the start.
  package init(
    keys: JSONWebKeys = JSONWebKeys([]), rules: JSONWebTokenRules = JSONWebTokenRules(),
    credentials: any ViewerCredentials, now: @escaping @Sendable () -> WallTime = { ClockReading.now().wall }
  ) {
    (self.keys, self.credentials, self.now) = (keys, credentials, now)
    state = Mutex(State(rules: rules))
  }

  /// Other rules. Tokens that were verified by the old ones are verified again.
  func replaceRules(by rules: JSONWebTokenRules) {
    state.withLock { state in
      guard state.rules != rules else { return }
      state.era.isOver.store(true, ordering: .relaxed)
      (state.rules, state.era, state.remembered) = (rules, Era(), [:])
    }
  }

  var rememberedCount: Int { state.withLock { $0.remembered.count } }

  /// A token that was verified before and still holds; nil for any other.
  package func remembered(_ token: ByteBuffer) -> VerifiedToken? {
    remembered(token.withUnsafeReadableBytes { SHA256.hash(data: $0) })
  }

  private func remembered(_ digest: SHA256Digest) -> VerifiedToken? {
    guard let found = state.withLock({ $0.remembered[digest] }) else { return nil }
    guard found.holds else {
      state.withLock { if $0.remembered[digest] === found { $0.remembered[digest] = nil } }
      return nil
    }
    return found
  }

  /// Verifies a token or key without waiting.
  package func look(_ token: String) -> Look {
    let digest = SHA256.hash(data: Array(token.utf8))
    if let found = remembered(digest) { return .verified(found) }
    guard JSONWebToken.isLike(token) else {
      guard let credential = credentials.credential(of: token) else { return .refused(.unknown) }
      let verified = VerifiedToken(credential.grant, now: now, stands: credential.stands)
      guard verified.holds else {
        return .refused(credential.grant.begins.map { now() < $0 } ?? false ? .notYet : .expired)
      }
      return remember(verified, digest)
    }
    do throws(CredentialRefusal) {
      let token = try JSONWebToken(parsing: token)
      guard let key = keys.candidates(for: token).first(where: { $0.verifies(token.signature, of: token.message) })
      else { return keys.mayFindKey(of: token) ? .needsKeys : .refused(.unknown) }
      let (rules, era) = state.withLock { ($0.rules, $0.era) }
      let grant = try token.claims().grant(rules, now: now())
      return remember(
        VerifiedToken(grant, now: now) { !key.isWithdrawn && !era.isOver.load(ordering: .relaxed) }, digest)
    } catch {
      return .refused(error)
    }
  }

  /// Whether a token can be judged only when the key set has been fetched again. Cheap for tokens that no fetch helps.
  package func needsKeys(_ token: String) -> Bool {
    guard JSONWebToken.isLike(token), let parsed = try? JSONWebToken(parsing: token), keys.mayFindKey(of: parsed),
      case .needsKeys = look(token)
    else { return false }
    return true
  }

  private func remember(_ token: VerifiedToken, _ digest: SHA256Digest) -> Look {
    state.withLock { state in
      if state.remembered.count >= Self.capacity {
        state.remembered = state.remembered.filter { $0.value.holds }
        // Any may go: the next request with it verifies it again.
        for key in state.remembered.keys.prefix(max(0, state.remembered.count - Self.capacity * 3 / 4)) {
          state.remembered[key] = nil
        }
      }
      state.remembered[digest] = token
    }
    return .verified(token)
  }

  /// Verifies a token or key. Waits for its key to be fetched where that may help.
  package func verified(_ token: String) async -> Result<VerifiedToken, CredentialRefusal> {
    var look = look(token)
    if case .needsKeys = look {
      await keys.refresh()
      look = self.look(token)
    }
    return switch look {
    case .verified(let verified): .success(verified)
    case .refused(let refusal): .failure(refusal)
    case .needsKeys: .failure(.unknown)
    }
  }

  /// What a token or key allows.
  func grant(of token: String) async -> Result<AccessGrant, CredentialRefusal> { await verified(token).map(\.grant) }
}
