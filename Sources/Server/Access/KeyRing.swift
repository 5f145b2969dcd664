internal import FMP4
internal import Ingest
internal import Synchronization

/// The keys that were made over the API, in memory. Looked up by their digest, so that the time of a look tells nothing about
/// the text of any key.
final class KeyRing: Sendable {
  private struct State {
    var byName: [String: AccessKey] = [:]
    var byDigest: [Secret: String] = [:]
    /// How many allow to publish, and how many to administer. Counted, because each request asks.
    var publishers = 0
    var administrators = 0

    mutating func count(_ grant: AccessGrant, _ change: Int) {
      if grant.streams[.publish] != nil { publishers += change }
      if grant.scope != nil { administrators += change }
    }
  }

  private let state = Mutex(State())

  init(_ keys: [AccessKey] = []) {
    for key in keys { _ = add(key) }
  }

  /// All of them, sorted by name.
  var all: [AccessKey] { state.withLock { $0.byName.values.sorted { $0.grant.name < $1.grant.name } } }

  /// Some key allows to publish.
  var mayPublish: Bool { state.withLock { $0.publishers > 0 } }

  /// Some key is an administrator's.
  var hasAdministrators: Bool { state.withLock { $0.administrators > 0 } }

  var count: Int { state.withLock { $0.byName.count } }

  subscript(name: String) -> AccessKey? { state.withLock { $0.byName[name] } }

  /// What a key allows; nil for an unknown key.
  func grant(of secret: Secret) -> AccessGrant? {
    state.withLock { state in state.byDigest[secret].flatMap { state.byName[$0]?.grant } }
  }

  /// False if the name is taken, or there are too many keys.
  func add(_ key: AccessKey) -> Bool {
    state.withLock { state in
      guard state.byName[key.grant.name] == nil, state.byName.count < ControlDatabase.keyLimit else { return false }
      state.byName[key.grant.name] = key
      state.byDigest[key.secret] = key.grant.name
      state.count(key.grant, 1)
      return true
    }
  }

  /// False for an unknown name.
  func remove(_ name: String) -> Bool {
    state.withLock { state in
      guard let key = state.byName.removeValue(forKey: name) else { return false }
      state.byDigest[key.secret] = nil
      state.count(key.grant, -1)
      return true
    }
  }
}
