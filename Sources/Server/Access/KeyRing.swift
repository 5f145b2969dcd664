internal import FMP4
internal import Ingest
internal import Synchronization

/// The keys with names, in memory: those of the configuration file, and those that were made over the API. Looked up by their
/// digest, so that the time of a look tells nothing about the text of any key.
final class KeyRing: Sendable {
  private struct Keys {
    var byName: [String: AccessKey] = [:]
    var byDigest: [Secret: String] = [:]
    /// How many allow to publish, and how many to administer. Counted, because each request asks.
    var publishers = 0
    var administrators = 0

    mutating func add(_ key: AccessKey) {
      byName[key.grant.name] = key
      byDigest[key.secret] = key.grant.name
      count(key.grant, 1)
    }

    mutating func remove(_ name: String) -> Bool {
      guard let key = byName.removeValue(forKey: name) else { return false }
      byDigest[key.secret] = nil
      count(key.grant, -1)
      return true
    }

    func grant(of secret: Secret) -> AccessGrant? { byDigest[secret].flatMap { byName[$0]?.grant } }

    private mutating func count(_ grant: AccessGrant, _ change: Int) {
      if grant.streams[.publish] != nil { publishers += change }
      if grant.scope != nil || grant.streams[.record] != nil { administrators += change }
    }
  }

  private struct State {
    var made = Keys()
    var configured = Keys()
  }

  private let state = Mutex(State())

  init(_ keys: [AccessKey] = []) {
    for key in keys { _ = add(key) }
  }

  /// All of them, sorted by name.
  var all: [AccessKey] {
    state.withLock { Array($0.made.byName.values) + $0.configured.byName.values }
      .sorted { $0.grant.name < $1.grant.name }
  }

  /// Some key allows to publish.
  var mayPublish: Bool { state.withLock { $0.made.publishers + $0.configured.publishers > 0 } }

  /// Some key is an administrator's, or allows to record.
  var hasAdministrators: Bool { state.withLock { $0.made.administrators + $0.configured.administrators > 0 } }

  var count: Int { state.withLock { $0.made.byName.count + $0.configured.byName.count } }

  /// A key that was made.
  subscript(name: String) -> AccessKey? { state.withLock { $0.made.byName[name] } }

  /// Whether a key of that name stands in the configuration file.
  func isConfigured(_ name: String) -> Bool { state.withLock { $0.configured.byName[name] != nil } }

  /// What a key allows; nil for an unknown key.
  func grant(of secret: Secret) -> AccessGrant? {
    state.withLock { $0.configured.grant(of: secret) ?? $0.made.grant(of: secret) }
  }

  /// The keys of the configuration file from now on.
  func configure(_ keys: [AccessKey]) {
    var configured = Keys()
    for key in keys { configured.add(key) }
    state.withLock { [configured] in $0.configured = configured }
  }

  /// Adds a key that a former process made, also beside one of the file with its name.
  func restore(_ key: AccessKey) { state.withLock { $0.made.add(key) } }

  /// Adds a key that was made. False if the name is taken, or there are too many keys.
  func add(_ key: AccessKey) -> Bool {
    state.withLock { state in
      let name = key.grant.name
      guard state.made.byName[name] == nil, state.configured.byName[name] == nil,
        state.made.byName.count < ControlDatabase.keyLimit
      else { return false }
      state.made.add(key)
      return true
    }
  }

  /// Removes a key that was made. False for an unknown name.
  func remove(_ name: String) -> Bool { state.withLock { $0.made.remove(name) } }
}
